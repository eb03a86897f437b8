"""A worker that speaks GearMonkey: it fetches jobs on one connection and reports on another.

At a Geartrain server a pop blocks its connection, so reports need another one; the server puts popped jobs back when
the connection closes. On a real Redis jobs are taken with a lease, which is renewed while they run, and jobs that still
run when the worker is closed are put back.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from geartrain.address import Address
from geartrain.client.order import Capabilities
from geartrain.client.protocols.base import Assignment, JobRunner, Lost, WorkerProtocol, whole_numbers
from geartrain.client.protocols.gearmonkey.client import FLOW_ERRORS, library_error
from geartrain.client.protocols.heartbeat import Heartbeat
from geartrain.client.redis.blocking_pops import BlockingPops
from geartrain.client.redis.flow import BrokenError, CommandError, Flow, Moves
from geartrain.client.redis.pipeline import Pipeline
from geartrain.client.redis.worker_flow import POP_SECONDS, TakenJob, WakingJob, WorkerFlow

WORKER: Final = Capabilities(background=True, priority=True, run_at=True, progress=True, failure=True)

LEASE_SECONDS: Final = 30.0  # after which a dead worker's job is put back on a real Redis
# For the last reports and the last pop to be answered when a worker is closed.
CLOSE_SECONDS: Final = 5.0


class RedisAssignment(Assignment):
    """A job, with its queue and number in Redis."""

    __slots__ = ("task",)

    def __init__(self, task: TakenJob) -> None:
        super().__init__(task.function.encode("utf-8", "surrogateescape"), task.input, b"%d" % task.number)
        self.task = task


class Worker(WorkerProtocol):
    """A worker: its connections, and the jobs that it has taken."""

    capabilities = WORKER
    lease = LEASE_SECONDS

    def __init__(self, address: Address, lost: Lost, runner: JobRunner, name: bytes, concurrency: int) -> None:
        super().__init__(address, lost, runner, name, concurrency)
        self._reports = Pipeline(self._broken)
        self._fetches = Pipeline(self._broken, wait=self._wait)
        self._pops = BlockingPops(address, self._unblock)
        self._flow = WorkerFlow(self.lease)
        self._running: set[RedisAssignment] = set()
        self._tasks: list[asyncio.Task[None]] = []  # that take jobs and renew leases
        self._unanswered: set[asyncio.Future[Any]] = set()  # reports
        self._fetch_client_id = 0  # with which its pop is cancelled
        self._waiting: asyncio.Future[Any] | None = None  # at the queues
        self._changed = asyncio.Event()  # a slot is free, the functions changed, or fetching stopped
        self._wants_slot = False  # a callback waits for one
        self._heartbeat = Heartbeat(self._send_heartbeat, lambda: bool(self._running))
        self._stopped_fetching = False
        self._opened = False
        self._over = False

    @classmethod
    def unsupported_reason(cls, function: bytes) -> str:
        """Names are part of keys."""
        return "" if function else "the name of a function of GearMonkey is not empty"

    @property
    def needs_watch(self) -> bool:
        """At a Geartrain server; on a real Redis the lease says it."""
        return not self._flow.has_leases

    async def open(self, functions: dict[bytes, float]) -> None:
        """Connect, register, and begin to take jobs."""
        self.check_names(*functions)
        self._pops.tls, self._pops.token = self.tls, self.token
        self._flow.functions = [_text(function) for function in functions]
        try:
            for pipeline in (self._reports, self._fetches):
                await pipeline.open(self.address, self.tls, self.token)
            await self._reports.run(self._flow.start())
            await self._reports.run(self._flow.renew())
            await self._fetches.run(self._flow.tie())
            self._fetch_client_id = await self._fetches.ask("CLIENT", "ID")
            if not self._flow.has_leases:
                await self._ask_for_lease()
        except FLOW_ERRORS as error:
            self._abandon()
            raise library_error(error, self.address) from error
        except BaseException:
            self._abandon()
            raise
        self._opened = True
        if self.name:
            self._reports.send(("CLIENT", "SETNAME", self.name), _ignore)
        self._tasks = [asyncio.create_task(self._run_task(self._take_jobs))]
        if self._flow.has_leases:
            self._tasks.append(asyncio.create_task(self._run_task(self._renew_leases)))

    def register(self, function: bytes, timeout: float) -> None:
        """INCR count, and wait for its jobs too."""
        self.check_names(function)
        if _text(function) not in self._flow.functions:
            self._flow.functions.append(_text(function))
            self._report(self._flow.register(_text(function)))
            self._wake()

    def unregister(self, function: bytes) -> None:
        """DECR count, and wait for its jobs no longer."""
        if _text(function) in self._flow.functions:
            self._flow.functions.remove(_text(function))
            self._report(self._flow.unregister(_text(function)))
            self._wake()

    def stop_fetching(self) -> None:
        """Take no more jobs. At a Geartrain server a pop that could not be cancelled may still return one."""
        self._stopped_fetching = True
        self._wake()

    async def fetching_stopped(self) -> None:
        """Return when the last pop is answered."""
        if self._tasks:
            await asyncio.wait(self._tasks[:1])

    def progress(self, job: Assignment, numerator: float, denominator: float) -> None:
        """HMSET status:dividend, status:divisor."""
        numbers = whole_numbers(numerator, denominator)
        self._report(self._flow.update(_taken(job).task, *numbers))

    def complete(self, job: Assignment, result: bytes) -> None:
        """Status success."""
        self._end(_taken(job), "success", result)

    def fail(self, job: Assignment, reason: str, data: bytes = b"", code: int = 1) -> None:
        """Status error, with the data or the reason as output."""
        self._end(_taken(job), "error", data or reason.encode())

    def release(self, job: Assignment) -> None:
        """Put the job back if it is still this worker's; a Geartrain server does so when the connection closes."""
        taken = _taken(job)
        self._forget(taken)
        if not self._over:
            self._report(self._flow.give_back(taken.task))

    async def close(self) -> None:
        """Wait for the last reports, put running jobs back, unregister, and close the connections."""
        if self._over:
            return
        self.stop_fetching()
        with contextlib.suppress(BrokenError, TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._finish()
        self._over = True
        self._heartbeat.stop()
        ending = [*self._tasks, *([self._waiting] if self._waiting is not None else [])]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        self._pops.close()
        await asyncio.gather(self._reports.close(), self._fetches.close())

    async def _finish(self) -> None:
        if self._flow.has_leases:
            await self.fetching_stopped()
        if self._unanswered:
            await asyncio.wait(self._unanswered)
        for task in list(self._flow.tasks):
            await self._reports.run(self._flow.give_back(task))
        await self._reports.run(self._flow.stop())

    # Taking jobs

    async def _take_jobs(self) -> None:
        """Take jobs until fetching stops. A slot is held while a job is requested, and not while the worker waits."""
        woken: Sequence[WakingJob] = ()
        while not self._stopped_fetching:
            if not (self._flow.functions and self.slots.take()):
                await self._fetches.run(self._flow.put_back(woken))
                woken = ()
                await self._wait_for_slot()
            elif await self._take(woken):
                woken = ()
            else:
                woken = await self._fetches.run(self._flow.wait(POP_SECONDS))
        self.slots.pass_on()  # its callback may have been called for a slot that it does not want any more
        await self._fetches.run(self._flow.put_back(woken))

    async def _wait_for_slot(self) -> None:
        """Wait until there is a function and a free slot."""
        self._changed.clear()
        if self._stopped_fetching or (self._flow.functions and self.slots.free):
            return
        if self._flow.functions:
            self._wants_slot = True
            self.slots.wait(self._slot_free)
        await self._changed.wait()
        self._wants_slot = False

    def _slot_free(self) -> None:
        if self._wants_slot and not self._stopped_fetching:
            self._wants_slot = False
            self._changed.set()
        else:
            self.slots.pass_on()

    async def _take(self, woken: Sequence[WakingJob]) -> bool:
        """Take a job and run it; false if there was none. At a Geartrain server this waits, and holds the slot."""
        task = None
        try:
            task = await self._fetches.run(self._flow.take(woken, POP_SECONDS))
        finally:
            if task is None:
                self.slots.give()
        if task is None:
            return False
        if task.function not in self._flow.functions and self._flow.has_leases:
            self._report(self._flow.give_back(task))  # the function was unregistered meanwhile
            self.slots.give()
            return True
        job = RedisAssignment(task)
        self._running.add(job)
        self._heartbeat.begin()
        self.runner.assigned(job)
        return True

    def _wait(self, moves: Moves) -> "asyncio.Future[Any]":
        self._waiting = asyncio.ensure_future(self._pops.wait(moves))
        return self._waiting

    async def _unblock(self, ids: Sequence[int]) -> None:
        # If this fails, the waits end by themselves a little later.
        await asyncio.gather(*(self._reports.ask("CLIENT", "UNBLOCK", id) for id in ids), return_exceptions=True)

    def _wake(self) -> None:
        """Let `_take_jobs` look again, and cancel its wait. A pop that cannot be cancelled ends within a second."""
        self._changed.set()
        self._pops.cancel()
        if self._opened and not self._flow.has_leases:
            self._reports.send(("CLIENT", "UNBLOCK", self._fetch_client_id), _ignore)

    # Reports

    def _end(self, job: RedisAssignment, status: str, output: bytes) -> None:
        self._forget(job)
        self._report(self._flow.finish(job.task, status, output))

    def _report(self, flow: Flow[Any]) -> None:
        report = self._reports.run(flow)
        self._unanswered.add(report)
        report.add_done_callback(self._reported)

    def _reported(self, report: "asyncio.Future[Any]") -> None:
        self._unanswered.discard(report)
        error = report.exception()
        if isinstance(error, Exception) and not isinstance(error, BrokenError):
            self._broken(error)  # a server that refuses the document's commands cannot be used

    def _forget(self, job: RedisAssignment) -> None:
        if job in self._running:
            self._running.discard(job)
            self.slots.give()

    async def _ask_for_lease(self) -> None:
        """Announce heartbeats to a Geartrain server; its answer is how long the worker may be silent."""
        with contextlib.suppress(CommandError):  # of an older server
            self._heartbeat.set_lease(float(await self._fetches.ask("CLIENT", "HEARTBEAT")))

    def _send_heartbeat(self) -> None:
        """On the connection that the jobs were taken on; it is answered after a pop that waits, within a second."""
        self._fetches.send(("CLIENT", "HEARTBEAT"), _ignore)

    async def _renew_leases(self) -> None:
        """Renew leases; a job whose lease expired all the same is another worker's."""
        while True:
            await asyncio.sleep(self.lease / 3)
            for task in await self._reports.run(self._flow.renew()):
                self._flow.forget(task)
                for job in [job for job in self._running if job.task == task]:
                    self.runner.revoked(job)

    # Loss of a connection

    async def _run_task(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except Exception as error:
            self._broken(error)

    def _broken(self, error: Exception) -> None:
        if self._over or not self._opened:
            return
        self._over = self._stopped_fetching = True
        self._abandon()
        self.slots.pass_on()
        self.lost(library_error(error, self.address))

    def _abandon(self) -> None:
        self._heartbeat.stop()
        for task in self._tasks:
            task.cancel()
        if self._waiting is not None:
            self._waiting.cancel()
        self._pops.close()
        self._reports.abandon()
        self._fetches.abandon()


def _taken(job: Assignment) -> RedisAssignment:
    assert isinstance(job, RedisAssignment)
    return job


def _text(function: bytes) -> str:
    return function.decode("utf-8", "surrogateescape")


def _ignore(answer: Any) -> None:
    pass
