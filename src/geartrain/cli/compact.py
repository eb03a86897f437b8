"""`geartrain compact`: a store's file without the space that finished jobs left in it."""

import msgspec

from geartrain.cli import local_store
from geartrain.maintenance import store_file
from geartrain.server.process import log

EPILOG = """
**Is it needed?** Seldom: a server uses the space that finished jobs left for new ones. After a backlog that will
not come again, this gives it back to the disk. The server has to be stopped, and the disk needs twice as
much free space as the jobs take.

**Examples**

- `geartrain compact`

- `geartrain compact --store sqlite:///var/lib/geartrain/jobs.db --json`
"""


def compact(store: local_store.Store = None, config: local_store.Config = None, json: local_store.Json = False) -> None:
    """Make the file of a store that no server has open as small as what is in it."""
    found = store_file.existing(local_store.settings(store, config))
    with local_store.plain_errors(str(found.path)), log.opened(log.STDERR, "warning", "text"):
        sizes = store_file.compact(found)
    if json:
        print(msgspec.json.encode({"file": str(found.path), **sizes._asdict()}).decode())
    else:
        print(f"{found.path}: {store_file.shown_size(sizes.before)} before, {store_file.shown_size(sizes.after)} after")
