"""The HTTP API: `http://host:port`."""

from geartrain.client.protocols.http.client import Client as Client
from geartrain.client.protocols.http.worker import Worker as Worker
