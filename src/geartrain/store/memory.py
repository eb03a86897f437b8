"""The memory store: implements the contract and loses everything when the server stops."""

import heapq
import itertools
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any, Final

from mypy_extensions import mypyc_attr

from geartrain.model import Attempt, Record, id_from_handle, pack_attempts
from geartrain.store import contract, rows

# Without a file, the first id is the time in microseconds since 2026: no server uses a million ids per second for
# long, so a handle is not used for another job after a restart.
_EPOCH: Final = 1_767_225_600


@mypyc_attr(acyclic=True)
class MemoryRecord:
    """A record as the memory store keeps it: the fields of `Record` in the same order.

    Compiled, it takes a fraction of the time to create, because its numbers are not objects and the garbage collector
    does not traverse it. Most records are never read.
    """

    __slots__ = (
        "attempts",
        "code",
        "door",
        "failed_attempts",
        "finished_at",
        "function",
        "handle",
        "id",
        "keeps_result",
        "priority",
        "reason",
        "result",
        "started_at",
        "state",
        "submitted_at",
        "unique",
        "worker",
        "worker_door",
    )

    def __init__(
        self,
        id: int,
        handle: bytes,
        function: bytes,
        unique: bytes,
        priority: int,
        state: int,
        submitted_at: float,
        started_at: float,
        finished_at: float,
        attempts: int,
        door: str,
        worker_door: str,
        worker: bytes,
        code: int,
        reason: str,
        result: bytes,
        failed_attempts: list[Attempt] | None,
        keeps_result: bool,
    ) -> None:
        self.id = id
        self.handle = handle
        self.function = function
        self.unique = unique
        self.priority = priority
        self.state = state
        self.submitted_at = submitted_at
        self.started_at = started_at
        self.finished_at = finished_at
        self.attempts = attempts
        self.door = door
        self.worker_door = worker_door
        self.worker = worker
        self.code = code
        self.reason = reason
        self.result = result
        self.failed_attempts = failed_attempts
        self.keeps_result = keeps_result

    def record(self) -> Record:
        """Convert it."""
        return Record(
            self.id, self.handle, self.function, self.unique, self.priority, self.state, self.submitted_at,
            self.started_at, self.finished_at, self.attempts, self.door, self.worker_door, self.worker, self.code,
            self.reason, self.result, pack_attempts(self.failed_attempts), self.keeps_result,
        )  # fmt: skip


class MemoryStore:
    """Jobs and records in dictionaries.

    A new record is only appended to a list, and indexed by id when a query comes: most are pruned before that.
    """

    durable = False

    def __init__(self) -> None:
        self._rows: dict[int, tuple[Any, ...]] = {}  # of jobs, by id
        self._records: dict[int, MemoryRecord | Record] = {}  # by id, the oldest first
        self._unindexed: list[MemoryRecord] = []  # newer than all of `_records`
        self._index_lock = threading.Lock()  # any thread may query
        self._saved_values: dict[str, bytes] = {}
        self._next_id = max(1, int((time.time() - _EPOCH) * 1_000_000))

    def open(self) -> int:
        """Return the first unused id; this store can always be opened."""
        return self._next_id

    def jobs(self, kind: type[contract.J]) -> Iterator[contract.J]:
        """The jobs that were saved and are not finished."""
        for _, row in sorted(self._rows.items()):
            yield rows.job(row, kind)

    def saved_values(self) -> dict[str, bytes]:
        """The values that were saved in this process."""
        return dict(self._saved_values)

    def commit(self, batch: contract.Batch) -> None:
        """Apply a batch."""
        for row in batch.saved_jobs:
            self._rows[row[0]] = row  # type: ignore[index]
        with self._index_lock:
            self._index()
            for record in batch.finished:
                self._rows.pop(record.id, None)
                self._records[record.id] = record
        self._saved_values.update(batch.saved_values)
        self._next_id = max(self._next_id, batch.ids_until)

    def add_record(self, record: MemoryRecord) -> None:
        """Add a record without a batch."""
        self._unindexed.append(record)

    def records(self, query: contract.Query) -> list[Record]:
        """The newest first. Candidates are copied under the lock, because the event loop goes on adding records."""
        id = id_from_handle(query.handle)
        with self._index_lock:
            self._index()
            candidates = [self._records[id]] if id in self._records else list(self._records.values())
        matching = _matching(reversed(candidates), query)
        if query.by_id:
            matching = iter(heapq.nlargest(query.limit, matching, key=lambda record: record.id))
        return [
            record.record() if isinstance(record, MemoryRecord) else record
            for record in itertools.islice(matching, query.limit)
        ]

    def prune(self, before: float, keep: int) -> int:
        """Remove the oldest records."""
        with self._index_lock:
            if before > 0.0:
                self._index()
            excess = max(len(self._records) + len(self._unindexed) - keep, 0)
            old = set(itertools.islice(self._records, excess))
            if before > 0.0:  # only then walk all records
                old.update(record.id for record in self._records.values() if record.finished_at < before)
            for id in old:
                del self._records[id]
            unindexed = max(excess - len(old), 0)
            del self._unindexed[:unindexed]
            return len(old) + unindexed

    def close(self, next_id: int) -> None:
        """Keep everything: the same object may be opened again."""
        self._next_id = next_id

    def _index(self) -> None:
        """Move new records into the dictionary. More may be appended meanwhile."""
        count = len(self._unindexed)
        for record in self._unindexed[:count]:
            self._records[record.id] = record
        del self._unindexed[:count]


def _matching(candidates: Iterable[MemoryRecord | Record], query: contract.Query) -> Iterator[MemoryRecord | Record]:
    for record in candidates:
        if query.matches(record):
            yield record
