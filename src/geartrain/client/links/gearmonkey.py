"""GearMonkey, on a real Redis or at a Geartrain server: `gearmonkey://host:port/database`.

The flows of `geartrain.client.gearmonkey` behind the library's seam. They share connections that carry any number of
commands at once, and need no redis-py.
"""

from geartrain.client.links.gearmonkey_client import Client as Client
from geartrain.client.links.gearmonkey_worker import Worker as Worker
