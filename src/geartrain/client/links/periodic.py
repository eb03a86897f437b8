"""Periodic: `periodic://host:port` and `periodic+unix:///path`."""

from geartrain.client.links.periodic_client import Client as Client
from geartrain.client.links.periodic_worker import Worker as Worker
