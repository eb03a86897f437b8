"""Inserting many rows into a table of the SQLite file with few statements.

apsw gives up Python's global lock for each step of a statement, and has to wait for it afterwards. With a step for each
row, the thread that commits and the event loop would take turns row by row. So a statement inserts many rows.
"""

import itertools
from collections.abc import Sequence
from typing import Any, Final

import apsw

from geartrain.store import schema

# Rows of a statement: any number of rows takes few statements, and few of them are prepared. apsw keeps none of more
# than 16 KiB.
_SIZES: Final = (128, 64, 32, 16, 8, 4, 2, 1)


class RowInsert:
    """The statements that insert rows into a table. `values` and `otherwise` are as in `schema.insert`."""

    def __init__(self, table: str, columns: Sequence[str], *, values: Sequence[str] = (), otherwise: str = "") -> None:
        values = values or [schema.MARK] * len(columns)
        first = schema.insert(table, columns, values=values, otherwise=otherwise)
        next_row = f",({','.join(values)})"
        self._width = list(values).count(schema.MARK)
        self._statements = {size: first + next_row * (size - 1) for size in _SIZES}

    def execute(self, connection: apsw.Connection, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows in their order, within a transaction. SQLite copies the values of a statement."""
        if len(rows) == 1:
            connection.execute(self._statements[1], rows[0])
            return
        values = list(itertools.chain.from_iterable(rows))
        begin, left = 0, len(rows)
        for size, statement in self._statements.items():
            while left >= size:
                end = begin + size * self._width
                connection.execute(statement, values[begin:end])
                begin, left = end, left - size
