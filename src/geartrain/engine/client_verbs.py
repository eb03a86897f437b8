"""What clients do: submit, find, watch and cancel jobs."""

from typing import Final

from mypy_extensions import i64

from geartrain.engine import names
from geartrain.engine.blocked_jobs import BlockedJobs
from geartrain.engine.function import Function
from geartrain.engine.interfaces import Watcher
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import CANCELLED, DEAD, QUEUED, RESERVING, RUNNING, SCHEDULED, enter
from geartrain.engine.names import LONGEST_UNIQUE
from geartrain.engine.policy import JOB_BYTES
from geartrain.errors import QueueFullError
from geartrain.model import Duplicate, Priority, id_from_handle
from geartrain.rights import SUBMIT
from geartrain.usage import UserUsage

_NORMAL: Final = int(Priority.NORMAL)
_COALESCE: Final = Duplicate.COALESCE
_NO_BYTES: Final = -(1 << 60)  # less than the jobs that end could give back
_LAST_DIGITS: Final = [b"%03d" % number for number in range(1000)]


class ClientVerbs(BlockedJobs):
    """The engine's verbs for clients."""

    def submit(
        self,
        name: bytes,
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
        keep_for: float = 0.0,
        expires_at: float = 0.0,
        partition: bytes = b"",
        after: bytes = b"",
    ) -> LiveJob:
        """Queue a new job of the function `name`, or return the one that has the unique key.

        `run_at` is in epoch seconds: 0 means now, and a time in the past puts the job before those with later times.
        `reserved_id` comes from `reserve_id`. `keeps_result` is false if no client will ask for the result.
        The record is kept for `keep_for` seconds at least; 0: as long as the settings say.
        No worker gets the job from `expires_at` on, in epoch seconds: it ends as expired; 0: never.
        Jobs of different partitions of a function take turns; a partition may have limits of its own.
        `after` are the jobs that it waits for, from `pack_parents`; a submission that is coalesced waits for no others.
        Raise QueueFullError if the function has reached its limit for this priority, the server that of all payloads
        or the user its quota, and another RequestError if a name is invalid or the function would be one too many.
        """
        usage: UserUsage | None = None
        if self.actor is not None:
            self.require(SUBMIT, name)
            usage = self._usage_for(name)
        function = self.last_function
        if function is None or function.name != name:
            function = self.last_function = self.function(name)
        if len(partition) > 0:
            names.check_partition(partition)
        parents = self._checked_parents(after) if len(after) > 0 else None
        now = self.now
        has_key = len(unique) > 0  # a comparison; compiled, `if unique` is a call
        if has_key:
            if len(unique) > LONGEST_UNIQUE:
                raise names.unique_too_long(unique)
            existing = self.unique_jobs.get(name, unique)
            if existing is not None:
                replaces = duplicate is not _COALESCE and existing.state is not RUNNING
                if replaces and len(payload) > existing.payload_size:
                    self._check_bytes(name, self.free_bytes + existing.payload_size - len(payload))
                if replaces and usage is not None:
                    self._check_replacement(usage, existing, payload)
                self._attach(existing, background, watcher)
                if keep_for > existing.keep_for:
                    self._extend_retention(existing, keep_for)
                if existing.expires_at and existing.expires_at != expires_at:
                    self._extend_expiry(existing, expires_at)
                if replaces:
                    return self._replace(function, existing, payload, priority, run_at or now, timeout, count, reducer)
                return existing
        if function.has_limits:
            limit = function.limits[priority]
            if limit and function.total + function.elsewhere >= limit:
                raise QueueFullError(f"the queue of {name.decode('utf-8', 'replace')!r} is full ({limit} jobs)")
        if usage is not None:
            usage.check(1, len(payload) + JOB_BYTES)
        free_bytes = self.free_bytes - len(payload) - JOB_BYTES
        if free_bytes < 0:
            self._check_bytes(name, free_bytes)
        self.free_bytes = free_bytes
        id = reserved_id
        if not id:
            id = self.next_id
            self.next_id = id + 1
        job = LiveJob(
            id,
            self._new_handle(id),
            function.name,
            unique,
            payload,
            priority,
            background,
            run_at or now,
            now,
            door,
        )
        if timeout:
            job.timeout = timeout
        if count or len(reducer) > 0:
            job.count, job.reducer = count, reducer
        if not keeps_result:
            job.keeps_result = False
        if keep_for:
            job.keep_for = keep_for
        if expires_at:
            job.expires_at = expires_at
            self.expiring.add(expires_at, job)
        if len(partition) > 0:
            job.partition = partition
        elif has_key and function.flow is not None:
            job.partition = function.flow.limits.partition_of(unique)
        if usage is not None:
            job.user = usage.name
            self.count_job(job)
        self.jobs.add(job)
        if has_key:
            self.unique_jobs.add(job)
        if watcher is not None:
            job.watchers = [watcher]
            watcher.watching.add(job)
        if parents is not None:
            job.after = after
        if background:
            self.journal.accepted(job)
        if self.observer is not None:
            self.observer.created(job)
        if parents is not None:
            self._block(function, job, parents)
        elif has_key and self.reserves_keys:
            self._reserve(function, job)
        else:
            self._schedule_or_enqueue(function, job)
        return job

    def _new_handle(self, id: i64) -> bytes:
        """The prefix and the id. Consecutive ids differ in the last three digits, so the rest is formatted once."""
        thousands = id // 1000
        if thousands != self._handle_thousands:
            if not thousands:  # the digits below have leading zeros
                return self.handle_prefix + b"%d" % id
            self._handle_thousands = thousands
            self._handle_stem = self.handle_prefix + b"%d" % thousands
        return self._handle_stem + _LAST_DIGITS[id - thousands * 1000]

    def reserve_id(self) -> int:
        """Return an id for a job that may be submitted later; no other job gets it."""
        id = self.next_id
        self.next_id = id + 1
        return id

    def find(self, handle: bytes) -> LiveJob | None:
        """Return the scheduled, queued or running job of that handle."""
        return _if_handle(self.jobs.get(self._id(handle)), handle)

    def find_dead(self, handle: bytes) -> LiveJob | None:
        """Return the dead job of that handle."""
        return _if_handle(self.dead.get(self._id(handle)), handle)

    def _id(self, handle: bytes) -> int:
        return self._ids_by_handle.get(handle) or id_from_handle(handle)

    def find_unique(self, unique: bytes) -> LiveJob | None:
        """Return the newest job with that unique key, over all functions."""
        return self.unique_jobs.newest(unique)

    def watch(self, job: LiveJob, watcher: Watcher, first: bool = False) -> None:
        """Send what happens to `job` to `watcher` too; with `first`, before its other watchers."""
        self._attach(job, False, watcher)
        if first and job.watchers:
            job.watchers.insert(0, job.watchers.pop())

    def unwatch_all(self, watcher: Watcher) -> None:
        """A client disconnected: unwatch all its jobs."""
        for job in list(watcher.watching):
            self.unwatch(job, watcher)

    def unwatch(self, job: LiveJob, watcher: Watcher) -> None:
        """Undo `watch`. A foreground job that loses its last watcher is cancelled, unless it runs."""
        if job not in watcher.watching:
            return
        watcher.watching.discard(job)
        others = [other for other in job.watchers or () if other is not watcher]
        job.watchers = others or None
        if not others and not job.background and job.state is not RUNNING:
            self._finish(job, CANCELLED, b"")

    def cancel(self, job: LiveJob, reason: str = "cancelled") -> None:
        """End a job in any state. Its worker is informed where the protocol allows it."""
        if job.state is DEAD:
            self._delete_dead(job)
            return
        workers = self._workers_of(job)
        for worker in workers:
            worker.forgive_late(job.handle)
        self._fail(job, CANCELLED, reason)
        for worker in workers:
            worker.revoked(job)

    def run_now(self, job: LiveJob) -> None:
        """Queue a scheduled job before its time; do nothing in other states."""
        if job.state is not SCHEDULED:
            return
        function = self.functions[job.function]
        enter(job, QUEUED)
        function.scheduled -= 1
        self.scheduled -= 1
        self.schedule.count_stale()
        job.run_at = self.now
        if job.background:
            self.journal.changed(job)
        self._enqueue(function, job)

    def keep_result(self, job: LiveJob) -> None:
        """A client will ask for the result of a job, although its submitter may not have wanted it."""
        if not job.keeps_result:
            job.keeps_result = True
            if job.background:
                self.journal.changed(job)

    def _extend_retention(self, job: LiveJob, keep_for: float) -> None:
        """Keep the record of a shared job for as long as the submission that wants it longest."""
        job.keep_for = keep_for
        if job.background:
            self.journal.changed(job)

    def _extend_expiry(self, job: LiveJob, expires_at: float) -> None:
        """A shared job expires when the last of its submissions does; never, if one of them does not."""
        if expires_at and expires_at < job.expires_at:
            return
        job.expires_at = expires_at
        self.expiring.count_stale()
        if expires_at:
            self.expiring.add(expires_at, job)
        if job.background:
            self.journal.changed(job)

    def retract(self, job: LiveJob) -> None:
        """Undo the acceptance of a background job that could not be made durable; its submitter gets an error.

        The job is cancelled, unless a client watches it or a worker runs it.
        """
        job.background = False
        if self.jobs.get(job.id) is not job:
            return
        if not job.watchers and job.state is not RUNNING:
            self._finish(job, CANCELLED, b"")
        self.confirm(job)

    def stop_accepting(self) -> None:
        """Refuse every new job from now on. A server without free bytes looks closer at each, so others need not."""
        self.is_stopping = True
        self.free_bytes = _NO_BYTES

    def _check_bytes(self, name: bytes, free_bytes: int) -> None:
        """Raise QueueFullError if so few bytes would be left for jobs; jobs of the server itself always fit."""
        if self.is_stopping:
            raise QueueFullError("the server is stopping")
        if free_bytes < 0 and name not in self.builtin_workers:
            limit = self.policy.max_queued_bytes
            raise QueueFullError(f"the payloads of all jobs reach max_queued_bytes ({limit} bytes)")

    def _check_replacement(self, usage: UserUsage, old: LiveJob, payload: bytes) -> None:
        """Raise QueueFullError if the user may not have this payload in place of the old job's."""
        if old.user == usage.name:
            usage.check(0, len(payload) - old.payload_size)
        else:
            usage.check(1, len(payload) + JOB_BYTES)

    def _attach(self, job: LiveJob, background: bool, watcher: Watcher | None) -> None:
        """Coalesce a submission with an existing job, which becomes a background job if either is one."""
        if background and not job.background:
            job.background = True
            if job.id in self.held_keys:  # the store has a row of it already
                self.held_keys.discard(job.id)
                self.journal.changed(job)
            else:
                self.journal.accepted(job)
        if watcher is not None:
            watcher.watching.add(job)
            if job.watchers is None:
                job.watchers = [watcher]
            else:
                job.watchers.append(watcher)

    def _replace(
        self,
        function: Function,
        old: LiveJob,
        payload: bytes,
        priority: int,
        run_at: float,
        timeout: float,
        count: int,
        reducer: bytes,
    ) -> LiveJob:
        """Replace a job that waits by a new object with the same id, handle, watchers, door and retention.

        It counts for the quota of the user that replaces it.
        """
        watchers, is_reserving = old.watchers, old.state is RESERVING
        has_key = old.id in self.held_keys
        self.held_keys.discard(old.id)
        self._remove(function, old, CANCELLED)
        self.free_bytes -= len(payload) + JOB_BYTES
        job = LiveJob(
            old.id, old.handle, function.name, old.unique, payload, priority, old.background, run_at,
            old.submitted_at, old.door,
        )  # fmt: skip
        job.timeout, job.count, job.reducer = timeout, count, reducer
        job.keeps_result, job.keep_for, job.partition = old.keeps_result, old.keep_for, old.partition
        job.after, job.parents_left, job.children = old.after, old.parents_left, old.children
        usage = self._usage_for(function.name)
        if usage is not None:
            job.user = usage.name
            self.count_job(job)
        if old.expires_at:
            job.expires_at = old.expires_at
            self.expiring.add(job.expires_at, job)
        self.jobs.add(job)
        self.unique_jobs.add(job)
        job.watchers = watchers
        for watcher in watchers or ():
            watcher.watching.add(job)
        if job.background:
            self.journal.changed(job)
        if has_key:
            self.held_keys.add(job.id)
        if is_reserving and not has_key:
            self._reserve(function, job)
        elif is_reserving:  # the store is being asked for the key
            job.state = RESERVING
            function.reserving += 1
        elif job.id in self.unsettled:
            self._restore_blocked(function, job)
        elif job.parents_left:
            self._wait_for_parents(function, job)
        else:
            self._schedule_or_enqueue(function, job)
        return job


def _if_handle(job: LiveJob | None, handle: bytes) -> LiveJob | None:
    """Return a job that was found by its id if it has this very handle."""
    return job if job is not None and job.handle == handle else None
