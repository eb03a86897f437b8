"""GearMonkey, on a real Redis or at a Geartrain server: `gearmonkey://host:port/database`.

The flows of `geartrain.client.gearmonkey` behind the library's seam. They share connections that carry any number of
commands at once, and need no redis-py.
"""

from geartrain.client.protocols.gearmonkey.client import Client as Client
from geartrain.client.protocols.gearmonkey.worker import Worker as Worker
