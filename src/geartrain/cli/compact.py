"""`geartrain compact`: return the free space in a store's file to the disk."""

import msgspec

from geartrain.cli import local_store
from geartrain.maintenance import store_commands, store_file
from geartrain.server.process import log

EPILOG = """
**When to use it.** Rarely: the server reuses the space of finished jobs for new ones. After an unusually large backlog,
this command returns that space to the disk. Stop the server first. The disk needs free space of twice the size of the
remaining jobs. A store on PostgreSQL does not need it: PostgreSQL does this by itself (autovacuum).

**Examples**

- `geartrain compact`

- `geartrain compact --store sqlite:///var/lib/geartrain/jobs.db --json`
"""


def compact(store: local_store.Store = None, config: local_store.Config = None, json: local_store.Json = False) -> None:
    """Shrink the file of a store to the size of its jobs. The server must be stopped."""
    location = store_commands.find(local_store.settings(store, config))
    location.require_existing()
    with local_store.plain_errors(location.name), log.opened(log.STDERR, "warning", "text"):
        sizes = location.compact()
    if json:
        fields = sizes._asdict() if sizes is not None else {"before": None, "after": None}
        print(msgspec.json.encode({"file": location.name, **fields}).decode())
    elif sizes is None:
        print(f"{location.name}: nothing to do; PostgreSQL removes dead rows and reuses their space (autovacuum)")
    else:
        print(
            f"{location.name}: {store_file.shown_size(sizes.before)} before, {store_file.shown_size(sizes.after)} after"
        )
