"""How many bytes a column of a table of the SQLite file has, and which rows have to go if these are too many."""

from typing import Any

import apsw


def total(connection: apsw.Connection, table: str, column: str) -> int:
    """The bytes of all rows."""
    size: Any = connection.execute(f"SELECT coalesce(sum(length({column})), 0) FROM {table}").get
    return int(size)


def oldest(connection: apsw.Connection, table: str, column: str, excess: int) -> tuple[list[int], int]:
    """The lowest ids whose rows have at least this many bytes together, and how many they have."""
    ids: list[int] = []
    size = 0
    rows: Any = connection.execute(f"SELECT id, length({column}) FROM {table} ORDER BY id")
    for id, length in rows:
        if size >= excess:
            break
        ids.append(id)
        size += length
    return ids, size
