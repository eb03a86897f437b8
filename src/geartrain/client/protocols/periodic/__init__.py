"""Periodic: `periodic://host:port` and `periodic+unix:///path`."""

from geartrain.client.protocols.periodic.client import Client as Client
from geartrain.client.protocols.periodic.worker import Worker as Worker
