"""Jobs in the SQLite file: reading them, and moving rows away that are not valid jobs."""

import contextlib
import time
from typing import Any, Final

import apsw

from geartrain.store import schema
from geartrain.store.contract import COLUMNS
from geartrain.store.transaction import transaction

SAVE: Final = schema.insert("jobs", COLUMNS, otherwise="OR REPLACE")
REMOVE: Final = "DELETE FROM jobs WHERE id = ?"
_ROWS_PER_READ: Final = 2000
_COLUMNS: Final = ", ".join(COLUMNS)
_TEXTS: Final = frozenset(index for index, name in enumerate(COLUMNS) if name in schema.TEXTS)


def read(connection: apsw.Connection, after: int) -> list[tuple[Any, ...]]:
    """Return the next rows. Text that is not UTF-8 stays bytes, so that `rows.job` rejects the row."""
    try:
        statement = f"SELECT {_COLUMNS} FROM jobs WHERE id > ? ORDER BY id LIMIT {_ROWS_PER_READ}"
        return connection.execute(statement, (after,)).fetchall()
    except UnicodeDecodeError:
        columns = ", ".join(schema.expressions(connection, "jobs", COLUMNS, raw_text=True))
        statement = f"SELECT {columns} FROM jobs WHERE id > ? ORDER BY id LIMIT {_ROWS_PER_READ}"
        return [_with_text(row) for row in connection.execute(statement, (after,))]


def _with_text(row: tuple[Any, ...]) -> tuple[Any, ...]:
    try:
        return tuple(value.decode() if index in _TEXTS else value for index, value in enumerate(row))
    except UnicodeDecodeError:
        return row


def quarantine(connection: apsw.Connection, row: tuple[Any, ...], problem: str) -> None:
    """Move an invalid row to the table `broken`; if that fails, it is found again at the next start."""
    values = (time.time(), problem, *row)
    with contextlib.suppress(apsw.Error), transaction(connection):
        connection.execute(f"INSERT INTO broken VALUES ({schema.marks(values)})", values)
        connection.execute(REMOVE, (row[0],))
