"""One function that a bridge joins: its jobs on the way to the server, and on the way to Redis.

A job of Redis is held by a lease there until the server's result has been written; a job of the server is held as every
worker holds one. Both have names on the other side that are made from their own, so that one that is sent twice, by a
bridge that was killed and the next one, is one job. A job that comes back to the bridge goes home: the side that it was
sent to has lost its workers meanwhile.
"""

import asyncio
import contextlib
import dataclasses
import hashlib
from collections.abc import Callable
from typing import Final

from geartrain.client.async_worker import AsyncWorker
from geartrain.client.bridge.direction import SideState
from geartrain.client.bridge.redis_side import RedisSide
from geartrain.client.bridge.server_side import ServerSide
from geartrain.client.job import Job
from geartrain.client.job_events import Completed, Failed, Progressed
from geartrain.client.protocols.base import whole_numbers
from geartrain.client.redis import connection
from geartrain.client.redis.plain_worker import TakenJob
from geartrain.errors import AdminError, ClientError, JobFailedError, ResultGoneError, ServerGoneError
from geartrain.model import Priority

_RETRY_SECONDS: Final = 1.0  # until Redis is asked again
_REFUSED_SECONDS: Final = 5.0  # until jobs are taken again after the server did not take one
# Scheduled jobs that are due come before all others.
_PRIORITIES: Final = {
    "scheduled": Priority.HIGH, "high": Priority.HIGH, "normal": Priority.NORMAL, "low": Priority.LOW
}  # fmt: skip

Tell = Callable[[str], None]


@dataclasses.dataclass
class BridgeSummary:
    """How many jobs ended on the side that they were sent to, and how many were sent back."""

    to_server: int = 0  # jobs of Redis
    to_redis: int = 0  # jobs of the server
    failed: int = 0  # of both
    sent_back: int = 0  # which their own side has again


@dataclasses.dataclass
class SentJob:
    """A job of Redis that is at the server."""

    job: TakenJob
    went_home: bool = False  # it is in its queue again: how it ended at the server does not count
    task: asyncio.Task[None] | None = None


@dataclasses.dataclass
class BroughtJob:
    """A job of the server that is in Redis."""

    key: str  # its name there
    number: int = 0  # 0: not known yet
    recall: asyncio.Task[bool] | None = None  # whether it could be withdrawn

    @property
    def may_be_recalled(self) -> bool:
        """Whether it is in Redis, and neither withdrawn nor about to be."""
        last = self.recall
        return self.number > 0 and (
            last is None or (last.done() and (last.exception() is not None or not last.result()))
        )


