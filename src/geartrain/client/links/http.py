"""The HTTP API: `http://host:port`."""

from geartrain.client.links.http_client import Client as Client
from geartrain.client.links.http_worker import Worker as Worker
