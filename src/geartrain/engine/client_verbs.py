"""What clients do: submit jobs, look for them, watch them, cancel them."""

from typing import Final

from geartrain.engine.function import Function
from geartrain.engine.interfaces import Watcher
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import CANCELLED, DEAD, QUEUED, RUNNING, SCHEDULED, enter
from geartrain.engine.state import EngineState
from geartrain.errors import QueueFullError
from geartrain.model import Duplicate, Priority, id_from_handle

_NORMAL: Final = int(Priority.NORMAL)
_COALESCE: Final = Duplicate.COALESCE


class ClientVerbs(EngineState):
    """The engine's side that clients come to."""

    def submit(
        self,
        function: bytes,
        unique: bytes = b"",
        payload: bytes = b"",
        priority: int = _NORMAL,
        background: bool = False,
        watcher: Watcher | None = None,
        run_at: float = 0.0,
        door: str = "",
        timeout: float = 0.0,
        duplicate: Duplicate = _COALESCE,
        count: int = 0,
        reducer: bytes = b"",
        reserved_id: int = 0,
        keeps_result: bool = True,
    ) -> LiveJob:
        """Queue a job, or join the one that has its unique key already.

        `run_at` is in epoch seconds; 0 means now, and a past time gives a place ahead of later ones. `reserved_id` is
        one that `reserve_id` gave. `keeps_result` is false where nobody will ask for the result.
        """
        home = self.functions.get(function)
        if home is None:
            home = self.function(function)
        now = self.now
        if unique:
            twin = home.unique_jobs.get(unique)
            if twin is not None:
                self._join_in(twin, background, watcher)
                if duplicate is not _COALESCE and twin.state is not RUNNING:
                    return self._replace(home, twin, payload, priority, run_at or now, timeout, count, reducer)
                return twin
        if home.limited:
            limit = home.limits[priority]
            if limit and home.total >= limit:
                raise QueueFullError(function, limit)
        id = reserved_id
        if not id:
            id = self.next_id
            self.next_id = id + 1
        job = LiveJob(
            id,
            self.handle_prefix + b"%d" % id,
            home.name,
            unique,
            payload,
            priority,
            background,
            run_at or now,
            now,
            door,
        )
        if timeout or count or reducer:
            job.timeout, job.count, job.reducer = timeout, count, reducer
        if not keeps_result:
            job.keeps_result = False
        self.jobs.add(job)
        if unique:
            home.unique_jobs[unique] = job
        if watcher is not None:
            job.watchers = [watcher]
            watcher.watching.add(job)
        if background:
            self.journal.accepted(job)
        if self.observer is not None:
            self.observer.created(job)
        self._admit(home, job)
        return job

    def reserve_id(self) -> int:
        """An id for a job that is to be submitted later, or never; no other job gets it."""
        id = self.next_id
        self.next_id = id + 1
        return id

    def find(self, handle: bytes) -> LiveJob | None:
        """The job of that handle, while it is scheduled, queued or running."""
        return _of_handle(self.jobs.get(self._id(handle)), handle)

    def find_dead(self, handle: bytes) -> LiveJob | None:
        """The job of that handle, if it was set aside as dead."""
        return _of_handle(self.dead.get(self._id(handle)), handle)

    def _id(self, handle: bytes) -> int:
        return self.odd_handles.get(handle) or id_from_handle(handle)

    def find_unique(self, unique: bytes) -> LiveJob | None:
        """The newest job with that unique key, over all functions."""
        twins = [f.unique_jobs[unique] for f in self.functions.values() if unique in f.unique_jobs]
        return max(twins, key=_by_id, default=None)

    def watch(self, job: LiveJob, watcher: Watcher, first: bool = False) -> None:
        """From now on `watcher` hears of `job`; `first`: before those who watch it already."""
        self._join_in(job, False, watcher)
        if first and job.watchers:
            job.watchers.insert(0, job.watchers.pop())

    def unwatch_all(self, watcher: Watcher) -> None:
        """A client is gone. Foreground jobs that nobody else waits for need not be run any more."""
        for job in list(watcher.watching):
            self.unwatch(job, watcher)

    def unwatch(self, job: LiveJob, watcher: Watcher) -> None:
        """A client no longer waits for this job."""
        if job not in watcher.watching:
            return
        watcher.watching.discard(job)
        left = [other for other in job.watchers or () if other is not watcher]
        job.watchers = left or None
        if not left and not job.background and job.state is not RUNNING:
            self._finish(job, CANCELLED, b"")

    def cancel(self, job: LiveJob, reason: str = "cancelled") -> None:
        """End a job now, whatever its state. A worker that runs it is told where its protocol can say so."""
        if job.state is DEAD:
            self._erase(job)
            return
        workers = self._holders(job)
        for worker in workers:
            worker.forgive_late(job.handle)
        self._fail(job, CANCELLED, reason)
        for worker in workers:
            worker.revoked(job)

    def run_now(self, job: LiveJob) -> None:
        """Let a scheduled job run now."""
        if job.state is not SCHEDULED:
            return
        home = self.functions[job.function]
        enter(job, QUEUED)
        home.scheduled -= 1
        self.scheduled -= 1
        self.schedule.leave()
        job.run_at = self.now
        if job.background:
            self.journal.changed(job)
        self._enqueue(home, job)

    def keep_result(self, job: LiveJob) -> None:
        """Somebody will ask for the result of a job, also if it was submitted by one who would not."""
        if not job.keeps_result:
            job.keeps_result = True
            if job.background:
                self.journal.changed(job)

    def retract(self, job: LiveJob) -> None:
        """A background job was accepted and could not be made durable: its submitter is told so.

        If nobody else waits for it and no worker has it yet, it is as if it had never been submitted.
        """
        job.background = False
        if self.jobs.get(job.id) is job and not job.watchers and job.state is not RUNNING:
            self._finish(job, CANCELLED, b"")

    def _admit(self, home: Function, job: LiveJob) -> None:
        """Give a new job its first place."""
        if job.run_at > self.now:
            job.state = SCHEDULED
            self._add_scheduled(home, job)
        else:
            self._enqueue(home, job)

    def _join_in(self, job: LiveJob, background: bool, watcher: Watcher | None) -> None:
        """A second submission of a job: it lives on in the background if any submitter wanted that."""
        if background and not job.background:
            job.background = True
            self.journal.accepted(job)
        if watcher is not None:
            watcher.watching.add(job)
            if job.watchers is None:
                job.watchers = [watcher]
            else:
                job.watchers.append(watcher)

    def _replace(
        self,
        home: Function,
        old: LiveJob,
        payload: bytes,
        priority: int,
        run_at: float,
        timeout: float,
        count: int,
        reducer: bytes,
    ) -> LiveJob:
        """Put a new object in the place of a waiting job: same handle and watchers, the rest as given."""
        watchers = old.watchers
        self._detach(home, old, CANCELLED)
        job = LiveJob(
            old.id, old.handle, home.name, old.unique, payload, priority, old.background, run_at,
            old.submitted_at, old.door,
        )  # fmt: skip
        job.timeout, job.count, job.reducer = timeout, count, reducer
        job.keeps_result = old.keeps_result
        self.jobs.add(job)
        home.unique_jobs[job.unique] = job
        job.watchers = watchers
        for watcher in watchers or ():
            watcher.watching.add(job)
        if job.background:
            self.journal.changed(job)
        self._admit(home, job)
        return job


def _by_id(job: LiveJob) -> int:
    return job.id


def _of_handle(job: LiveJob | None, handle: bytes) -> LiveJob | None:
    """The job that was found by its id, if the whole handle is its own."""
    return job if job is not None and job.handle == handle else None
