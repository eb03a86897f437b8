"""Client and worker for asyncio."""

import asyncio
import contextlib
import inspect
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from geartrain.client.redis import client_flow, connection, job, worker_flow
from geartrain.client.redis.connection import RedisConnection
from geartrain.client.redis.job import Job, Options
from geartrain.client.redis.submitter import Submitter
from geartrain.client.redis.worker_flow import TakenJob, WorkerFlow
from geartrain.errors import ClientError

_LONGEST_PAUSE = 5.0  # seconds between attempts to connect


class AsyncClosing:
    """Closes itself at the end of `async with`."""

    async def close(self) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class AsyncClient(AsyncClosing):
    """Submits jobs and reads their state.

    async with AsyncClient("gearmonkey://127.0.0.1:6379/0") as client:
        number = await client.run("reverse", b"hello", options=OPT_BLOCKING, timeout=10)
        print((await client.get("reverse", number)).output)
    """

    def __init__(self, url: str) -> None:
        self._redis = RedisConnection(url)
        self._submitter = Submitter()
        self._breaks = 0  # of the connection, when the submitter was last reset

    async def run(
        self,
        function: str,
        payload: bytes | str = b"",
        priority: str = "normal",
        options: Options = Options.NONE,
        timeout: float = 0.0,
        scheduled: float | None = None,
    ) -> int:
        """Submit a job and return its id; with OPT_BLOCKING, after it has finished.

        `timeout` is how many seconds to wait for that, 0 for no limit.
        """
        if self._redis.breaks != self._breaks:
            self._breaks = self._redis.breaks
            self._submitter.reset()
        number = await self._redis.run(self._submitter.submit(function, payload, priority, options, scheduled))
        if Options.BLOCKING in options:
            await self.wait(function, number, timeout)
        return number

    async def wait(self, function: str, number: int, timeout: float = 0.0) -> None:
        """Wait until a job has finished, at most `timeout` seconds; 0: without a limit."""
        await self._redis.run(client_flow.wait(function, number, timeout))

    async def get(self, function: str, number: int) -> Job:
        """The state of a job."""
        return await self._redis.run(client_flow.get(function, number))

    async def close(self) -> None:
        """Close all connections."""
        await self._redis.close()


class AsyncWorker(AsyncClosing):
    """Runs jobs, one at a time.

        async with AsyncWorker("gearmonkey://127.0.0.1:6379/0", lambda payload: payload[::-1]) as worker:
            await worker.accept("reverse")
            await worker.run()

    The work function may be a coroutine function; a plain one blocks the event loop. `lease` is how many seconds a
    dead worker's job, and the worker in the count of workers, outlive it on a real Redis.
    """

    def __init__(self, url: str, work: Callable[[bytes], Any], lease: float = 30.0) -> None:
        self._url = url
        self._work = work
        self._flow = WorkerFlow(lease)
        self._redis = RedisConnection(url, single=True)
        self._started = False
        self._breaks = 0  # of the connection when the worker started
        self._stopping = False
        self._renewing: asyncio.Task[None] | None = None
        self._job: TakenJob | None = None  # that runs

    async def accept(self, function: str) -> None:
        """Run jobs of this function as well."""
        if function not in self._flow.functions:
            self._flow.functions.append(function)
            if self._started:
                await self._redis.run(self._flow.register(function))

    async def update(self, dividend: float, divisor: float) -> None:
        """Report the progress of the current job; for the work function."""
        if self._job is None:
            raise ClientError("there is no job to report on")
        await self._redis.run(self._flow.update(self._job, dividend, divisor))

    async def run(self) -> None:
        """Run jobs until `stop` is called; reconnect when a connection breaks."""
        pause = connection.FIRST_PAUSE
        while not self._stopping:
            try:
                await self.run_one()
                pause = connection.FIRST_PAUSE
            except connection.CONNECTION_ERRORS:
                self._started = False
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)

    async def run_one(self, seconds: float = worker_flow.POP_SECONDS) -> bool:
        """Run the next job, if one arrives within this time; false if none did."""
        task = await self.fetch(seconds)
        if task is None:
            return False
        try:
            output = self._work(task.input)
            if inspect.isawaitable(output):
                output = await output
            ending = succeeded(output)
        except Exception as error:
            ending = failed(error)
        await self.finish(task, *ending)
        return True

    async def fetch(self, seconds: float) -> TakenJob | None:
        """Take the next job, if one arrives within this time."""
        await self._start()
        self._job = await self._redis.run(self._flow.next(seconds))
        return self._job

    async def finish(self, task: TakenJob, status: str, output: Any) -> None:
        """Write down how a job ended."""
        self._job = None
        await self._redis.run(self._flow.finish(task, status, output))

    def stop(self) -> None:
        """Let `run` return after the current job."""
        self._stopping = True

    async def close(self) -> None:
        """Unregister, and close all connections."""
        self.stop()
        await self.unregister()
        await self._redis.close()

    async def unregister(self) -> None:
        """Be no longer counted as a worker; fetching a job registers again."""
        if self._renewing is not None:
            self._renewing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._renewing
            self._renewing = None
        if self._started:
            self._started = False
            with contextlib.suppress(*connection.CONNECTION_ERRORS):  # then other workers correct the count
                await self._redis.run(self._flow.stop())

    async def _start(self) -> None:
        if not self._started or self._redis.breaks != self._breaks:
            self._breaks = self._redis.breaks
            await self._redis.run(self._flow.start())
            await self._redis.run(self._flow.tie())
            self._started = True
        if self._renewing is None and self._flow.has_leases:
            await self._redis.run(self._flow.renew())
            self._renewing = asyncio.create_task(self._renew_leases())

    async def _renew_leases(self) -> None:
        """Renew the lease while the work function runs, on a connection of its own."""
        redis = RedisConnection(self._url)
        try:
            while True:
                await asyncio.sleep(self._flow.lease / 3)
                with contextlib.suppress(Exception):  # Redis may be away for a while; the lease limits for how long
                    await redis.run(self._flow.renew())
        finally:
            await redis.close()


def succeeded(output: object) -> tuple[str, Any]:
    """The status and output of a job whose work function returned this; a TypeError for what Redis cannot store."""
    return "success", job.output_of(output)


def failed(error: Exception) -> tuple[str, Any]:
    """The status and output of a job whose work function raised this."""
    return "error", str(error) or type(error).__name__
