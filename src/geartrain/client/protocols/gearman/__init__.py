"""Gearman: `gearman://host:port`."""

from geartrain.client.protocols.gearman.client import Client as Client
from geartrain.client.protocols.gearman.worker import Worker as Worker
