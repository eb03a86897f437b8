"""MemoDB: `memodb+tcp://host:port`, `memodb+ipc:///path`, `memodb+ws://host:port/path`."""

from geartrain.client.protocols.memodb.client import Client as Client
from geartrain.client.protocols.memodb.worker import Worker as Worker
