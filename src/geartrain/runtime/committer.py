"""Group commit: the changes of a tick are one batch, which a thread writes while the next ticks go on.

The engine's journal calls only append rows to the batch that gathers (`gathering.py`). At the end of each tick it goes
to the thread, if the thread is free. Acknowledgements that depend on it wait for its ticket (`durability.py`);
nothing else waits. While the disk is slow batches grow, so the slower it is the more changes each fsync covers. A batch
that only ends jobs gathers a little longer.

If a commit fails, the jobs that the batch would have accepted are retracted and their submitters get an error. So are
jobs that were accepted during the attempt: one of them may be a duplicate of a retracted job. Other changes (jobs that
ended or changed) stay in the batch and are written with the next attempt.

A store that several servers share also decides about unique keys, and may have gone back in time: then every job is
written again. Each commit renews the lease of this server, and an empty one does where there is nothing to write.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import RESERVING
from geartrain.runtime import memory
from geartrain.runtime.commit_timing import CommitTiming
from geartrain.runtime.gathering import GatheringJournal
from geartrain.runtime.tick import TickLoop
from geartrain.runtime.timers import DelayedCall
from geartrain.runtime.work_thread import WorkThread
from geartrain.store import contract
from geartrain.store.shared import FencedError, WentBackError

# Ids are reserved in blocks: no handle may be used twice, even after a crash, and a write per id would cost too much.
# (This and the next five are not Final, because tests set smaller ones and a compiled Final is inlined.)
IDS_RESERVED = 10_000_000
_RETRY_SECONDS = 1.0
_PRUNE_SECONDS = 60.0
_PRUNE_EVERY = 1000  # records
# Jobs that end wait so long for others, because a commit costs more than its rows, and nobody waits for this one.
_GATHER_SECONDS = 0.02
_GATHER_MOST = 2000
_LIMITS: Final = contract.ResultLimits()
_DURATIONS: Final = 1000  # commits, for percentiles

T = TypeVar("T")

_log = logging.getLogger("geartrain.store")


class _Writing:
    """What the thread writes, and who waits for it."""

    __slots__ = ("accepted", "batch", "changed", "reserving")

    def __init__(
        self, batch: contract.Batch, accepted: list[LiveJob], changed: list[LiveJob], reserving: list[int]
    ) -> None:
        self.batch = batch
        self.accepted = accepted
        self.changed = changed
        self.reserving = reserving


class Committer(GatheringJournal):
    """The engine's journal over a durable store."""

    def __init__(
        self,
        store: contract.Store,
        keep: contract.Retention,
        limits: contract.ResultLimits = _LIMITS,
        thread: WorkThread | None = None,
    ) -> None:
        super().__init__(limits.largest)
        self._store = store
        self._keep = keep
        self._tick_loop: TickLoop | None = None  # until `start`
        self._writing: _Writing | None = None  # in the thread
        self._store_thread = thread if thread is not None else WorkThread("store")
        self._failing = False
        self._retry: DelayedCall | None = None
        self._gather_timer: DelayedCall | None = None
        self._return_timer: DelayedCall | None = None
        self._timing = CommitTiming()
        self._prune_timer: DelayedCall | None = None
        self._unpruned = 0
        self.commit_seconds = 0.0  # duration of the last commit
        self.commits = 0
        self.total_seconds = 0.0  # of all commits
        self.durations: deque[float] = deque(maxlen=_DURATIONS)  # of the last commits, in seconds
        # Of a store that is shared, set by the cluster:
        self.beat_seconds = 0.0  # after so many seconds without a commit there is an empty one; 0: there is none
        self.known_node = 0  # the newest server that this one knows of
        self.prunes = True  # whether this server removes old records
        self.on_renewed: Callable[[], None] | None = None  # called after each commit
        self.on_fenced: Callable[[], None] | None = None  # called when others have taken this server for dead
        # Rows of the jobs that it had then, if the store has lost some of its commits.
        self.unwritten: list[tuple[object, ...]] = []
        self.restored: Sequence[tuple[int, int]] = ()  # ranges of other servers' ids whose jobs the engine has
        # Called with a job and another server's job with the same unique key; whether it takes care of the first one.
        self.on_twin: Callable[[LiveJob, contract.Twin], bool] | None = None
        self._committed_at = 0.0  # when the last batch was handed to the thread, by the loop's clock
        self._beat_timer: DelayedCall | None = None
        self._is_fenced = False
        self._is_stopping = False
        self._value_versions: dict[str, int] = {}  # of the values that this server has saved

    def is_older(self, name: str, version: int) -> bool:
        """Whether the value that this server has saved under a name is older than that version of the store."""
        if name in self._batch.saved_values or (self._writing is not None and name in self._writing.batch.saved_values):
            return False
        return self._value_versions.get(name, 0) <= version

    def drained(self) -> None:
        """Return freed memory to the system; in the thread, since it takes some milliseconds."""
        self._store_thread.put(memory.trim)

    def _note_change(self) -> None:
        """Have the batch written at the end of this tick, even if no connection has anything to write."""
        if self._tick_loop is not None:
            self._durability.changed()
            self._tick_loop.schedule_tick()

    @property
    def failing(self) -> bool:
        """Whether the last commit failed, so that new background jobs are refused."""
        return self._failing

    @property
    def changes(self) -> int:
        """The number of changes that are not durable yet."""
        return self._batch.size + (self._writing.batch.size if self._writing is not None else 0)

    # Start and stop

    def start(self, tick_loop: TickLoop) -> None:
        """Reserve the first ids and start the thread; a StoreError if the store cannot be written."""
        self._tick_loop = tick_loop
        self._loop = tick_loop.loop
        self._timers = tick_loop.timers
        self._engine = tick_loop.engine
        self._reserved_until = self._engine.next_id + IDS_RESERVED
        reservation = contract.Batch()
        reservation.ids_until = self._reserved_until
        self._store.commit(reservation)
        self._durability = tick_loop.durability
        if self._batch:
            self._durability.changed()
        tick_loop.after.append(self._submit_batch)
        self._store_thread.start()
        self._prune_timer = self._timers.call_later(_PRUNE_SECONDS, self._prune_periodically)
        if self.beat_seconds:
            self._beat_timer = self._timers.call_later(self.beat_seconds, self._beat)

    async def call(self, function: Callable[[], T]) -> T:
        """Call a function in the thread, between two commits."""
        answer: asyncio.Future[T] = self._loop.create_future()

        def call() -> None:
            try:
                result = function()
            except Exception as error:
                self._loop.call_soon_threadsafe(_set_exception, answer, error)
            else:
                self._loop.call_soon_threadsafe(_set_result, answer, result)

        self._store_thread.put(call)
        return await answer

    async def stop(self) -> None:
        """Write the rest, with one more attempt if the last commit failed, and end the thread."""
        self._cancel_timers()
        self._is_stopping = True
        self._submit_batch()
        while self._writing is not None:
            done: asyncio.Future[None] = self._loop.create_future()
            self._store_thread.put(lambda done=done: self._set_done(done))  # type: ignore[misc]
            await done
            await asyncio.sleep(0)
            if self._failing:
                break
        if self._batch and not self._is_fenced:
            fields = {"changes": self._batch.size}
            _log.error("changes lost: the last commit failed", extra={"fields": fields})
        self._cancel_timers()
        self._store_thread.end()
        await self._loop.run_in_executor(None, self._store_thread.join)

    def _cancel_timers(self) -> None:
        for timer in (self._prune_timer, self._retry, self._beat_timer, self._gather_timer, self._return_timer):
            if timer is not None:
                timer.cancel()
        self._prune_timer = self._retry = self._beat_timer = self._gather_timer = self._return_timer = None

    def _set_done(self, done: asyncio.Future[None]) -> None:
        self._loop.call_soon_threadsafe(done.set_result, None)

    # Batches

    def _submit_batch(self) -> None:
        """Hand the batch to the thread, if the thread is free."""
        timing = self._timing
        if timing.is_somebody_away:
            assert self._tick_loop is not None
            timing.observe(self._durability.waiting, self._tick_loop.clock())
        if self._writing is not None or self._is_fenced:
            return
        batch = self._batch
        if self._engine.next_id + IDS_RESERVED // 2 > self._reserved_until:
            batch.ids_until = self._engine.next_id + IDS_RESERVED
        if not batch:
            return
        if self._failing and not self._accepted and self._retry is not None:
            return
        if self._is_stopping or len(batch.finished) >= _GATHER_MOST:
            self._hand_over(batch)
        elif batch.only_ends_jobs and not self._durability.is_awaited:
            if self._gather_timer is None:
                self._gather_timer = self._timers.call_later(_GATHER_SECONDS, self._stop_gathering)
        elif not timing.is_somebody_away:
            self._hand_over(batch)
        else:
            self._await_others(batch)

    def _await_others(self, batch: contract.Batch) -> None:
        """Have the batch wait for those whom the last commit has answered, if they are expected soon."""
        if self._return_timer is not None:
            return
        assert self._tick_loop is not None
        patience = self._timing.patience(self._tick_loop.clock())
        if patience:
            self._return_timer = self._timers.call_later(patience, self._stop_awaiting)
        else:
            self._hand_over(batch)

    def _stop_gathering(self) -> None:
        self._gather_timer = None
        if self._writing is None and self._batch and not self._is_fenced:
            self._hand_over(self._batch)

    def _stop_awaiting(self) -> None:
        self._return_timer = None
        if self._writing is None and self._batch and not self._is_fenced:
            self._hand_over(self._batch)

    def _beat(self) -> None:
        """Commit nothing, so that the other servers see that this one lives."""
        self._beat_timer = self._timers.call_later(self.beat_seconds, self._beat)
        if (
            self._writing is None
            and not self._is_fenced
            and self._loop.time() >= self._committed_at + self.beat_seconds * 0.9
        ):
            self._hand_over(self._batch)

    def _hand_over(self, batch: contract.Batch) -> None:
        """Give the batch that gathered to the thread, and begin another one."""
        if self._return_timer is not None:
            self._return_timer.cancel()
            self._return_timer = None
        batch.known_node = self.known_node
        self._writing = _Writing(batch, self._accepted, self._changed, self._reserving)
        self._batch, self._accepted, self._changed, self._reserving = contract.Batch(), [], [], []
        self._committed_at = self._loop.time()
        assert self._tick_loop is not None
        self._timing.begin_commit(self._durability.waiting, self._tick_loop.clock())
        self._durability.begin_commit()
        self._unpruned += len(batch.finished)
        prune = self._unpruned >= _PRUNE_EVERY
        if prune:
            self._unpruned = 0
        self._store_thread.put(lambda: self._write(batch, prune))

    def _write(self, batch: contract.Batch, prune: bool) -> None:
        """Commit. Runs in the thread."""
        began = time.perf_counter()
        failure: Exception | None = None
        outcome = contract.COMMITTED
        try:
            outcome = self._store.commit(batch)
        except Exception as error:  # whatever it is, the waiting connections need an answer
            failure = error
        took = time.perf_counter() - began
        self._loop.call_soon_threadsafe(self._commit_ended, failure, outcome, took)
        if prune and failure is None:
            self._prune()

    def _commit_ended(self, failure: Exception | None, outcome: contract.CommitOutcome, took: float) -> None:
        """Answer the connections that wait for the commit. Runs in the loop."""
        assert self._writing is not None
        assert self._tick_loop is not None
        writing = self._writing
        batch = writing.batch
        if isinstance(failure, FencedError) and self.on_fenced is not None:
            if failure.has_lost:
                self.unwritten = self._acknowledged_jobs(writing)
            self._end()
            self.on_fenced()
            return
        if isinstance(failure, WentBackError):
            self._write_everything(writing)
            return
        self._writing = None
        self.commit_seconds = took
        self.commits += 1
        self.total_seconds += took
        self.durations.append(took)
        if failure is None:
            self._forget_uncommitted(batch)
            self._engine.payloads.committed(writing.accepted)
            self._engine.payloads.committed(writing.changed)
            self._reserved_until = max(self._reserved_until, batch.ids_until)
            self._recover()
            if self.on_renewed is not None:
                self._tick_loop.begin_tick()
                self.on_renewed()
                self._apply(outcome, writing)
        else:
            self._tick_loop.begin_tick()
            self._undo(writing, failure)
        self._timing.end_commit(self._durability.expected, self._tick_loop.clock())
        self._durability.end_commit(failure is not None)
        self._submit_batch()

    def _acknowledged_jobs(self, writing: _Writing) -> list[tuple[object, ...]]:
        """Rows of all jobs whose submitters were told that the server has them."""
        engine = self._engine
        others = {job.id for job in (*writing.accepted, *self._accepted)} | engine.borrowed.keys()
        tables = (engine.jobs.values(), engine.dead.values())
        return [
            contract.row(job)
            for table in tables
            for job in table
            if job.background and job.id not in others and (job.state is not RESERVING or engine.is_revived(job))
        ]

    def _forget_uncommitted(self, batch: contract.Batch) -> None:
        """The store has this batch now."""
        uncommitted = self.uncommitted
        for record in batch.finished:
            uncommitted.records.pop(record.handle, None)
        for row in batch.failed:
            uncommitted.payloads.pop(row[0], None)  # type: ignore[call-overload]
        uncommitted.removed.difference_update(batch.removed_records)

    def _apply(self, outcome: contract.CommitOutcome, writing: _Writing) -> None:
        """Queue the jobs whose keys are free, and drop those whose keys other servers have."""
        engine = self._engine
        ceded = outcome.twins
        for id in dict.fromkeys([*writing.reserving, *ceded]):
            job = engine.jobs.get(id)
            if job is None:
                engine.end_key_wait(id)
                continue
            twin = ceded.get(id)
            if twin is None:
                engine.confirm(job)
            elif self.on_twin is None or not self.on_twin(job, twin):
                engine.cede(job, twin.handle)
        if outcome.version:
            self._value_versions.update(dict.fromkeys(writing.batch.saved_values, outcome.version))
        if outcome.first_id:
            engine.next_id = outcome.first_id
            self._reserved_until = outcome.first_id + IDS_RESERVED

    def _write_everything(self, writing: _Writing) -> None:
        """The store is as it was some time ago: write all jobs, and the changes that could not be written."""
        engine = self._engine
        reserving = {*writing.reserving, *self._reserving}

        def is_asked_for(job: LiveJob) -> bool:
            """Whether another server is being asked for its key: nobody was told of the job, and it has no row yet."""
            return job.state is RESERVING and job.id not in reserving and not engine.is_revived(job)

        tables = (engine.jobs.values(), engine.dead.values())
        jobs = [job for table in tables for job in table if job.background and not is_asked_for(job)]
        everything = contract.Batch()
        writing.batch.rejoin(everything, frozenset())
        everything.accepted, everything.revived = [], []
        everything.changed = list(map(contract.row, jobs))
        held = [job for id in engine.held_keys if (job := engine.jobs.get(id)) is not None and not is_asked_for(job)]
        everything.changed += map(contract.key_row, held)
        everything.is_whole, everything.restored = True, list(self.restored)
        writing.batch = everything
        gathering = self._batch  # its rows are among them
        gathering.changed = list(map(contract.whole_row, gathering.saved_jobs))
        gathering.accepted, gathering.revived = [], []
        self._store_thread.put(lambda: self._write(everything, False))

    def _end(self) -> None:
        """Others have the jobs of this server: write nothing more, and let nobody hear that it was written."""
        self._is_fenced = True
        self._writing = None
        self._batch, self._accepted, self._changed, self._reserving = contract.Batch(), [], [], []

    def _undo(self, writing: _Writing, failure: Exception) -> None:
        """Retract the jobs that were accepted in this batch and since, and keep the rest for the next attempt."""
        if not self._failing:
            self._failing = True
            fields = {"why": str(failure) or type(failure).__name__}
            _log.error("commit failed; refusing new background jobs", extra={"fields": fields})
        accepted = [*writing.accepted, *self._accepted]
        self._accepted = []
        self._changed = [*writing.changed, *self._changed]
        retracted = {job.id for job in accepted} | self._engine.held_keys
        self._reserving = [*writing.reserving, *self._reserving]
        for job in [job for id in self._reserving if (job := self._engine.jobs.get(id)) is not None]:
            if job.id in self._engine.held_keys:
                self._engine.give_up_key(job)
        for job in accepted:
            self.uncommitted.records.pop(job.handle, None)
            self.uncommitted.payloads.pop(job.id, None)
            self._engine.retract(self._engine.find(job.handle) or job)  # a later job may have replaced it
        later = self._batch
        writing.batch.rejoin(later, retracted)
        if later:
            self._durability.changed()
        if self._retry is None:
            self._retry = self._timers.call_later(_RETRY_SECONDS, self._retry_commit)

    def _retry_commit(self) -> None:
        self._retry = None
        self._submit_batch()

    def _recover(self) -> None:
        if self._failing:
            self._failing = False
            if self._retry is not None:
                self._retry.cancel()
                self._retry = None
            _log.warning("commits work again")

    # Old records

    def _prune_periodically(self) -> None:
        self._prune_timer = self._timers.call_later(_PRUNE_SECONDS, self._prune_periodically)
        self._store_thread.put(self._prune)

    def _prune(self) -> None:
        """Delete a bounded number of old records. Runs in the thread."""
        if not self.prunes:
            return
        try:
            self._store.prune(time.time(), self._keep)
        except Exception as error:
            _log.warning("pruning records failed", extra={"fields": {"why": str(error)}})


def _set_result(answer: asyncio.Future[T], result: T) -> None:
    if not answer.done():  # who waited for it may have been cancelled
        answer.set_result(result)


def _set_exception(answer: asyncio.Future[T], error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
