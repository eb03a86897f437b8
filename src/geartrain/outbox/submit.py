"""Writing a job into the outbox, in the transaction that a connection is in."""

import sqlite3
from typing import TYPE_CHECKING, Any, Final

from geartrain.app.call import Call
from geartrain.client.order import Order
from geartrain.outbox import table

if TYPE_CHECKING:
    import psycopg

    Connection = sqlite3.Connection | psycopg.Connection[Any]
    AsyncConnection = psycopg.AsyncConnection[Any]

_COLUMNS: Final = ", ".join(table.COLUMNS)
_SQLITE: Final = f"INSERT INTO {table.NAME} ({_COLUMNS}) VALUES ({', '.join('?' * len(table.COLUMNS))})"
# One statement: the relays are notified when the transaction commits, and once for all its rows.
_POSTGRESQL: Final = (
    f"WITH added AS (INSERT INTO {table.NAME} ({_COLUMNS}) VALUES ({', '.join(['%s'] * len(table.COLUMNS))})"
    f" RETURNING 1) SELECT pg_notify('{table.CHANNEL}', '') FROM added"
)


def create_table(connection: "Connection") -> None:
    """Create the table of the outbox, unless there is one: POSTGRESQL_TABLE or SQLITE_TABLE, in your transaction."""
    connection.execute(table.SQLITE_TABLE if isinstance(connection, sqlite3.Connection) else table.POSTGRESQL_TABLE)


async def create_table_async(connection: "AsyncConnection") -> None:
    """Like `create_table`, for an AsyncConnection of psycopg."""
    await connection.execute(table.POSTGRESQL_TABLE)


def submit(connection: "Connection", job: Call[Any] | Order) -> None:
    """Submit a job when the transaction of this connection commits; `job` is `task.bind(...)` or `client.order(...)`.

    The connection is one of psycopg 3 or of sqlite3, and is used as your own statements use it: nothing is committed
    here. Where there is no transaction, in autocommit, the job is submitted at once.

    >>> import sqlite3
    >>> from geartrain import App, outbox
    >>> app = App("shop")
    >>> @app.task
    ... def send_receipt(order: int) -> None: ...
    >>> connection = sqlite3.connect(":memory:")
    >>> outbox.create_table(connection)
    >>> outbox.submit(connection, send_receipt.bind(7))
    >>> connection.rollback()
    >>> connection.execute("SELECT count(*) FROM geartrain_outbox").fetchone()
    (0,)
    >>> connection.close()
    """
    statement: Any = _SQLITE if isinstance(connection, sqlite3.Connection) else _POSTGRESQL
    connection.execute(statement, table.new_values(job))


async def submit_async(connection: "AsyncConnection", job: Call[Any] | Order) -> None:
    """Like `submit`, for an AsyncConnection of psycopg."""
    statement: Any = _POSTGRESQL
    await connection.execute(statement, table.new_values(job))
