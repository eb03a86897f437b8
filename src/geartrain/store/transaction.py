"""Transactions of a SQLite connection, during which other threads run.

apsw's own `with connection:` keeps Python's global lock while it commits, so every other thread, and with it the event
loop, would wait for each fsync. `execute` releases the lock.
"""

import contextlib
from collections.abc import Iterator

import apsw


@contextlib.contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """Commit at the end of the block, or roll back if it raises. Blocks cannot be nested."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # some errors roll back by themselves
            with contextlib.suppress(apsw.Error):
                connection.execute("ROLLBACK")
        raise
