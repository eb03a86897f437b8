"""The memory store: keeps the contract, and forgets everything when the server stops."""

import heapq
import itertools
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any, Final

from geartrain.model import id_from_handle
from geartrain.store import contract, rows
from geartrain.store.memory_record import MemoryRecord

# Without a file to remember the last id, the first one is the time in microseconds since 2026: no server gives
# out a million ids a second for long, so a handle never comes back for another job after a restart.
_EPOCH: Final = 1_767_225_600


class MemoryStore:
    """Jobs and records in dictionaries.

    A record that is noted is only put down, and finds its place when somebody asks: most go again before anybody does.
    """

    durable = False

    def __init__(self) -> None:
        self._rows: dict[int, tuple[Any, ...]] = {}
        self._records: dict[int, MemoryRecord | contract.Record] = {}
        self._notes: list[MemoryRecord] = []  # newer than all of them
        self._sorting = threading.Lock()  # any thread may ask
        self._kept: dict[str, bytes] = {}
        self._next_id = max(1, int((time.time() - _EPOCH) * 1_000_000))

    def open(self) -> int:
        """Always succeeds."""
        return self._next_id

    def jobs(self, kind: type[contract.J]) -> Iterator[contract.J]:
        """The jobs that were saved and did not finish."""
        for _, row in sorted(self._rows.items()):
            yield rows.job(row, kind)

    def saved_values(self) -> dict[str, bytes]:
        """What was kept in this process."""
        return dict(self._kept)

    def commit(self, batch: contract.Batch) -> None:
        """Remember a batch."""
        for row in batch.saved_jobs:
            self._rows[row[0]] = row  # type: ignore[index]
        with self._sorting:
            self._sort()
            for record in batch.finished:
                self._rows.pop(record.id, None)
                self._records[record.id] = record
        self._kept.update(batch.saved_values)
        self._next_id = max(self._next_id, batch.ids_until)

    def add_record(self, memo: MemoryRecord) -> None:
        """Remember a record by itself, without the ceremony of a batch."""
        self._notes.append(memo)

    def records(self, query: contract.Query) -> list[contract.Record]:
        """Newest first. What there is is listed in one go before it is looked at: the loop goes on meanwhile."""
        id = id_from_handle(query.handle)
        with self._sorting:
            self._sort()
            candidates = [self._records[id]] if id in self._records else list(self._records.values())
        found = _fitting(reversed(candidates), query)
        if query.by_id:
            found = iter(heapq.nlargest(query.limit, found, key=lambda record: record.id))
        return [
            each.record() if isinstance(each, MemoryRecord) else each for each in itertools.islice(found, query.limit)
        ]

    def prune(self, before: float, keep: int) -> int:
        """Forget the oldest."""
        with self._sorting:
            if before > 0.0:
                self._sort()
            excess = max(len(self._records) + len(self._notes) - keep, 0)
            old = set(itertools.islice(self._records, excess))
            if before > 0.0:  # to look at all of them takes a while
                old.update(record.id for record in self._records.values() if record.finished_at < before)
            for id in old:
                del self._records[id]
            unsorted = max(excess - len(old), 0)
            del self._notes[:unsorted]
            return len(old) + unsorted

    def close(self, next_id: int) -> None:
        """The same object may be opened again, and goes on where it was."""
        self._next_id = next_id

    def _sort(self) -> None:
        """Give every note its place. More may be noted meanwhile, at the end."""
        count = len(self._notes)
        for memo in self._notes[:count]:
            self._records[memo.id] = memo
        del self._notes[:count]


def _fitting(
    candidates: Iterable[MemoryRecord | contract.Record], query: contract.Query
) -> Iterator[MemoryRecord | contract.Record]:
    for record in candidates:
        if query.fits(record):
            yield record
