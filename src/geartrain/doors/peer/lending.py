"""The home's side of a link: jobs of this server that the other one runs.

A crew of the other server is one worker here, a `DistantWorker`. It claims as many jobs as the other server has said
that it has room for, and only when no worker of this server is idle. What the other server says of a job comes back as
a frame, and becomes the verb that a worker of this server would have called.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from geartrain.doors.peer.offers import Place, first_place
from geartrain.doors.periodic import failed_attempts
from geartrain.engine.job import LiveJob, Progress
from geartrain.engine.lifecycle import QUEUED
from geartrain.engine.worker import Worker
from geartrain.wire import peer as wire

if TYPE_CHECKING:
    from geartrain.doors.peer.link import PeerLink

NOT_LISTED = -1  # as the number of a worker: operators see the workers that it stands for at their own server


class DistantWorker(Worker):
    """A crew of another server."""

    __slots__ = ("crew_number", "limit", "link", "sent", "started", "workers")

    def __init__(self, link: "PeerLink", crew_number: int) -> None:
        super().__init__("peer", link.name.encode(), link.name)
        self.link = link
        self.crew_number = crew_number
        self.number = NOT_LISTED
        self.is_distant = True
        self.leaving_reason = f"server {link.name} disconnected"
        self.workers = 1  # how many it counts for; the engine counts one
        self.sent = 0  # jobs that were lent over this connection
        self.limit = 0  # how many may be
        self.started: set[int] = set()  # ids of the jobs that a worker there has

    def wake(self) -> None:
        """Lend as many jobs as there is room for; be idle if room is left."""
        engine = self.link.engine
        while self.sent < self.limit:
            job = engine.claim_to_lend(self)
            if job is None:
                return
            self.sent += 1
            self.link.lending.lend(self, job)

    def allow(self, received: int, room: int) -> None:
        """The other server has got so many jobs of this connection, and would take some more."""
        self.limit = received + room
        if not self.idle:
            self.wake()

    def offer(self, functions: list[bytes], broadcast: list[bool], workers: int) -> None:
        """The crew has changed."""
        engine = self.link.engine
        for name in [name for name in self.abilities if name not in functions]:
            if not any(job.function == name for job in self.running.jobs()):  # else they go on there
                function = engine.functions[name]
                function.workers -= self.workers - 1
                function.distant_workers -= self.workers
                engine.unregister(self, name)
        self._resize(workers)
        for name, is_broadcast in zip(functions, broadcast, strict=False):
            if name not in self.abilities:
                function = engine.kept_function(name)
                engine.register(self, function.name, broadcast=is_broadcast or function.broadcast)
                function.workers += workers - 1
                function.distant_workers += workers

    def leave(self) -> None:
        """The crew is gone, and its jobs with it."""
        self._resize(1)
        for name in self.abilities:
            self.link.engine.functions[name].distant_workers -= 1
        self.link.engine.remove_worker(self)

    def _resize(self, workers: int) -> None:
        for name in self.abilities:
            function = self.link.engine.functions[name]
            function.workers += workers - self.workers
            function.distant_workers += workers - self.workers
        self.workers = workers

    def revoked(self, job: LiveJob) -> None:
        """The job was cancelled."""
        self.link.lending.revoke(job.id)

    def forgive_late(self, handle: bytes) -> None:
        """Another copy of a broadcast was first, or the job is about to be revoked."""
        job = self.link.engine.find(handle)
        if job is not None:
            self.link.lending.revoke(job.id)


class Lending:
    """The jobs that one other server has of this one."""

    def __init__(self, link: "PeerLink") -> None:
        self._link = link
        self.crews: dict[int, DistantWorker] = {}  # by the other server's number
        self.lent: dict[int, DistantWorker] = {}  # by job
        self.holder = DistantWorker(link, 0)  # offers nothing, and has jobs that the other server had before
        self._counted: set[int] = set()  # jobs that the other server had started when it could not be reached any more
        self._told: dict[bytes, Place] = {}  # what the other server knows of jobs that wait
        self.returned = 0  # jobs that came back and had not been started
        self._verdicts = 0  # that arrived over this connection
        self._unsettled: list[tuple[int, int]] = []  # ticket, and how many verdicts had arrived then

    # The connection

    def begin(self) -> None:
        """There is a new connection: what is on its way over the old one is lost."""
        self._verdicts = 0
        self._unsettled.clear()
        self._told = {}
        for worker in self.crews.values():
            worker.sent = worker.limit = 0

    def suspend(self) -> None:
        """The connection is lost. Jobs stay where they are, for some time."""
        for worker in self.crews.values():
            worker.limit = worker.sent
            self._link.engine.stop_sleeping(worker)

    def end(self) -> None:
        """The other server is gone, or cannot be reached: its jobs are somebody else's."""
        engine = self._link.engine
        lent, self.lent = self.lent, {}
        for id, worker in lent.items():
            job = engine.jobs.get(id)
            if job is not None and id not in worker.started:
                engine.take_back(worker, job)
            elif job is not None:
                self._counted.add(id)
        crews, self.crews = self.crews, {}
        for worker in crews.values():
            worker.leave()
        self._link.engine.remove_worker(self.holder)

    # What the other server says of its workers

    def offer(self, frame: wire.CrewOffer) -> None:
        """Workers of one crew came or went."""
        worker = self.crews.get(frame.crew)
        if worker is None:
            if not frame.workers:
                return
            worker = self.crews[frame.crew] = DistantWorker(self._link, frame.crew)
        worker.offer(frame.functions if frame.workers else [], frame.broadcast, frame.workers)
        if not frame.workers:
            worker.limit = worker.sent
            self._leave_when_done(worker)

    def _leave_when_done(self, worker: DistantWorker) -> None:
        if not worker.workers and not len(worker.running) and self.crews.get(worker.crew_number) is worker:
            del self.crews[worker.crew_number]
            worker.leave()

    def allow(self, frame: wire.Room) -> None:
        """It has room for jobs."""
        worker = self.crews.get(frame.crew)
        if worker is not None and worker.workers:
            worker.allow(frame.received, frame.room)

    def retry(self) -> None:
        """Lend what could not be lent before, because a borrowed job, which is not lent on, was in front of it."""
        for worker in list(self.crews.values()):
            crew = worker.crew
            if worker.idle and worker.sent < worker.limit and crew is not None and crew.has_work():
                worker.wake()

    def tell_waiting(self) -> None:
        """Tell the other server which jobs wait for which its workers could be."""
        engine = self._link.engine
        waiting: dict[bytes, Place] = {}
        for worker in self.crews.values():
            for name in worker.abilities:
                function = engine.functions[name]
                if function.queued and not function.resting and name not in waiting:
                    place = first_place(function)
                    if place is not None:
                        waiting[name] = place
        if waiting != self._told:
            self._told = waiting
            places = list(waiting.values())
            self._link.send(wire.Waiting(list(waiting), [place[0] for place in places], [place[1] for place in places]))

    # Jobs

    def lend(self, worker: DistantWorker, job: LiveJob) -> None:
        """Send a job that the worker has claimed."""
        if job.id in self.lent:  # another copy of the same broadcast
            self._link.engine.take_back(worker, job)
            return
        self.lent[job.id] = worker
        self._link.send(
            wire.Lend(
                crew=worker.crew_number,
                id=job.id,
                handle=job.handle,
                function=job.function,
                payload=job.payload,
                priority=job.priority,
                run_at=job.run_at,
                submitted_at=job.submitted_at,
                attempts=job.attempts - 1,  # the borrower counts this one
                count=job.count,
                timeout=self._timeout(job),
                reducer=job.reducer,
                unique=job.unique,
                door=job.door,
                returns=self._link.door.returns.get(job.id, 0),
            )
        )

    def _timeout(self, job: LiveJob) -> float:
        """How long the job may run: a limit of this server holds wherever it runs."""
        limit = self._link.engine.functions[job.function].max_run
        return limit if limit and not 0.0 < job.timeout <= limit else job.timeout

    def revoke(self, id: int) -> None:
        """The other server is to stop a job, and to forget it."""
        worker = self.lent.pop(id, None)
        if worker is not None:
            worker.started.discard(id)
            self._link.send(wire.Revoke(id))

    def adopt(self, id: int) -> None:
        """The holder has a job that the other server had before this one knew of it."""
        self.lent[id] = self.holder
        self.holder.started.add(id)

    def resume(self, ids: list[int]) -> None:
        """After a new connection: the other server has these jobs, and no others."""
        engine = self._link.engine
        held = set(ids)
        for id, worker in list(self.lent.items()):
            job = engine.jobs.get(id)
            if id not in held and job is not None:  # it was on its way when the connection was lost
                del self.lent[id]
                worker.started.discard(id)
                engine.take_back(worker, job)
        for id in held:
            if id in self.lent:
                continue
            job = engine.jobs.get(id)
            if job is not None and job.state is QUEUED and id not in engine.borrowed:
                engine.entrust(self.holder, job, id in self._counted)
                self.adopt(id)
            else:
                self._link.send(wire.Revoke(id))
        self._counted.clear()

    # Reports and verdicts

    def report(self, frame: Any) -> bool:
        """Handle what the other server says of a job; return whether this is such a frame."""
        verdict = _VERDICTS.get(type(frame))
        if verdict is not None:
            self._verdicts += 1
            worker = self.lent.pop(frame.id, None)
            job = self._link.engine.jobs.get(frame.id)
            if worker is not None:
                worker.started.discard(frame.id)
                if job is not None and job.handle in worker.running:
                    if self._link.door.returns and not isinstance(frame, wire.BackVerdict):
                        self._link.door.returns.pop(frame.id, None)
                    verdict(self, worker, job, frame)
                self._leave_when_done(worker)
            self._settle()
            return True
        report = _REPORTS.get(type(frame))
        if report is None:
            return False
        worker = self.lent.get(frame.id)
        job = self._link.engine.jobs.get(frame.id)
        if worker is not None and job is not None:
            worker.started.add(frame.id)
            report(self, worker, job, frame)
        return True

    def apply(self, worker: DistantWorker, frame: Any) -> None:
        """Carry out a verdict over a job that the worker has; it was reached before this server knew of the job."""
        job = self._link.engine.jobs.get(frame.id)
        if job is not None:
            _VERDICTS[type(frame)](self, worker, job, frame)

    def _settle(self) -> None:
        """Say that the verdicts so far are durable, now or after the commit that makes them so."""
        ticket = self._link.durability.last_ticket
        if not ticket and not self._unsettled:
            self._link.settle(self._verdicts)
        elif self._unsettled and self._unsettled[-1][0] == ticket:
            self._unsettled[-1] = (ticket, self._verdicts)
        else:
            self._unsettled.append((ticket, self._verdicts))

    def commit_ended(self, ticket: int, failed: bool) -> None:
        """A commit has ended. If it failed, what these jobs became will be written with the next one."""
        if not self._unsettled:
            return
        if failed:
            self._unsettled = [(max(waits, ticket + 1), count) for waits, count in self._unsettled]
            return
        durable = [count for waits, count in self._unsettled if waits <= ticket]
        if durable:
            self._unsettled = [entry for entry in self._unsettled if entry[0] > ticket]
            self._link.settle(durable[-1])

    def _started(self, worker: DistantWorker, job: LiveJob, frame: wire.Started) -> None:
        if job.owner is worker:
            job.started_at = self._link.engine.now

    def _progress(self, worker: DistantWorker, job: LiveJob, frame: wire.ProgressFrame) -> None:
        progress = Progress(frame.numerator, frame.denominator, frame.seconds_left, frame.verbatim)
        self._link.engine.progress(job, progress)

    def _data(self, worker: DistantWorker, job: LiveJob, frame: wire.DataReport) -> None:
        self._link.engine.data(job, frame.data)

    def _warning(self, worker: DistantWorker, job: LiveJob, frame: wire.WarningReport) -> None:
        self._link.engine.warning(job, frame.data)

    def _overdue(self, worker: DistantWorker, job: LiveJob, frame: wire.Overdue) -> None:
        for watcher in list(job.watchers or ()):
            if job in watcher.watching:
                watcher.expired(job)

    def _done(self, worker: DistantWorker, job: LiveJob, frame: wire.DoneVerdict) -> None:
        _impersonate(worker, frame)
        self._link.engine.complete(worker, job, frame.result)

    def _failed(self, worker: DistantWorker, job: LiveJob, frame: wire.FailedVerdict) -> None:
        _impersonate(worker, frame)
        engine = self._link.engine
        if frame.data is not None:
            engine.raise_exception(worker, job, frame.data, frame.code)
            return
        if frame.again and frame.door == failed_attempts.DOOR:
            failed_attempts.fail(engine, worker, job, frame.reason)
            return
        if not frame.again:
            job.code = frame.code
        engine.fail(worker, job, frame.reason, frame.again)

    def _lost(self, worker: DistantWorker, job: LiveJob, frame: wire.LostVerdict) -> None:
        _impersonate(worker, frame)
        self._link.engine.lose(worker, job, frame.reason)

    def _back(self, worker: DistantWorker, job: LiveJob, frame: wire.BackVerdict) -> None:
        engine = self._link.engine
        if frame.started:
            engine.hand_back(worker, job)
        else:
            self.returned += 1
            returns = self._link.door.returns
            returns[job.id] = returns.get(job.id, 0) + 1
            engine.take_back(worker, job)

    def _reschedule(self, worker: DistantWorker, job: LiveJob, frame: wire.RescheduleVerdict) -> None:
        if frame.door == failed_attempts.DOOR:
            failed_attempts.reschedule(self._link.engine, worker, job, frame.run_at, frame.step)
        else:
            self._link.engine.reschedule(worker, job, frame.run_at, frame.step, frame.reset_attempts)

    def _postpone(self, worker: DistantWorker, job: LiveJob, frame: wire.PostponeVerdict) -> None:
        _impersonate(worker, frame)
        self._link.engine.reschedule_failed(job, frame.run_at, frame.reason)

    def _give_up(self, worker: DistantWorker, job: LiveJob, frame: wire.GiveUpVerdict) -> None:
        _impersonate(worker, frame)
        self._link.engine.mark_dead(job, frame.reason)

    def _cancel(self, worker: DistantWorker, job: LiveJob, frame: wire.CancelVerdict) -> None:
        self._link.engine.cancel(job, frame.reason)


Handler = Callable[[Lending, DistantWorker, LiveJob, Any], None]

_REPORTS: dict[type, Handler] = {
    wire.Started: Lending._started,
    wire.ProgressFrame: Lending._progress,
    wire.DataReport: Lending._data,
    wire.WarningReport: Lending._warning,
    wire.Overdue: Lending._overdue,
}
_VERDICTS: dict[type, Handler] = {
    wire.DoneVerdict: Lending._done,
    wire.FailedVerdict: Lending._failed,
    wire.LostVerdict: Lending._lost,
    wire.BackVerdict: Lending._back,
    wire.RescheduleVerdict: Lending._reschedule,
    wire.PostponeVerdict: Lending._postpone,
    wire.GiveUpVerdict: Lending._give_up,
    wire.CancelVerdict: Lending._cancel,
}


def _impersonate(worker: DistantWorker, frame: Any) -> None:
    """Records name the worker that had the job, and not the server."""
    worker.door, worker.name = frame.door, frame.worker
