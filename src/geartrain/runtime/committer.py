"""Group commit: what one tick makes durable is one batch, written by a thread while the next tick goes on.

The engine's journal calls only add rows to the batch that is gathering. After each flush, if the thread is free,
the batch is handed to it under a ticket number; acknowledgements that depend on it wait in their connections
for that ticket (see `Connection.acknowledge`), and nothing else waits. While the disk is slow the batches grow, so
the slower it is the more each fsync carries.

If a batch cannot be written, the jobs that it would have accepted are withdrawn and their submitters told. So are
those that came while it was tried: one of them may be a duplicate of a job that is withdrawn. The rest (jobs that
ended or changed) is kept and written when the disk works again.
"""

import asyncio
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from geartrain.engine.interfaces import Journal
from geartrain.engine.job import LiveJob
from geartrain.engine.worker import Worker
from geartrain.model import Record
from geartrain.runtime import memory, records
from geartrain.runtime.tick import TickLoop
from geartrain.runtime.timers import DelayedCall
from geartrain.store import contract

# Ids are promised so many at a time: a handle must not come back after a crash, and a write per id is too much.
# (Not Final, like the three below: a compiled Final is everywhere at once, and tests want smaller ones.)
IDS_PROMISED = 10_000_000
_RETRY_SECONDS = 1.0
_PRUNE_SECONDS = 60.0
_PRUNE_EVERY = 1000  # records
_DURATIONS: Final = 1000  # of commits, for percentiles

_log = logging.getLogger("geartrain.store")


class Retention:
    """How long records of finished jobs are kept: for a time, and up to a number."""

    def __init__(self, seconds: float, count: int) -> None:
        self.seconds = seconds
        self.count = count


