"""Failed jobs in the SQLite file that are kept whole, beside their records."""

from collections.abc import Sequence
from typing import Any, Final

import apsw

from geartrain.model import FailedPayload
from geartrain.store import rows, schema, sqlite_budget
from geartrain.store.contract import COLUMNS, J

_TABLE: Final = "failed_jobs"
_ADD: Final = schema.insert(_TABLE, COLUMNS, otherwise="OR REPLACE")
_REMOVE: Final = f"DELETE FROM {_TABLE} WHERE id = ?"
_SELECT_SIZE: Final = f"SELECT length(payload) FROM {_TABLE} WHERE id = ?"
_SELECT_PAYLOAD: Final = f"SELECT length(payload), substr(payload, 1, ?) FROM {_TABLE} WHERE id = ?"
_PAYLOAD: Final = COLUMNS.index("payload")


class FailedJobTable:
    """The table `failed_jobs` of one open file, and how many bytes its payloads have."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self.reset()

    def reset(self) -> None:
        """Count again at the next use: the file was opened, or a change of it failed."""
        self._bytes: int | None = None

    def add(self, connection: apsw.Connection, failed: Sequence[tuple[Any, ...]]) -> None:
        """Add rows, within a transaction, and remove the oldest ones that exceed the limit."""
        self.remove(connection, [row[0] for row in failed])
        connection.executemany(_ADD, failed)
        if self._bytes is None:
            self._bytes = sqlite_budget.total(connection, _TABLE, "payload")
        else:
            self._bytes += sum(len(row[_PAYLOAD]) for row in failed)
        if self._bytes > self._most_bytes:
            self._remove_oldest(connection, self._bytes - self._most_bytes)

    def remove(self, connection: apsw.Connection, ids: Sequence[int]) -> None:
        """Remove the rows of these jobs, within a transaction."""
        for id in ids:
            size: Any = connection.execute(_SELECT_SIZE, (id,)).get
            if size is not None:
                connection.execute(_REMOVE, (id,))
                if self._bytes is not None:
                    self._bytes -= size

    def _remove_oldest(self, connection: apsw.Connection, excess: int) -> None:
        """Remove rows with payloads of at least this many bytes; their records say that the payload is not kept."""
        removed, _ = sqlite_budget.oldest(connection, _TABLE, "payload", excess)
        self.remove(connection, removed)


def payloads(connection: apsw.Connection, ids: Sequence[int], longest: int) -> dict[int, FailedPayload]:
    """The payloads of failed jobs, with at most `longest` bytes of each."""
    if not connection.table_exists("main", _TABLE):
        return {}
    kept: dict[int, FailedPayload] = {}
    for id in ids:
        row: Any = connection.execute(_SELECT_PAYLOAD, (longest, id)).get
        if row is not None:
            kept[id] = FailedPayload(row[0], row[1] or b"")  # SQLite: a part of an empty value is NULL
    return kept


def read(connection: apsw.Connection, ids: Sequence[int], kind: type[J], most_bytes: int) -> list[J | None]:
    """The failed jobs with these ids, until the payloads exceed `most_bytes`; a row that cannot be read is None."""
    if not connection.table_exists("main", _TABLE):
        return [None] * len(ids)
    columns = ", ".join(schema.expressions(connection, _TABLE, COLUMNS))
    jobs: list[J | None] = []
    for id in ids:
        row: Any = None
        try:
            row = connection.execute(f"SELECT {columns} FROM {_TABLE} WHERE id = ?", (id,)).get
            jobs.append(None if row is None else rows.failed_job(row, kind))
        except (rows.BrokenRowError, UnicodeDecodeError):
            jobs.append(None)
        most_bytes -= 0 if row is None else len(row[_PAYLOAD])
        if most_bytes < 0:
            break
    return jobs
