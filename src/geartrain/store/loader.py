"""Filling a store from a dump: all of it, or nothing.

What a dump has is *present* when the store has the same, by id and handle, waiting or over. It *clashes* when
another job has its id, its handle or its unique key. Both are passed over, or with `replace` take the place of
what is there; so that afterwards no id, handle or unique key is there twice, whatever the dump says.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import apsw

from geartrain.model import Job, JobState
from geartrain.store import contract, dump
from geartrain.store.sqlite import SqliteStore

_COLUMNS: Final = ", ".join(contract.COLUMNS)
_INSERT: Final = f"INSERT INTO jobs ({_COLUMNS}) VALUES ({', '.join('?' * len(contract.COLUMNS))})"
_RECORD_COLUMNS: Final = ", ".join(contract.RECORD_COLUMNS)
_INSERT_RECORD: Final = (
    f"INSERT INTO records ({_RECORD_COLUMNS}) VALUES ({', '.join('?' * len(contract.RECORD_COLUMNS))})"
)
_RAISE_IDS: Final = "INSERT OR REPLACE INTO meta VALUES ('next_id', ?)"
# Old records of a dump come after newer ones of the store; pruning relies on `seq` being their order in time.
_IN_ORDER_OF_TIME: Final = """
CREATE TEMP TABLE places (old INTEGER PRIMARY KEY, new INTEGER NOT NULL);
INSERT INTO places SELECT seq, row_number() OVER (ORDER BY finished_at, seq) + (SELECT max(seq) FROM records)
    FROM records;
UPDATE records SET seq = (SELECT new FROM places WHERE old = seq);
DROP TABLE places;
"""

Notice = Callable[[str], None]


class Summary(NamedTuple):
    """What came of a dump."""

    jobs: int  # loaded
    records: int  # loaded
    replaced: int  # of those loaded, how many took the place of something
    present: int  # passed over: the same one was there already
    clashing: int  # passed over: another one has its id, its handle or its unique key
    next_id: int  # where the store's ids go on


def load(
    store: SqliteStore, lines: Iterable[bytes], replace: bool, notice: Notice, progress: Callable[[int], None]
) -> Summary:
    """Load a dump into a store that nobody has open. A DumpError or a StoreError leaves it as it was.

    `notice` hears of every job that was passed over because it clashes.
    """
    reader = dump.Reader()
    next_id = store.open()
    try:
        with store.transaction() as connection:
            loading = _Loading(connection, replace, notice)
            for number, entry in enumerate(reader.read(lines), start=1):
                if isinstance(entry, Job):
                    loading.job(entry)
                else:
                    loading.record(entry)
                if not number % 1000:
                    progress(number)
            loading.finish()
            first = max(next_id, reader.next_id, loading.highest + 1)
            connection.execute(_RAISE_IDS, (first,))
        next_id = first
    finally:
        store.close(next_id)
    return Summary(loading.jobs, loading.records, loading.replaced, loading.present, loading.clashing, next_id)


class _Names(NamedTuple):
    """What no two jobs may share, besides their ids."""

    handle: bytes
    key: tuple[bytes, bytes] | None  # function and unique key, of a job that waits and has one


class _Loading:
    """What the store has, by every name that has to be unique, while more goes in.

    Names of all its jobs fit in memory: the server that is to serve them keeps whole jobs there.
    """

    def __init__(self, connection: apsw.Connection, replace: bool, notice: Notice) -> None:
        self._connection = connection
        self._replace = replace
        self._notice = notice
        self._names: dict[int, _Names] = {}  # by id
        self._by_handle: dict[bytes, int] = {}
        self._by_key: dict[tuple[bytes, bytes] | None, int] = {}
        self._had_records = bool(connection.execute("SELECT EXISTS (SELECT 1 FROM records)").get)
        self.jobs = self.records = self.replaced = self.present = self.clashing = self.highest = 0
        rows: Any = connection.execute("SELECT id, handle, function, unique_key, state FROM jobs")
        for id, *rest in rows:
            self._note(id, _names(*rest))

    def job(self, job: Job) -> None:
        """Put a job in, if there is room for it."""
        names = _names(job.handle, job.function, job.unique, job.state)
        rivals = self._rivals(job.id, names)
        over = self._record_of(job.id) if self._had_records else None
        if over is not None:
            rivals[over] = "id"
        if self._admits(names.handle, rivals):
            self._remove(job.id, names)
            self._connection.execute(_INSERT, contract.row(job))
            self._note(job.id, names)
            self.jobs += 1

    def record(self, record: contract.Record) -> None:
        """Put a record in. Where the store says that the job still waits, or knows of its end, it is right."""
        names = _Names(record.handle, None)
        rivals = self._rivals(record.id, names)
        over = self._record_of(record.id)
        if over is not None:
            rivals[over] = "id"
        if self._admits(names.handle, rivals):
            self._remove(record.id, names)
            self._connection.execute(_INSERT_RECORD, record)
            self.highest = max(self.highest, record.id)
            self.records += 1

    def finish(self) -> None:
        """Put the records in order where old and new ones met."""
        if self._had_records and (self.records or self.replaced):
            self._connection.execute(_IN_ORDER_OF_TIME)

    def _rivals(self, id: int, names: _Names) -> dict[bytes, str]:
        """The handles of the jobs that are in the way, and what they share with this one."""
        rivals: dict[bytes, str] = {}
        if names.key in self._by_key:
            rivals[self._names[self._by_key[names.key]].handle] = "unique key"
        if names.handle in self._by_handle:
            rivals[names.handle] = "handle"
        if id in self._names:
            rivals[self._names[id].handle] = "id"
        return rivals

    def _admits(self, handle: bytes, rivals: dict[bytes, str]) -> bool:
        """Whether to go on with a job or record although these are in its way; counts and tells if not."""
        if self._replace:
            self.replaced += bool(rivals)
            return True
        if rivals.get(handle) == "id":
            self.present += 1
        elif rivals:
            self.clashing += 1
            others = ", ".join(f"its {what} is that of {dump.shown(other)}" for other, what in rivals.items())
            self._notice(f"{dump.shown(handle)} was not loaded: {others}")
        return not rivals

    def _note(self, id: int, names: _Names) -> None:
        self._names[id] = names
        self._by_handle[names.handle] = id
        if names.key is not None:
            self._by_key[names.key] = id
        self.highest = max(self.highest, id)

    def _remove(self, id: int, names: _Names) -> None:
        """Take out every job and record that is in the way of this id and these names."""
        if not self._replace:
            return
        rivals = {id, self._by_handle.get(names.handle, id), self._by_key.get(names.key, id)}
        for rival in rivals & self._names.keys():
            gone = self._names.pop(rival)
            self._by_handle.pop(gone.handle, None)
            self._by_key.pop(gone.key, None)
            self._connection.execute("DELETE FROM jobs WHERE id = ?", (rival,))
        self._connection.execute("DELETE FROM records WHERE id = ?", (id,))

    def _record_of(self, id: int) -> bytes | None:
        """The handle of the job with this id, if it is over."""
        found: Any = self._connection.execute("SELECT handle FROM records WHERE id = ?", (id,)).get
        return None if found is None else bytes(found)


def _names(handle: bytes, function: bytes, unique: bytes, state: int) -> _Names:
    return _Names(handle, (function, unique) if unique and state != JobState.DEAD else None)
