"""The 2005 draft: `danga://host:port`."""

from geartrain.client.links.danga_client import Client as Client
from geartrain.client.links.danga_worker import Worker as Worker
