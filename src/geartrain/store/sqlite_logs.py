"""Logs of jobs in the SQLite file."""

from collections.abc import Sequence
from typing import Any, Final

import apsw

from geartrain.store import schema, sqlite_budget
from geartrain.store.contract import extended_log

_SAVE: Final = schema.insert("logs", ("id", "log"), otherwise="OR REPLACE")
_REMOVE: Final = "DELETE FROM logs WHERE id = ?"


class LogTable:
    """The table `logs` of one open file, and how many bytes it has."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self.reset()

    def reset(self) -> None:
        """Count again at the next use: the file was opened, or rows were removed, or a change of it failed."""
        self._bytes: int | None = None

    def add(self, connection: apsw.Connection, logs: Sequence[tuple[int, bytes]]) -> None:
        """Add lines to logs, within a transaction, and remove the oldest logs that exceed the limit."""
        for id, added in logs:
            log = _read(connection, id)
            extended = extended_log(log, added)
            connection.execute(_SAVE, (id, extended))
            if self._bytes is not None:
                self._bytes += len(extended) - len(log)
        if self._bytes is None:
            self._bytes = sqlite_budget.total(connection, "logs", "log")
        if self._bytes > self._most_bytes:
            removed, _ = sqlite_budget.oldest(connection, "logs", "log", self._bytes - self._most_bytes)
            self.remove(connection, removed)

    def remove(self, connection: apsw.Connection, ids: Sequence[int]) -> None:
        """Remove the logs of these jobs, within a transaction."""
        connection.executemany(_REMOVE, [(id,) for id in ids])
        self.reset()

    def remove_with_records(self, connection: apsw.Connection, where: str, values: Sequence[int]) -> None:
        """Remove the logs of jobs whose records, as this condition selects them, are about to be removed."""
        if connection.execute("SELECT EXISTS (SELECT 1 FROM logs)").get:  # few servers have any
            connection.execute(f"DELETE FROM logs WHERE id IN (SELECT id FROM records WHERE {where})", values)
            self.reset()


def read(connection: apsw.Connection, id: int) -> bytes:
    """The log of a job; empty if there is none, or the file is of an older layout."""
    return _read(connection, id) if connection.table_exists("main", "logs") else b""


def _read(connection: apsw.Connection, id: int) -> bytes:
    log: Any = connection.execute("SELECT log FROM logs WHERE id = ?", (id,)).get
    return b"" if log is None else bytes(log)
