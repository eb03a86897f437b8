"""Run flows on a Redis, with reconnecting.

A command is sent again after a lost connection only if it is repeatable: a pop that is sent again loses the job that
the first one got, and a push that is sent again queues a job twice.
"""

import asyncio
import collections
import contextlib
import ssl
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from geartrain import address
from geartrain.address import Address
from geartrain.client.credentials import credentials_for
from geartrain.client.redis.blocking_pops import BlockingPops
from geartrain.client.redis.flow import (
    BrokenError,
    CommandError,
    Flow,
    Moves,
    NoScriptError,
    NotSentError,
    RedisCommand,
    Request,
)
from geartrain.client.redis.pipeline import Pipeline
from geartrain.errors import AddressError, ServerGoneError

ANSWER_SECONDS: Final = 30.0  # longer than every pop
ATTEMPTS: Final = 4  # of a command that may be repeated
FIRST_PAUSE: Final = 0.05  # seconds between attempts, doubled each time
# A lost connection, or one that cannot be opened.
CONNECTION_ERRORS: Final = (BrokenError, ServerGoneError, OSError)

T = TypeVar("T")


def parse(url: str) -> Address:
    """The address of a GearMonkey URL."""
    server = address.parse(url)
    if server.scheme != "gearmonkey":
        raise AddressError(f"{url!r} is no GearMonkey address: gearmonkey://127.0.0.1:6379/0")
    if not (server.path.removeprefix("/") or "0").isdigit():
        raise AddressError(f"{url!r}: a database is a number")
    return server


class RedisConnection:
    """Runs flows. They share one connection, on which many commands may be under way.

    A command that waits at the server has a connection to itself, unless `single` is set: a worker's commands must all
    be sent on the same one.
    """

    def __init__(
        self, url: str, single: bool = False, tls: ssl.SSLContext | None = None, token: str | None = None
    ) -> None:
        self.breaks = 0  # how many connections were lost
        self._address = parse(url)
        self._single = single
        self._shared: Pipeline | None = None
        self._opening = asyncio.Lock()  # of the shared connection
        self._idle: list[Pipeline] = []  # for commands that wait
        self._busy: collections.Counter[Pipeline] = collections.Counter()  # how many commands are under way on each
        self._credentials = credentials_for(self._address, tls, token)
        self._pops = BlockingPops(self._address, self._unblock)
        self._pops.tls, self._pops.token = self._credentials.tls, self._credentials.token

    async def run(self, flow: Flow[T]) -> T:
        """Perform all requests of a flow, and return its result."""
        advance: Callable[..., Request] = flow.send
        value: Any = None
        while True:
            try:
                request = advance(value)
            except StopIteration as end:
                result: T = end.value
                return result
            try:
                advance, value = flow.send, await self._perform(request)
            except Exception as error:
                advance, value = flow.throw, error

    async def close(self) -> None:
        """Close all connections."""
        self._pops.close()
        for pipeline in list(self._busy):
            pipeline.abandon()
        left, self._idle = self._idle, []
        if self._shared is not None and self._shared not in self._busy:
            left.append(self._shared)
        await asyncio.gather(*(pipeline.close() for pipeline in left))

    async def _perform(self, request: Request) -> Any:
        pause = FIRST_PAUSE
        for attempts_left in reversed(range(ATTEMPTS)):
            pipeline: Pipeline | None = None
            try:
                if isinstance(request, Moves):
                    return await self._pops.wait(request)
                pipeline = await self._connected(request)
                return await self._send(pipeline, request)
            except CONNECTION_ERRORS as error:
                self.breaks += 1
                if pipeline is not None and not (request.repeatable or isinstance(error, NotSentError)):
                    raise BrokenError(str(error)) from error
                if not attempts_left:
                    raise ServerGoneError(f"{self._address} does not answer: {error}") from error
            await asyncio.sleep(pause)
            pause *= 2
        raise AssertionError("unreachable")

    async def _send(self, pipeline: Pipeline, command: RedisCommand) -> Any:
        answer = pipeline.perform(command)
        self._busy[pipeline] += 1
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await answer
        except (CommandError, NoScriptError):
            raise
        except asyncio.CancelledError:
            if self._single or command.blocks:
                pipeline.abandon()  # the command may wait on at the server, and pop
            raise
        except BaseException:
            pipeline.abandon()
            raise
        finally:
            self._busy[pipeline] -= 1
            if not self._busy[pipeline]:
                del self._busy[pipeline]
            if pipeline.is_open and pipeline is not self._shared:
                self._idle.append(pipeline)

    async def _connected(self, command: RedisCommand) -> Pipeline:
        if command.blocks and not self._single:
            while self._idle:
                pipeline = self._idle.pop()
                if pipeline.is_open:
                    return pipeline
            return await self._open()
        shared = self._shared
        if shared is not None and shared.is_open:
            return shared
        async with self._opening:
            if self._shared is None or not self._shared.is_open:
                self._shared = await self._open()
            return self._shared

    async def _open(self) -> Pipeline:
        pipeline = Pipeline(self._lost)
        await pipeline.open(self._address, self._credentials.tls, self._credentials.token)
        return pipeline

    def _lost(self, error: Exception) -> None:
        self.breaks += 1  # the commands on it fail with a BrokenError

    async def _unblock(self, ids: Sequence[int]) -> None:
        with contextlib.suppress(*CONNECTION_ERRORS):  # then the waits end by themselves
            for id in ids:
                command = RedisCommand((("CLIENT", "UNBLOCK", id),), repeatable=True)
                await self._send(await self._connected(command), command)
