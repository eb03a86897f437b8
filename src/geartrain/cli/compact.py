"""`geartrain compact`: return the free space in a store's file to the disk."""

import msgspec

from geartrain.cli import local_store
from geartrain.maintenance import store_file
from geartrain.server.process import log

EPILOG = """
**When to use it.** Rarely: the server reuses the space of finished jobs for new ones. After an unusually large backlog,
this command returns that space to the disk. Stop the server first. The disk needs free space of twice the size of the
remaining jobs.

**Examples**

- `geartrain compact`

- `geartrain compact --store sqlite:///var/lib/geartrain/jobs.db --json`
"""


def compact(store: local_store.Store = None, config: local_store.Config = None, json: local_store.Json = False) -> None:
    """Shrink the file of a store to the size of its jobs. The server must be stopped."""
    location = store_file.existing(local_store.settings(store, config))
    with local_store.plain_errors(str(location.path)), log.opened(log.STDERR, "warning", "text"):
        sizes = store_file.compact(location)
    if json:
        print(msgspec.json.encode({"file": str(location.path), **sizes._asdict()}).decode())
    else:
        print(
            f"{location.path}: {store_file.shown_size(sizes.before)} before, {store_file.shown_size(sizes.after)} after"
        )
