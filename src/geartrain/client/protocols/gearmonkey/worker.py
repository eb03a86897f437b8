"""A worker that speaks GearMonkey: it takes jobs over one connection and tells what comes of them over another.

At a Geartrain server a pop waits on its connection, so nothing could be told over it meanwhile; and what it has popped
goes back when it closes. On a real Redis jobs are in our custody: while one runs its lease is renewed, and what is left
when the link is closed is put back.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from geartrain.address import Address
from geartrain.client.order import Capabilities
from geartrain.client.protocols.base import Assignment, JobRunner, Lost, WorkerProtocol, whole_numbers
from geartrain.client.protocols.gearmonkey.client import FLOW_ERRORS, plainly
from geartrain.client.redis.blocking_pops import BlockingPops
from geartrain.client.redis.flow import BrokenError, Flow, Moves
from geartrain.client.redis.pipeline import Pipeline
from geartrain.client.redis.worker_flow import POP_SECONDS, TakenJob, WakingJob, WorkerFlow

WORKER: Final = Capabilities(background=True, priority=True, run_at=True, progress=True, failure=True)

LEASE_SECONDS: Final = 30.0  # how long a dead worker's job outlives it on a real Redis
# For the last words to be answered, and for the last request for a job, when a link is closed.
FAREWELL_SECONDS: Final = 5.0


class Taken(Assignment):
    """A job that remembers where it came from."""

    __slots__ = ("task",)

    def __init__(self, task: TakenJob) -> None:
        super().__init__(task.function.encode("utf-8", "surrogateescape"), task.input, b"%d" % task.number)
        self.task = task


class Worker(WorkerProtocol):
    """Two connections, the bells at which it waits, and what it has taken."""

    capabilities = WORKER
    lease = LEASE_SECONDS

    def __init__(self, address: Address, lost: Lost, runner: JobRunner, name: bytes, concurrency: int) -> None:
        super().__init__(address, lost, runner, name, concurrency)
        self._teller = Pipeline(self._broken)
        self._taker = Pipeline(self._broken, wait=self._wait)
        self._pops = BlockingPops(address, self._unblock)
        self._flow = WorkerFlow(self.lease)
        self._running: set[Taken] = set()
        self._tasks: list[asyncio.Task[None]] = []  # those that take jobs and renew leases
        self._telling: set[asyncio.Future[Any]] = set()  # what is told and not answered yet
        self._taker_id = 0  # by which its pop is called off
        self._ringing: asyncio.Future[Any] | None = None  # the wait that is under way
        self._changed = asyncio.Event()  # a slot is free, there is a function, or it is time to rest
        self._wants_slot = False  # will be told when one is free
        self._stopped_fetching = False
        self._opened = False
        self._over = False

    @classmethod
    def unsupported_reason(cls, function: bytes) -> str:
        """A name stands in keys between colons."""
        return "" if function else "a function of GearMonkey has a name"

    async def open(self, functions: dict[bytes, float]) -> None:
        """Connect, be counted, and begin to take jobs."""
        self.check_names(*functions)
        self._pops.tls = self.tls
        self._flow.functions = [_text(function) for function in functions]
        try:
            for line in (self._teller, self._taker):
                await line.open(self.address, self.tls)
            await self._teller.run(self._flow.start())
            await self._teller.run(self._flow.renew())
            self._taker_id = await self._taker.ask("CLIENT", "ID")
        except FLOW_ERRORS as error:
            self._hang_up()
            raise plainly(error, self.address) from error
        except BaseException:
            self._hang_up()
            raise
        self._opened = True
        if self.name:
            self._teller.send(("CLIENT", "SETNAME", self.name), _ignore)
        self._tasks = [asyncio.create_task(self._guarded(self._take_jobs))]
        if self._flow.has_leases:
            self._tasks.append(asyncio.create_task(self._guarded(self._renew_leases)))

    def register(self, function: bytes, timeout: float) -> None:
        """Be counted for one more, and wait for its jobs too."""
        self.check_names(function)
        if _text(function) not in self._flow.functions:
            self._flow.functions.append(_text(function))
            self._tell(self._flow.register(_text(function)))
            self._change()

    def unregister(self, function: bytes) -> None:
        """The opposite."""
        if _text(function) in self._flow.functions:
            self._flow.functions.remove(_text(function))
            self._tell(self._flow.unregister(_text(function)))
            self._change()

    def stop_fetching(self) -> None:
        """Take no more; a pop at a Geartrain server that is not called off may still bring one."""
        self._stopped_fetching = True
        self._change()

    async def fetching_stopped(self) -> None:
        """When the last pop is answered."""
        if self._tasks:
            await asyncio.wait(self._tasks[:1])

    def progress(self, job: Assignment, numerator: float, denominator: float) -> None:
        """HMSET status:dividend, status:divisor."""
        numbers = whole_numbers(numerator, denominator)
        self._tell(self._flow.update(_taken(job).task, *numbers))

    def complete(self, job: Assignment, result: bytes) -> None:
        """Status success."""
        self._end(_taken(job), "success", result)

    def fail(self, job: Assignment, reason: str, data: bytes = b"", code: int = 1) -> None:
        """Status error, and the words as output."""
        self._end(_taken(job), "error", data or reason.encode())

    def release(self, job: Assignment) -> None:
        """Put it back, if it is still this worker's; at a Geartrain server it goes back when the connection closes."""
        taken = _taken(job)
        self._forget(taken)
        if not self._over:
            self._tell(self._flow.give_back(taken.task))

    async def close(self) -> None:
        """Let the last words be heard, put back what runs, be counted no more, and hang up."""
        if self._over:
            return
        self.stop_fetching()
        with contextlib.suppress(BrokenError, TimeoutError):
            async with asyncio.timeout(FAREWELL_SECONDS):
                await self._say_goodbye()
        self._over = True
        ending = [*self._tasks, *([self._ringing] if self._ringing is not None else [])]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        self._pops.close()
        await asyncio.gather(self._teller.close(), self._taker.close())

    async def _say_goodbye(self) -> None:
        if self._flow.has_leases:
            await self.fetching_stopped()
        if self._telling:
            await asyncio.wait(self._telling)
        for task in list(self._flow.tasks):
            await self._teller.run(self._flow.give_back(task))
        await self._teller.run(self._flow.stop())

    # Taking jobs

    async def _take_jobs(self) -> None:
        """Until there is no wish for more. A slot is held while a job is asked for, and not while one is waited for."""
        woken: Sequence[WakingJob] = ()
        while not self._stopped_fetching:
            if not (self._flow.functions and self.slots.take()):
                await self._taker.run(self._flow.put_back(woken))
                woken = ()
                await self._until_it_makes_sense()
            elif await self._take(woken):
                woken = ()
            else:
                woken = await self._taker.run(self._flow.wait(POP_SECONDS))
        self.slots.pass_on()  # it may have been told of a slot that it does not want any more
        await self._taker.run(self._flow.put_back(woken))

    async def _until_it_makes_sense(self) -> None:
        """Wait for a function, and for a slot."""
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
        """Whether there was a job. At a Geartrain server this waits, with the slot."""
        task = None
        try:
            task = await self._taker.run(self._flow.take(woken, POP_SECONDS))
        finally:
            if task is None:
                self.slots.give()
        if task is None:
            return False
        if task.function not in self._flow.functions and self._flow.has_leases:
            self._tell(self._flow.give_back(task))  # it was withdrawn in that moment
            self.slots.give()
            return True
        job = Taken(task)
        self._running.add(job)
        self.runner.assigned(job)
        return True

    def _wait(self, moves: Moves) -> "asyncio.Future[Any]":
        self._ringing = asyncio.ensure_future(self._pops.wait(moves))
        return self._ringing

    async def _unblock(self, ids: Sequence[int]) -> None:
        # If it cannot be said, the waits end by themselves a little later.
        await asyncio.gather(*(self._teller.ask("CLIENT", "UNBLOCK", id) for id in ids), return_exceptions=True)

    def _change(self) -> None:
        """Think again, also in the middle of a wait. A server that cannot call off a pop ends it within a second."""
        self._changed.set()
        self._pops.cancel()
        if self._opened and not self._flow.has_leases:
            self._teller.send(("CLIENT", "UNBLOCK", self._taker_id), _ignore)

    # Telling what comes of them

    def _end(self, job: Taken, status: str, output: bytes) -> None:
        self._forget(job)
        self._tell(self._flow.finish(job.task, status, output))

    def _tell(self, flow: Flow[Any]) -> None:
        telling = self._teller.run(flow)
        self._telling.add(telling)
        telling.add_done_callback(self._told)

    def _told(self, telling: "asyncio.Future[Any]") -> None:
        self._telling.discard(telling)
        error = telling.exception()
        if isinstance(error, Exception) and not isinstance(error, BrokenError):
            self._broken(error)  # a server that refuses the document's commands is of no use

    def _forget(self, job: Taken) -> None:
        if job in self._running:
            self._running.discard(job)
            self.slots.give()

    async def _renew_leases(self) -> None:
        """Renew leases; a job whose lease ran out all the same is somebody else's."""
        while True:
            await asyncio.sleep(self.lease / 3)
            for task in await self._teller.run(self._flow.renew()):
                self._flow.forget(task)
                for job in [job for job in self._running if job.task == task]:
                    self.runner.revoked(job)

    # The end

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except Exception as error:
            self._broken(error)

    def _broken(self, error: Exception) -> None:
        if self._over or not self._opened:
            return
        self._over = self._stopped_fetching = True
        self._hang_up()
        self.slots.pass_on()
        self.lost(plainly(error, self.address))

    def _hang_up(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._ringing is not None:
            self._ringing.cancel()
        self._pops.close()
        self._teller.abandon()
        self._taker.abandon()


def _taken(job: Assignment) -> Taken:
    assert isinstance(job, Taken)
    return job


def _text(function: bytes) -> str:
    return function.decode("utf-8", "surrogateescape")


def _ignore(answer: Any) -> None:
    pass
