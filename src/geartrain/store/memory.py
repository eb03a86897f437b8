"""The memory store: implements the contract and loses everything when the server stops.

Memory is scarcer than disk: large results are kept whole up to `ResultLimits.total_in_memory` bytes together, and
only the quotas limit records. Times of their own, `keep_until` and `remove_at`, have no effect; those of records that
come from a dump are kept for the next dump.
"""

import heapq
import itertools
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from mypy_extensions import i16, i64, mypyc_attr

from geartrain.model import Attempt, FailedPayload, JobState, Record, id_from_handle, pack_attempts, unpack_attempts
from geartrain.store import contract, rows

# Without a file, the first id is the time in microseconds since 2026: no server uses a million ids per second for
# long, so a handle is not used for another job after a restart.
_EPOCH: Final = 1_767_225_600
_LIMITS: Final = contract.ResultLimits()
_FAILED: Final = 4  # a literal, which compiled code compares at once
assert int(JobState.FAILED) == _FAILED
_PAYLOAD: Final = contract.COLUMNS.index("payload")


@mypyc_attr(acyclic=True)
class MemoryRecord:
    """A record as the memory store keeps it: the fields of `Record` in the same order, without times of its own.

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
        "progress",
        "reason",
        "result",
        "result_size",
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
        progress: str,
    ) -> None:
        # Compiled, attributes lie in this order, and two small ones at the beginning share a word.
        self.keeps_result = keeps_result
        self.priority: i16 = priority
        self.id = id
        self.handle = handle
        self.function = function
        self.unique = unique
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
        self.progress = progress
        self.result_size = 0  # of a result that was cut

    def record(self) -> Record:
        """Convert it."""
        return Record(
            self.id, self.handle, self.function, self.unique, self.priority, self.state, self.submitted_at,
            self.started_at, self.finished_at, self.attempts, self.door, self.worker_door, self.worker, self.code,
            self.reason, self.result, pack_attempts(self.failed_attempts), self.keeps_result,
            self.result_size, len(self.result) if self.result_size else 0, 0.0, 0.0, self.progress,
        )  # fmt: skip


def _memory_record(record: Record) -> MemoryRecord:
    made = MemoryRecord(
        record.id, record.handle, record.function, record.unique, record.priority, record.state, record.submitted_at,
        record.started_at, record.finished_at, record.attempts, record.door, record.worker_door, record.worker,
        record.code, record.reason, record.result, unpack_attempts(record.failed_attempts), record.keeps_result,
        record.progress,
    )  # fmt: skip
    made.result_size = record.result_size
    return made


class MemoryStore:
    """Jobs and records in dictionaries.

    A new record is only appended to a list, and indexed by id when a query comes: most are pruned before that.
    """

    durable = False

    def __init__(self, limits: contract.ResultLimits = _LIMITS) -> None:
        self._rows: dict[int, tuple[Any, ...]] = {}  # of jobs, by id
        self._records: dict[int, MemoryRecord] = {}  # of done and cancelled jobs by id, the oldest first
        self._unindexed: list[MemoryRecord] = []  # newer than all of `_records`
        self._failed: dict[int, MemoryRecord] = {}  # of failed jobs by id, the oldest first
        self._index_lock = threading.Lock()  # any thread may query
        self._saved_values: dict[str, bytes] = {}
        self._next_id = max(1, int((time.time() - _EPOCH) * 1_000_000))
        self._result_limit: i64 = min(limits.inline, limits.largest)
        self._largest = limits.largest
        self._total = limits.total_in_memory
        self._large: dict[int, MemoryRecord] = {}  # with more than `_result_limit` bytes of result, the oldest first
        self._rest_bytes = 0  # of these results, beyond `_result_limit`
        self._failed_rows: dict[int, tuple[Any, ...]] = {}  # of failed jobs that are kept whole, the oldest first
        self._failed_bytes = 0  # of their payloads
        self._most_failed_bytes = limits.failed_in_memory
        self._logs: dict[int, bytes] = {}  # by id, the one that was extended longest ago first
        self._log_bytes = 0
        self._most_log_bytes = limits.logs_in_memory
        self._times: dict[int, tuple[float, float]] = {}  # `keep_until` and `remove_at` of records of a dump, by id
        self._unsorted = False  # records of a dump ended before others that were there

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

    def commit(self, batch: contract.Batch) -> contract.CommitOutcome:
        """Apply a batch."""
        revived = {row[0] for row in batch.revived}
        for id in batch.removed_records:
            self.remove_record(id, id in revived)
        for row in map(contract.whole_row, batch.saved_jobs):
            self._rows[row[0]] = row  # type: ignore[index]
        for id in batch.removed_jobs:
            self._rows.pop(id, None)
        for record in batch.finished:
            self._rows.pop(record.id, None)
            self.add_record(_memory_record(record))
        for row in batch.failed:
            self.add_failed(row)
        for id, added in batch.logs:
            self.add_log(id, added)
        self._saved_values.update(batch.saved_values)
        self._next_id = max(self._next_id, batch.ids_until)
        return contract.COMMITTED

    def add_record(self, record: MemoryRecord) -> None:
        """Add a record without a batch."""
        if record.state == _FAILED:
            with self._index_lock:
                self._failed[record.id] = record
        else:
            self._unindexed.append(record)
        if len(record.result) > self._result_limit:
            self._add_large(record)

    def load_record(self, record: Record, row: tuple[Any, ...] | None) -> None:
        """Add a record of a dump, and the row of the failed job that is kept with it."""
        self.add_record(_memory_record(record))
        if row is not None:
            self.add_failed(row)
        if record.keep_until or record.remove_at:
            self._times[record.id] = (record.keep_until, record.remove_at)
        self._unsorted = True

    def record_handle(self, id: int) -> bytes | None:
        """The handle of the job with this id, if there is a record of it."""
        with self._index_lock:
            self._index()
            record = self._records.get(id) or self._failed.get(id)
        return None if record is None else record.handle

    def save_value(self, name: str, value: bytes) -> None:
        """Save a value without a batch."""
        self._saved_values[name] = value

    def add_failed(self, row: tuple[Any, ...]) -> None:
        """Keep a failed job whole, and remove the oldest ones that exceed the limit."""
        with self._index_lock:
            self._forget_failed(row[0])
            self._failed_rows[row[0]] = row
            self._failed_bytes += len(row[_PAYLOAD])
            while self._failed_bytes > self._most_failed_bytes:
                self._forget_failed(next(iter(self._failed_rows)))

    def add_log(self, id: int, added: bytes) -> None:
        """Add lines to the log of a job without a batch, and remove the oldest logs that exceed the limit."""
        with self._index_lock:
            log = contract.extended_log(self._logs.get(id, b""), added)
            self._forget_log(id)
            self._logs[id] = log
            self._log_bytes += len(log)
            while self._log_bytes > self._most_log_bytes:
                self._forget_log(next(iter(self._logs)))

    def job_log(self, id: int) -> bytes:
        """The log of a job."""
        with self._index_lock:
            return self._logs.get(id, b"")

    def remove_record(self, id: int, keep_log: bool = False) -> None:
        """Remove the record of a job, with all that is kept of it; the log stays if the job lives on."""
        with self._index_lock:
            self._index()
            self._records.pop(id, None)
            self._failed.pop(id, None)
            self._times.pop(id, None)
            self._forget_large(id)
            self._forget_failed(id)
            if not keep_log:
                self._forget_log(id)

    def records(self, query: contract.Query) -> list[Record]:
        """The newest first. Candidates are copied under the lock, because the event loop goes on adding records."""
        id = id_from_handle(query.handle)
        with self._index_lock:
            self._index()
            record = self._records.get(id) or self._failed.get(id)
            if record is not None:
                candidates = [[record]]
            else:
                self._sort()
                candidates = [
                    [record for record in records.values() if not query.below or record.id < query.below]
                    for records in (self._records, self._failed)
                ]
            payloads = {id: row[_PAYLOAD] for id, row in self._failed_rows.items()} if query.search else {}
        matching = _matching(_newest_first(candidates), query, payloads)
        if query.by_id:
            matching = iter(heapq.nlargest(query.limit, matching, key=lambda record: record.id))
        return [self._record(record) for record in itertools.islice(matching, query.limit)]

    def _record(self, record: MemoryRecord) -> Record:
        times = self._times.get(record.id)
        made = record.record()
        return made if times is None else made._replace(keep_until=times[0], remove_at=times[1])

    def kept_result(self, record: Record) -> bytes:
        """The result of the record, which is not divided here."""
        return record.result

    def payloads(self, ids: Sequence[int], longest: int) -> dict[int, FailedPayload]:
        """The payloads of failed jobs."""
        with self._index_lock:
            kept = {id: self._failed_rows[id][_PAYLOAD] for id in ids if id in self._failed_rows}
        return {id: FailedPayload(len(payload), payload[:longest]) for id, payload in kept.items()}

    def failed_jobs(self, ids: Sequence[int], kind: type[contract.J], most_bytes: int) -> list[contract.J | None]:
        """The failed jobs with these ids; all of them, because their payloads are in memory anyway."""
        with self._index_lock:
            kept = [self._failed_rows.get(id) for id in ids]
        return [None if row is None else rows.failed_job(row, kind) for row in kept]

    def ends(self, first: int, last: int) -> dict[int, JobState]:
        """How jobs have ended, by id."""
        with self._index_lock:
            self._index()
            found = (self._records.get(id) or self._failed.get(id) for id in range(first, last + 1))
            return {record.id: JobState(record.state) for record in found if record is not None}

    def prune(self, now: float, retention: contract.Retention) -> int:
        """Remove the oldest records."""
        with self._index_lock:
            if self._large or self._unsorted or retention.done.seconds < now:
                self._index()
            self._sort()
            removed = self._prune(self._records, len(self._unindexed), now, retention.done)
            unindexed = max(len(self._records) + len(self._unindexed) - retention.done.most, 0)
            if self._logs or self._failed_rows:
                for record in self._unindexed[:unindexed]:
                    self._forget_log(record.id)
                    self._forget_failed(record.id)
            del self._unindexed[:unindexed]
            return removed + unindexed + self._prune(self._failed, 0, now, retention.failed)

    def close(self, next_id: int) -> None:
        """Keep everything: the same object may be opened again."""
        self._next_id = next_id

    def _prune(self, records: dict[int, MemoryRecord], newer: int, now: float, quota: contract.Quota) -> int:
        """Remove the oldest of these records; there are `newer` ones elsewhere."""
        excess = max(len(records) + newer - quota.most, 0)
        old = set(itertools.islice(records, excess))
        before = now - quota.seconds
        if before > 0.0:  # only then walk all records
            old.update(record.id for record in records.values() if record.finished_at < before)
        for id in old:
            del records[id]
            self._times.pop(id, None)
            self._forget_large(id)
            self._forget_failed(id)
            self._forget_log(id)
        return len(old)

    def _add_large(self, record: MemoryRecord) -> None:
        """Cut a result that is too large, and shorten the oldest ones until all fit into the total."""
        size = len(record.result)
        if size > self._largest:
            record.result_size = record.result_size or size
            record.result = record.result[: self._largest]
        self._large[record.id] = record
        self._rest_bytes += len(record.result) - self._result_limit
        while self._rest_bytes > self._total:
            oldest = self._large[next(iter(self._large))]
            self._forget_large(oldest.id)
            oldest.result_size = oldest.result_size or len(oldest.result)
            oldest.result = oldest.result[: self._result_limit]

    def _forget_large(self, id: int) -> None:
        record = self._large.pop(id, None)
        if record is not None:
            self._rest_bytes -= len(record.result) - self._result_limit

    def _forget_failed(self, id: int) -> None:
        row = self._failed_rows.pop(id, None)
        if row is not None:
            self._failed_bytes -= len(row[_PAYLOAD])

    def _forget_log(self, id: int) -> None:
        log = self._logs.pop(id, None)
        if log is not None:
            self._log_bytes -= len(log)

    def _index(self) -> None:
        """Move new records into the dictionary. More may be appended meanwhile."""
        count = len(self._unindexed)
        for record in self._unindexed[:count]:
            self._records[record.id] = record
        del self._unindexed[:count]

    def _sort(self) -> None:
        """Restore the order in time after a dump was loaded."""
        if self._unsorted:
            self._unsorted = False
            self._records = dict(sorted(self._records.items(), key=_end_of))
            self._failed = dict(sorted(self._failed.items(), key=_end_of))


def _end_of(item: tuple[int, MemoryRecord]) -> float:
    return item[1].finished_at


def _newest_first(candidates: list[list[MemoryRecord]]) -> Iterator[MemoryRecord]:
    """Merge lists that have the oldest first."""
    return iter(heapq.merge(*[reversed(records) for records in candidates], key=_finished_at, reverse=True))


def _finished_at(record: MemoryRecord) -> float:
    return record.finished_at


def _matching(
    candidates: Iterable[MemoryRecord], query: contract.Query, payloads: dict[int, bytes]
) -> Iterator[MemoryRecord]:
    for record in candidates:
        if query.matches(record, payloads.get(record.id, b"")):
            yield record
