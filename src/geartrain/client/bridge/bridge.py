"""Joins a Redis with GearMonkey's jobs and a server, until it is stopped.

It looks at both sides twice a second, lets each function's jobs go the way that `direction` says, and renews what it
holds in Redis three times per lease: the locks of functions, its place among the workers, and the jobs.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final, NamedTuple

from geartrain.client.bridge import direction
from geartrain.client.bridge.arrivals import Arrivals
from geartrain.client.bridge.direction import SideState
from geartrain.client.bridge.function_bridge import BridgeSummary, FunctionBridge, Tell
from geartrain.client.bridge.redis_side import RedisSide
from geartrain.client.bridge.server_side import ServerSide
from geartrain.client.job_control import FUNCTION as CONTROL_FUNCTION
from geartrain.client.redis import connection
from geartrain.errors import GeartrainError

LOOK_SECONDS: Final = 0.5
DISCOVER_SECONDS: Final = 10.0
_SERVER_PATIENCE: Final = 5.0
_RENEWALS_PER_LEASE: Final = 3
_SHORTEST_ROUND: Final = 1.0  # seconds that a round may take, however short the lease is


class BridgeOptions(NamedTuple):
    """How to join."""

    functions: Sequence[str] = ()  # empty: all that either side has
    direction: str = direction.BOTH
    grace: float = 2.0  # seconds that jobs wait on a side with workers of its own
    lease: float = 30.0  # seconds after which the jobs of a bridge that died go back to Redis
    password: str = ""  # of Redis


class Bridge:
    """Joins two sides. `tell` is called with lines for the person who runs it."""

    def __init__(self, redis: str, server: str, options: BridgeOptions, tell: Tell) -> None:
        self.summary = BridgeSummary()
        self._options = options
        self._tell = tell
        self._redis = RedisSide(redis, options.password, options.lease)
        self._server = ServerSide(server, _SERVER_PATIENCE)
        self._arrivals = Arrivals(redis, options.password, self._arrived)
        self._functions: dict[str, FunctionBridge] = {}
        self._since: dict[tuple[str, str], float] = {}  # since when something is so, by its name and a function
        self._stop_requests = 0
        self._stopping = asyncio.Event()
        self._aborting = asyncio.Event()
        self._problem = ""  # that was told last
        self._renew_at = self._discover_at = 0.0  # times of the loop

    async def run(self) -> BridgeSummary:
        """Join the sides until `stop`; a ClientError at once if one cannot be reached or used."""
        try:
            await self._redis.open()
            await self._server.open()
            self._tell("joined; press Ctrl-C to stop")
            for name in self._options.functions:
                self._add(name)
            while not (self._aborting.is_set() or (self._stopping.is_set() and self._idle)):
                await self._try_round()
                await self._pause()
        finally:
            await self._end()
        return self.summary

    def stop(self) -> None:
        """Take no more jobs, and let `run` return when those under way have ended; the second time, at once."""
        self._stop_requests += 1
        self._stopping.set()
        if self._stop_requests > 1:
            self._aborting.set()

    @property
    def _idle(self) -> bool:
        return all(function.idle for function in self._functions.values())

    async def _pause(self) -> None:
        waited_for = self._aborting if self._stopping.is_set() else self._stopping
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(waited_for.wait(), LOOK_SECONDS)

    async def _end(self) -> None:
        for function in self._functions.values():
            await function.abort()
            if function.has_lock and not function.held:
                with contextlib.suppress(*connection.CONNECTION_ERRORS):
                    await self._redis.unlock(function.name)
        self._arrivals.close()
        await self._redis.close()
        await self._server.close()

    # Rounds

    async def _try_round(self) -> None:
        """Renew, discover and look. A side that does not answer stops the traffic until it does."""
        try:
            async with asyncio.timeout(max(self._options.lease / (_RENEWALS_PER_LEASE + 1), _SHORTEST_ROUND)):
                await self._round()
        except (GeartrainError, *connection.CONNECTION_ERRORS) as error:
            for function in self._functions.values():
                await function.allow(0, 0)
            problem = str(error) or "a side does not answer in time"
            if problem != self._problem:
                self._tell(f"waiting: {problem}")
            self._problem = problem
        else:
            if self._problem:
                self._tell("both sides answer again")
            self._problem = ""

    async def _round(self) -> None:
        now = asyncio.get_running_loop().time()
        if not self._options.functions and now >= self._discover_at and not self._stopping.is_set():
            await self._discover()
            self._discover_at = now + DISCOVER_SECONDS
        if now >= self._renew_at:
            for function in self._functions.values():
                await self._renew(function)
            self._renew_at = now + self._options.lease / _RENEWALS_PER_LEASE
        await self._arrivals.subscribe(self._functions)
        await self._look()

    async def _discover(self) -> None:
        for name in sorted(await self._redis.functions() | await self._server.functions()):
            if name and name != CONTROL_FUNCTION and name not in self._functions:
                self._add(name)
                self._renew_at = 0.0

    def _add(self, name: str) -> None:
        self._functions[name] = FunctionBridge(name, self._redis, self._server, self.summary, self._tell)

    async def _renew(self, function: FunctionBridge) -> None:
        had_lock = function.has_lock
        function.has_lock = await self._redis.lock(function.name)
        if not function.has_lock:
            if had_lock or function.unsettled:
                self._tell(f"{function.name}: another bridge has it; waiting for its end")
            function.unsettled = False
            await function.allow(0, 0)
            return
        if function.registered:
            await self._redis.register(function.name, True)
        for job in await self._redis.hold([held.job for held in function.held.values()]):
            held = function.held.get(job.number)
            if held is not None and held.task is not None:
                held.task.cancel()
        for key in list(function.brought):
            await self._redis.keep_origin(function.name, key)
        await self._redis.return_lost(function.name)

    async def _look(self) -> None:
        functions = [function for function in self._functions.values() if function.has_lock]
        if not functions:
            return
        names = [function.name for function in functions]
        here, there = await asyncio.gather(self._redis.look(names), self._server.look(names))
        for function, redis, server in zip(functions, here, there, strict=True):
            if self._stopping.is_set():
                await function.allow(0, 0)
            elif function.unsettled:
                function.unsettled = False
            else:
                await self._decide(
                    function,
                    self._with_wait("redis", function.name, redis),
                    self._with_wait("server", function.name, function.without_bridge(server)),
                )

    async def _decide(self, function: FunctionBridge, redis: SideState, server: SideState) -> None:
        way, grace = self._options.direction, self._options.grace
        before_to_server, before_to_redis = function.limits
        to_server = to_redis = 0
        if way != direction.TO_REDIS:
            to_server = direction.most_under_way(redis, server, grace, before_to_server)
        if way != direction.TO_SERVER:
            to_redis = direction.most_under_way(server, redis, grace, before_to_redis)
        is_worker = way != direction.TO_REDIS and server.workers > 0
        if is_worker != function.registered:
            await self._redis.register(function.name, is_worker)
            function.registered = is_worker
        await function.allow(to_server, to_redis)
        if self._has_lasted(("stranded", function.name), direction.is_stranded(server, redis)) >= max(
            grace, LOOK_SECONDS
        ):
            function.recall()

    def _with_wait(self, side: str, function: str, state: SideState) -> SideState:
        """The state with the time for which jobs have waited without a break."""
        return state._replace(waited=self._has_lasted((side, function), state.waiting > 0))

    def _has_lasted(self, what: tuple[str, str], is_so: bool) -> float:
        """For how many seconds it has been so at every look."""
        if not is_so:
            self._since.pop(what, None)
            return 0.0
        now = asyncio.get_running_loop().time()
        return now - self._since.setdefault(what, now)

    def _arrived(self, function: str) -> None:
        joined = self._functions.get(function)
        if joined is not None:
            joined.wake()
