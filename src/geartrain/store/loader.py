"""Loading a dump into a store: all of it, or nothing. Saved values are loaded by `saved_value_loader.py`.

A job or record of the dump is *present* if the store has the same one by id and handle, finished or not. It *clashes*
if another job has its id, its handle or its unique key. Both are skipped; with `replace` they replace what is in the
store. Either way, no id, handle or unique key is in the store twice afterwards, whatever the dump contains.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import apsw

from geartrain.model import Job, JobState
from geartrain.store import contract, dump, schema
from geartrain.store.load_counts import LoadCounts, Notice, Summary
from geartrain.store.saved_value_loader import SavedValueLoader
from geartrain.store.sqlite import SqliteStore
from geartrain.store.sqlite_records import RecordTable

_ADD_JOB: Final = schema.insert("jobs", contract.COLUMNS)
_SAVE_VALUE: Final = "INSERT OR REPLACE INTO kept VALUES (?, ?)"
_SET_NEXT_ID: Final = "INSERT OR REPLACE INTO meta VALUES ('next_id', ?)"
# Pruning relies on `seq` being the order of records in time, and old records of a dump are added after newer ones.
_SORT_RECORDS: Final = """
CREATE TEMP TABLE renumbering (old INTEGER PRIMARY KEY, new INTEGER NOT NULL);
INSERT INTO renumbering SELECT seq, row_number() OVER (ORDER BY finished_at, seq) + (SELECT max(seq) FROM records)
    FROM records;
UPDATE records SET seq = (SELECT new FROM renumbering WHERE old = seq);
DROP TABLE renumbering;
"""


def load(
    store: SqliteStore, lines: Iterable[bytes], replace: bool, notice: Notice, progress: Callable[[int], None]
) -> Summary:
    """Load a dump into a store that no server has open. On DumpError and StoreError the store is unchanged.

    `notice` is called for every job that is skipped because it clashes, `progress` after every thousand entries.
    """
    reader = dump.DumpReader()
    return _add(store, lambda _: reader.read(lines), lambda: reader.next_id, replace, notice, progress)


def add_jobs(
    store: SqliteStore, jobs: Callable[[int], Iterable[Job]], notice: Notice, progress: Callable[[int], None]
) -> Summary:
    """Add new jobs to a store that no server has open, all or nothing. `jobs` makes them with ids from its argument on.

    A job whose unique key belongs to a job of the store counts as clashing.
    """
    return _add(store, jobs, lambda: 0, False, notice, progress)


def _add(
    store: SqliteStore,
    entries: Callable[[int], Iterable[dump.Entry]],
    lowest_next_id: Callable[[], int],
    replace: bool,
    notice: Notice,
    progress: Callable[[int], None],
) -> Summary:
    """Add what `entries` returns for the store's next id, in one transaction."""
    next_id = store.open()
    try:
        with store.transaction() as connection:
            counts = LoadCounts(replace, notice)
            loader = _Loader(connection, store.record_table, counts)
            values = _saved_values(connection, counts)
            for number, entry in enumerate(entries(next_id), start=1):
                if isinstance(entry, Job):
                    loader.job(entry)
                elif isinstance(entry, dump.SavedValue):
                    values.add(entry)
                elif isinstance(entry, dump.FailedJob):
                    loader.record(entry.record, entry.job)
                else:
                    loader.record(entry)
                if not number % 1000:
                    progress(number)
            loader.finish()
            first = max(next_id, lowest_next_id(), loader.highest + 1)
            connection.execute(_SET_NEXT_ID, (first,))
        next_id = first
    finally:
        store.close(next_id)
    return counts.summary(next_id)


def _saved_values(connection: apsw.Connection, counts: LoadCounts) -> SavedValueLoader:
    rows: Any = connection.execute("SELECT name, value FROM kept ORDER BY name")
    values = {str(name): bytes(value) for name, value in rows}
    return SavedValueLoader(values, counts, lambda slot, value: connection.execute(_SAVE_VALUE, (slot, value)))


class _Names(NamedTuple):
    """What must be unique, besides the id."""

    handle: bytes
    key: tuple[bytes, bytes] | None  # function and unique key; None: no key, dead or finished


