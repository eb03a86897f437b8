"""The same for asyncio."""

import asyncio
import contextlib
import inspect
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from geartrain import address
from geartrain.client.redis import async_blocking_pops, client_flow, connection, job, worker_flow
from geartrain.client.redis.flow import BrokenError, Command, Flow, Moves, Request
from geartrain.client.redis.job import Job, Options
from geartrain.client.redis.worker_flow import Task
from geartrain.errors import ClientError

T = TypeVar("T")


class AsyncRedisConnection:
    """A connection that carries out flows."""

    def __init__(self, url: str, single: bool = False) -> None:
        self.breaks = 0  # how often the connection broke
        self._redis: Any = connection.connect_async(url, single)
        self._pops = async_blocking_pops.AsyncBlockingPops(address.parse(url), self._let_go)

    async def carry_out(self, flow: Flow[T]) -> T:
        """Do everything that a flow wants done."""
        act: Callable[..., Request] = flow.send
        value: Any = None
        while True:
            try:
                request = act(value)
            except StopIteration as end:
                result: T = end.value
                return result
            try:
                act, value = flow.send, await self._perform(request)
            except Exception as error:
                act, value = flow.throw, connection.translated(error, request)

    async def close(self) -> None:
        """Hang up."""
        self._pops.close()
        await self._redis.aclose()

    async def _perform(self, request: Request) -> Any:
        pause = connection.FIRST_PAUSE
        for tries in range(connection.TRIES, 0, -1):
            try:
                return await (self._pops.wait(request) if isinstance(request, Moves) else self._send(request))
            except connection.CONNECTION_ERRORS:
                self.breaks += 1
                if not request.repeatable or tries == 1:
                    raise
            await asyncio.sleep(pause)
            pause *= 2
        raise AssertionError("unreachable")

    async def _send(self, command: Command) -> Any:
        if len(command.words) == 1:
            return await self._redis.execute_command(*command.words[0])
        async with self._redis.pipeline(transaction=True) as pipeline:
            for words in command.words:
                pipeline.execute_command(*words)
            return await pipeline.execute()

    async def _let_go(self, ids: Sequence[int]) -> None:
        with contextlib.suppress(*connection.CONNECTION_ERRORS):  # then the waits end by themselves
            for id in ids:
                await self._redis.execute_command("CLIENT", "UNBLOCK", id)


class _Closing:
    """Works with `async with`."""

    async def close(self) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class AsyncClient(_Closing):
    """Submits jobs and asks what came of them."""

    def __init__(self, url: str) -> None:
        self._connection = AsyncRedisConnection(url)

    async def run(
        self,
        function: str,
        payload: bytes | str = b"",
        priority: str = "normal",
        options: Options = Options.NONE,
        timeout: float = 0.0,
        scheduled: float | None = None,
    ) -> int:
        """Submit a job; returns its id. With OPT_BLOCKING, when it is finished: `timeout` seconds, 0 for ever."""
        number = await self._connection.carry_out(client_flow.submit(function, payload, priority, options, scheduled))
        if Options.BLOCKING in options:
            await self._connection.carry_out(client_flow.wait(function, number, timeout))
        return number

    async def get(self, function: str, number: int) -> Job:
        """The state of a job."""
        return await self._connection.carry_out(client_flow.get(function, number))

    async def close(self) -> None:
        """Hang up."""
        await self._connection.close()


class AsyncWorker(_Closing):
    """Runs jobs, one at a time. The work function may be a coroutine function; a plain one holds up the loop."""

    def __init__(self, url: str, work: Callable[[bytes], Any], lease: float = 30.0) -> None:
        self._url = url
        self._work = work
        self._duties = worker_flow.Duties(lease)
        self._connection = AsyncRedisConnection(url, single=True)
        self._started = False
        self._breaks = 0  # of the line when it started
        self._stopping = False
        self._carer: asyncio.Task[None] | None = None
        self._task: Task | None = None  # what it is at

    async def accept(self, function: str) -> None:
        """Run jobs of this function as well."""
        if function not in self._duties.functions:
            self._duties.functions.append(function)
            if self._started:
                await self._connection.carry_out(self._duties.register(function))

    async def update(self, dividend: float, divisor: float) -> None:
        """Say how far the current job is; for the work function."""
        if self._task is None:
            raise ClientError("there is no job to report on")
        await self._connection.carry_out(self._duties.update(self._task, dividend, divisor))

    async def run(self) -> None:
        """Run jobs until `stop` is called; connections that break are made anew."""
        pause = connection.FIRST_PAUSE
        while not self._stopping:
            try:
                await self.run_one()
                pause = connection.FIRST_PAUSE
            except (BrokenError, *connection.CONNECTION_ERRORS):
                self._started = False
                await asyncio.sleep(pause)
                pause = min(pause * 2, 5.0)

    async def run_one(self, seconds: float = worker_flow.POP_SECONDS) -> bool:
        """Run the next job if one comes within so long; whether one came."""
        await self._start()
        self._task = task = await self._connection.carry_out(self._duties.next(seconds))
        if task is None:
            return False
        status, output = await self._outcome(task)
        self._task = None
        await self._connection.carry_out(self._duties.finish(task, status, output))
        return True

    def stop(self) -> None:
        """Let `run` return after the current job."""
        self._stopping = True

    async def close(self) -> None:
        """Be counted no more, and hang up."""
        self.stop()
        if self._carer is not None:
            self._carer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._carer
            self._carer = None
        if self._started:
            self._started = False
            try:
                await self._connection.carry_out(self._duties.stop())
            except (BrokenError, *connection.CONNECTION_ERRORS):
                pass  # the others will notice
        await self._connection.close()

    async def _outcome(self, task: Task) -> tuple[str, Any]:
        try:
            output = self._work(task.input)
            if inspect.isawaitable(output):
                output = await output
            return "success", job.output_of(output)
        except Exception as error:
            return "error", str(error) or type(error).__name__

    async def _start(self) -> None:
        if not self._started or self._connection.breaks != self._breaks:
            self._breaks = self._connection.breaks
            await self._connection.carry_out(self._duties.start())
            self._started = True
        if self._carer is None and self._duties.needs_care:
            await self._connection.carry_out(self._duties.care())
            self._carer = asyncio.create_task(self._care())

    async def _care(self) -> None:
        """Renew leases while the work function works, on a connection of its own."""
        line = AsyncRedisConnection(self._url)
        try:
            while True:
                await asyncio.sleep(self._duties.lease / 3)
                with contextlib.suppress(Exception):  # Redis may be away for a while
                    await line.carry_out(self._duties.care())
        finally:
            await line.close()
