"""The 2005 draft: `danga://host:port`."""

from geartrain.client.protocols.danga.client import Client as Client
from geartrain.client.protocols.danga.worker import Worker as Worker
