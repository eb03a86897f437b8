"""GearMonkey, on a real Redis or at a Geartrain server: `gearmonkey://host:port/database`.

It runs the flows of `geartrain.client.redis`, any number of them at once on two connections.
"""

from geartrain.client.protocols.gearmonkey.client import Client as Client
from geartrain.client.protocols.gearmonkey.worker import Worker as Worker