class _Loader:
    """Adds jobs and records, and keeps an index of all that must be unique.

    The index fits into memory, because a server keeps the whole jobs in memory.
    """

    def __init__(self, connection: apsw.Connection, table: RecordTable, counts: LoadCounts) -> None:
        self._connection = connection
        self._table = table
        self._counts = counts
        self._names: dict[int, _Names] = {}  # by id
        self._by_handle: dict[bytes, int] = {}
        self._by_key: dict[tuple[bytes, bytes] | None, int] = {}
        self._had_records = bool(connection.execute("SELECT EXISTS (SELECT 1 FROM records)").get)
        self._sorted = not self._had_records  # whether each record ended after those before it
        self._last_end = 0.0  # of the records that were added
        self.highest = 0  # of all ids
        rows: Any = connection.execute("SELECT id, handle, function, unique_key, state FROM jobs")
        for id, *rest in rows:
            self._index(id, _names(*rest))

    def job(self, job: Job) -> None:
        """Add a job, unless it is skipped."""
        names = _names(job.handle, job.function, job.unique, job.state)
        others = self._conflicts(job.id, names)
        recorded = self._recorded_handle(job.id) if self._had_records else None
        if recorded is not None:
            others[recorded] = "id"
        if self._counts.accepts(names.handle, others):
            self._remove(job.id, names)
            self._connection.execute(_ADD_JOB, contract.row(job))
            self._index(job.id, names)
            self._counts.jobs += 1

    def record(self, record: contract.Record, job: Job | None = None) -> None:
        """Add a record, and the failed job that is kept with it, unless the store has its job or a record of it."""
        names = _Names(record.handle, None)
        others = self._conflicts(record.id, names)
        recorded = self._recorded_handle(record.id)
        if recorded is not None:
            others[recorded] = "id"
        if self._counts.accepts(names.handle, others):
            self._remove(record.id, names)
            self._table.add(self._connection, [record])
            self._sorted = self._sorted and record.finished_at >= self._last_end
            self._last_end = record.finished_at
            if job is not None:
                self._table.failed_jobs.add(self._connection, [contract.row(job)])
            self.highest = max(self.highest, record.id)
            self._counts.records += 1

    def finish(self) -> None:
        """Sort the records if they are not in the order in which their jobs ended."""
        if not self._sorted and (self._counts.records or self._counts.replaced):
            self._connection.execute(_SORT_RECORDS)

    def _conflicts(self, id: int, names: _Names) -> dict[bytes, str]:
        """Return the handles of the jobs that share something unique with this one, and what they share."""
        others: dict[bytes, str] = {}
        if names.key in self._by_key:
            others[self._names[self._by_key[names.key]].handle] = "unique key"
        if names.handle in self._by_handle:
            others[names.handle] = "handle"
        if id in self._names:
            others[self._names[id].handle] = "id"
        return others

    def _index(self, id: int, names: _Names) -> None:
        self._names[id] = names
        self._by_handle[names.handle] = id
        if names.key is not None:
            self._by_key[names.key] = id
        self.highest = max(self.highest, id)

    def _remove(self, id: int, names: _Names) -> None:
        """With `replace`, remove every job and record that conflicts."""
        if not self._counts.replace:
            return
        ids = {id, self._by_handle.get(names.handle, id), self._by_key.get(names.key, id)}
        for other in ids & self._names.keys():
            removed = self._names.pop(other)
            self._by_handle.pop(removed.handle, None)
            self._by_key.pop(removed.key, None)
            self._connection.execute("DELETE FROM jobs WHERE id = ?", (other,))
        self._table.remove(self._connection, id)

    def _recorded_handle(self, id: int) -> bytes | None:
        """Return the handle in the record of this id, if there is one."""
        handle: Any = self._connection.execute("SELECT handle FROM records WHERE id = ?", (id,)).get
        return None if handle is None else bytes(handle)


def _names(handle: bytes, function: bytes, unique: bytes, state: int) -> _Names:
    return _Names(handle, (function, unique) if unique and state != JobState.DEAD else None)