class FunctionBridge:
    """A function. `tell` is called with a line for the person who runs the bridge."""

    def __init__(self, name: str, redis: RedisSide, server: ServerSide, summary: BridgeSummary, tell: Tell) -> None:
        self.name = name
        self.has_lock = False  # no other bridge serves this function
        self.registered = False  # in Redis' count of workers
        self.held: dict[int, SentJob] = {}  # jobs of Redis at the server, by number
        self.brought: dict[str, BroughtJob] = {}  # jobs of the server in Redis, by name
        self.unsettled = True  # what is counted may still miss a change that this bridge made
        self._redis = redis
        self._server = server
        self._summary = summary
        self._tell = tell
        self._most_to_server = 0
        self._most_to_redis = 0
        self._told: set[str] = set()  # ways that were told of
        self._not_before = 0.0  # the loop's time until which no job is taken
        self._changed = asyncio.Event()
        self._taking = asyncio.create_task(self._take_jobs())
        self._worker: AsyncWorker | None = None  # of the server
        self._ending_workers: dict[asyncio.Task[None], AsyncWorker] = {}  # which finish their jobs

    @property
    def idle(self) -> bool:
        """Whether no job is under way."""
        return not self.held and not self._worker and not self._ending_workers

    def without_bridge(self, server: SideState) -> SideState:
        """The state of the server without this bridge, and the jobs that it brought there."""
        own = len(self._ending_workers) + (self._worker is not None)
        brought = min(len(self.held), server.waiting)
        return SideState(max(server.workers - own, 0), server.waiting - brought, brought=brought)

    async def allow(self, to_server: int, to_redis: int) -> None:
        """Set how many jobs may be under way each way."""
        self._most_to_server = to_server
        self.wake()
        if to_redis != self._most_to_redis:
            self._most_to_redis = to_redis
            await self._change_worker()
        for way, most in (("Redis to the server", to_server), ("the server to Redis", to_redis)):
            if most and way not in self._told:
                self._told.add(way)
                self._tell(f"{self.name}: jobs go from {way}")

    @property
    def limits(self) -> tuple[int, int]:
        """How many jobs may be under way to the server, and to Redis."""
        return self._most_to_server, self._most_to_redis

    def recall(self) -> None:
        """Take the jobs of the server that no worker in Redis has begun back there, if it can take them."""
        for brought in self.brought.values():
            if self._server.takes_back and brought.may_be_recalled:
                withdrawing = self._redis.withdraw(self.name, brought.number, brought.key)
                brought.recall = asyncio.create_task(withdrawing)

    def wake(self) -> None:
        """Take jobs now, if some are allowed."""
        self._changed.set()

    async def abort(self) -> None:
        """Leave the jobs that are under way to the next bridge: their leases expire, and the server notices."""
        if self._worker is not None:
            self._end_worker()
        for worker in self._ending_workers.values():
            worker.stop()
            worker.stop()
        tasks = [self._taking, *(held.task for held in self.held.values() if held.task is not None)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, *self._ending_workers, return_exceptions=True)

    # Jobs of Redis

    async def _take_jobs(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._changed.wait()
            self._changed.clear()
            with contextlib.suppress(*connection.CONNECTION_ERRORS):  # the next look says so
                while len(self.held) < self._most_to_server and loop.time() >= self._not_before:
                    job = await self._redis.take(self.name)
                    if job is None:
                        break
                    self.held[job.number] = held = SentJob(job)
                    held.task = asyncio.create_task(self._pass_to_server(held))

    async def _pass_to_server(self, held: SentJob) -> None:
        try:
            ending = await self._run_at_server(held.job)
            if held.went_home:
                return
            if isinstance(ending, Completed):
                await self._redis.finish(held.job, "success", ending.result)
            else:
                await self._redis.finish(held.job, "error", ending.data or ending.reason.encode())
            self._count(to_server=True, failed=isinstance(ending, Failed))
        except ClientError as error:
            self._not_before = asyncio.get_running_loop().time() + _REFUSED_SECONDS
            self._tell(f"{self.name}: job {held.job.number} goes back to Redis: {error}")
            await self._go_home(held)
        finally:
            del self.held[held.job.number]
            self.wake()

    async def _run_at_server(self, job: TakenJob) -> Completed | Failed:
        client = self._server.client
        submitted = await client.submit(
            self.name.encode("utf-8", "surrogateescape"),
            job.input,
            priority=_PRIORITIES[job.priority] if client.capabilities.priority else Priority.NORMAL,
            unique=self._unique_prefix + b"%d" % job.number if client.capabilities.unique else b"",
            resubmit=True,
        )
        try:
            async for event in submitted.events():
                if isinstance(event, Completed | Failed):
                    return event
                if isinstance(event, Progressed):
                    with contextlib.suppress(*connection.CONNECTION_ERRORS):
                        await self._redis.progress(job, *whole_numbers(event.numerator, event.denominator))
        finally:
            if not submitted.done:
                submitted.forget()
        raise ServerGoneError(f"{self._server.url} does not say how the job ended")

    async def _go_home(self, held: SentJob) -> None:
        if not held.went_home:
            held.went_home = True
            self._summary.sent_back += 1
            await self._redis.give_back(held.job)

    @property
    def _unique_prefix(self) -> bytes:
        """With the number of a job in Redis, its unique key at the server; gearmand allows 64 bytes."""
        return f"gtb:{self._redis.identity}:".encode()

    # Jobs of the server

    async def _change_worker(self) -> None:
        """Run another worker at the server: how many jobs one has is fixed."""
        self.unsettled = True
        if self._worker is not None:
            self._end_worker()
        if self._most_to_redis:
            name = f"geartrain-bridge-{self._redis.identity}"
            self._worker = AsyncWorker(self._server.url, concurrency=self._most_to_redis, name=name)
            self._worker.register(self.name.encode("utf-8", "surrogateescape"), self._run_in_redis)
            await self._worker.start()

    def _end_worker(self) -> None:
        assert self._worker is not None
        ending = asyncio.create_task(self._worker.close())
        self._ending_workers[ending] = self._worker
        self._worker = None
        ending.add_done_callback(self._worker_ended)

    def _worker_ended(self, ending: "asyncio.Task[None]") -> None:
        del self._ending_workers[ending]
        self.unsettled = True
        if not ending.cancelled() and (error := ending.exception()) is not None:
            self._tell(f"{self.name}: a worker of the server ended with an error: {error}")

    async def _run_in_redis(self, job: Job) -> bytes:
        """Run a job of the server in Redis, for the library's worker."""
        if job.details.unique.startswith(self._unique_prefix):
            return await self._came_back(int(job.details.unique.removeprefix(self._unique_prefix)))
        key = _origin_key(job)
        brought = self.brought[key] = BroughtJob(key)
        try:
            while (ending := await self._bring(job, brought)) is None:
                if await self._given_back(job):
                    return b""
        except asyncio.CancelledError:  # the server took its job back
            with contextlib.suppress(*connection.CONNECTION_ERRORS):
                await self._redis.withdraw(self.name, brought.number, key)
            raise
        finally:
            self.brought.pop(key, None)
        with contextlib.suppress(*connection.CONNECTION_ERRORS):  # then it expires
            await self._redis.forget_origin(self.name, key)
        self._count(to_server=False, failed=isinstance(ending, Failed))
        if isinstance(ending, Completed):
            return ending.result
        raise JobFailedError(ending.reason, ending.reason, ending.code, ending.data)

    async def _given_back(self, job: Job) -> bool:
        """Give a job that was withdrawn from Redis back to the server; false if it does not take it."""
        try:
            await self._server.give_back(job.details.handle, "no worker in Redis has begun it")
        except AdminError as error:
            if error.kind != "not-found":
                self._tell(f"{self.name}: the server does not take a job back: {error}")
                return False
        self._summary.sent_back += 1
        job.revoked = True  # it is no longer this worker's: nothing is reported
        return True

    async def _came_back(self, number: int) -> bytes:
        """Answer a job that a bridge sent from this Redis; without a job here, its bridge was killed meanwhile."""
        held = self.held.get(number)
        if held is not None:
            await self._go_home(held)
        return b""

    async def _bring(self, job: Job, brought: BroughtJob) -> Completed | Failed | None:
        """How a job of the server ended in Redis; None if it was withdrawn."""
        while True:
            copy = await self._redis.bring(self.name, job.payload, brought.key)
            brought.number, brought.recall = int(copy.handle), None
            try:
                async for event in copy.events():
                    if isinstance(event, Progressed):
                        job.progress(event.numerator, event.denominator)
                    elif isinstance(event, Completed | Failed):
                        return None if brought.recall is not None and await brought.recall else event
            except ResultGoneError:
                pass  # Redis lost the job: it was restarted, or emptied
            except ServerGoneError:
                await asyncio.sleep(_RETRY_SECONDS)

    def _count(self, to_server: bool, failed: bool) -> None:
        if to_server:
            self._summary.to_server += 1
        else:
            self._summary.to_redis += 1
        self._summary.failed += failed


def _origin_key(job: Job) -> str:
    """The name of a job of the server. A handle alone is not enough: gearmand gives it again after a restart."""
    digest = hashlib.sha256()
    for part in (job.details.handle, job.details.unique, job.payload):
        digest.update(b"%d:" % len(part) + part)
    return digest.hexdigest()[:40]