class Committer(Journal):
    """The engine's journal over a durable store."""

    def __init__(self, store: contract.Store, keep: Retention) -> None:
        self._store = store
        self._keep = keep
        self._tick_loop: TickLoop | None = None  # until it is started
        self._batch = contract.Batch()  # gathers changes
        self._accepted: list[LiveJob] = []  # by that batch
        self._writing: tuple[contract.Batch, list[LiveJob]] | None = None
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._run, name="store", daemon=True)
        self._pending: dict[bytes, Record] = {}  # records that the store does not have yet, by handle
        self._failing = False
        self._retry: DelayedCall | None = None
        self._prune_timer: DelayedCall | None = None
        self._unpruned = 0
        self.commit_seconds = 0.0  # how long the last commit took
        self.commits = 0  # how many there were
        self.durations: deque[float] = deque(maxlen=_DURATIONS)  # of the last ones, in seconds

    # The journal, called by the engine

    def accepted(self, job: LiveJob) -> None:
        self._batch.saved_jobs.append(contract.row(job))
        self._accepted.append(job)
        self._note_change()

    def changed(self, job: LiveJob) -> None:
        self._batch.saved_jobs.append(contract.row(job))
        self._note_change()

    def finished(self, job: LiveJob, result: bytes, worker: Worker | None) -> None:
        record = records.record(job, result, worker, self._engine.now)
        self._batch.finished.append(record)
        self._pending[job.handle] = record
        self._note_change()

    def drained(self) -> None:
        """Give back what the jobs have used; in the thread, since it takes some milliseconds."""
        self._work.put(memory.give_back)

    def save_value(self, name: str, value: bytes) -> None:
        self._batch.saved_values[name] = value
        self._note_change()

    def _note_change(self) -> None:
        """Have the batch written at the end of this tick."""
        if self._tick_loop is not None:
            self._durability.changed()
            self._tick_loop.schedule_tick()

    @property
    def failing(self) -> bool:
        """Whether the last batch could not be written, so that new jobs are refused."""
        return self._failing

    def pending(self, handle: bytes) -> Record | None:
        """A record that is not in the store yet."""
        return self._pending.get(handle)

    def all_pending(self) -> list[Record]:
        """All of them."""
        return list(self._pending.values())

    @property
    def changes(self) -> int:
        """How many changes are not durable yet."""
        batches = [self._batch, *([self._writing[0]] if self._writing is not None else [])]
        return sum(len(batch.saved_jobs) + len(batch.finished) + len(batch.saved_values) for batch in batches)

    # Life

    def start(self, tick_loop: TickLoop) -> None:
        """Promise the first ids and begin; a StoreError if the store cannot be written."""
        self._tick_loop = tick_loop
        self._loop = tick_loop.loop
        self._timers = tick_loop.timers
        self._engine = tick_loop.engine
        self._promised = self._engine.next_id + IDS_PROMISED
        promise = contract.Batch()
        promise.ids_until = self._promised
        self._store.commit(promise)
        self._durability = tick_loop.durability
        if self._batch:
            self._durability.changed()
        tick_loop.after.append(self._pump)
        self._writer.start()
        self._prune_timer = self._timers.call_later(_PRUNE_SECONDS, self._prune_now_and_then)

    async def stop(self) -> None:
        """Write what is left, with one more attempt if the last one failed; then end the thread."""
        self._cancel_timers()
        self._pump()
        while self._writing is not None:
            done: asyncio.Future[None] = self._loop.create_future()
            self._work.put(lambda done=done: self._tell(done))  # type: ignore[misc]
            await done
            await asyncio.sleep(0)
            if self._failing:
                break
        if self._batch:
            fields = {"changes": len(self._batch.saved_jobs) + len(self._batch.finished)}
            _log.error("the last changes could not be made durable", extra={"fields": fields})
        self._cancel_timers()
        self._work.put(None)
        await self._loop.run_in_executor(None, self._writer.join)

    def _cancel_timers(self) -> None:
        for timer in (self._prune_timer, self._retry):
            if timer is not None:
                timer.cancel()
        self._prune_timer = self._retry = None

    def _tell(self, done: asyncio.Future[None]) -> None:
        self._loop.call_soon_threadsafe(done.set_result, None)

    # Batches

    def _pump(self) -> None:
        """Hand over what has gathered, if the thread is free."""
        if self._writing is not None:
            return
        batch = self._batch
        if self._engine.next_id + IDS_PROMISED // 2 > self._promised:
            batch.ids_until = self._engine.next_id + IDS_PROMISED
        if not batch:
            return
        if self._failing and not self._accepted and self._retry is not None:
            return
        self._writing = (batch, self._accepted)
        self._batch, self._accepted = contract.Batch(), []
        self._durability.begin_commit()
        self._unpruned += len(batch.finished)
        prune = self._unpruned >= _PRUNE_EVERY
        if prune:
            self._unpruned = 0
        self._work.put(lambda: self._write(batch, prune))

    def _write(self, batch: contract.Batch, prune: bool) -> None:
        """In the thread."""
        began = time.perf_counter()
        failure: Exception | None = None
        try:
            self._store.commit(batch)
        except Exception as error:  # whatever it is: those who wait have to be told
            failure = error
        took = time.perf_counter() - began
        self._loop.call_soon_threadsafe(self._written, failure, took)
        if prune and failure is None:
            self._prune()

    def _written(self, failure: Exception | None, took: float) -> None:
        """Back in the loop: let go of what waited for this batch."""
        assert self._writing is not None
        assert self._tick_loop is not None
        batch, accepted = self._writing
        self._writing = None
        self.commit_seconds = took
        self.commits += 1
        self.durations.append(took)
        if failure is None:
            for record in batch.finished:
                self._pending.pop(record.handle, None)
            self._promised = max(self._promised, batch.ids_until)
            self._works_again()
        else:
            self._tick_loop.begin_tick()
            self._put_back(batch, accepted, failure)
        self._durability.end_commit(failure is not None)
        self._pump()

    def _put_back(self, batch: contract.Batch, accepted: list[LiveJob], failure: Exception) -> None:
        """Undo what was accepted, by this batch and since, and keep the rest for the next attempt."""
        if not self._failing:
            self._failing = True
            fields = {"why": str(failure) or type(failure).__name__}
            _log.error("jobs cannot be made durable; new ones are refused until they can", extra={"fields": fields})
        accepted += self._accepted
        self._accepted = []
        undone = {job.id for job in accepted}
        for job in accepted:
            self._pending.pop(job.handle, None)
            self._engine.retract(self._engine.find(job.handle) or job)  # it may have been replaced meanwhile
        since = self._batch
        since.saved_jobs = [row for row in (*batch.saved_jobs, *since.saved_jobs) if row[0] not in undone]
        since.finished = [record for record in (*batch.finished, *since.finished) if record.id not in undone]
        since.saved_values = {**batch.saved_values, **since.saved_values}
        if since:
            self._durability.changed()
        if self._retry is None:
            self._retry = self._timers.call_later(_RETRY_SECONDS, self._try_again)

    def _try_again(self) -> None:
        self._retry = None
        self._pump()

    def _works_again(self) -> None:
        if self._failing:
            self._failing = False
            if self._retry is not None:
                self._retry.cancel()
                self._retry = None
            _log.warning("jobs are made durable again")

    # Old records

    def _prune_now_and_then(self) -> None:
        self._prune_timer = self._timers.call_later(_PRUNE_SECONDS, self._prune_now_and_then)
        self._work.put(self._prune)

    def _prune(self) -> None:
        """In the thread: forget a bounded number of old records."""
        try:
            self._store.prune(time.time() - self._keep.seconds, self._keep.count)
        except Exception as error:
            _log.warning("old records could not be removed", extra={"fields": {"why": str(error)}})

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()
