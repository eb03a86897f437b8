"""The Redis of a bridge: look at functions, take jobs with a lease, and bring jobs of the server."""

import asyncio
import secrets
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from geartrain.client.async_client import AsyncClient
from geartrain.client.async_job import AsyncJob
from geartrain.client.bridge import redis_scripts
from geartrain.client.bridge.direction import SideState
from geartrain.client.redis import connection, flow, names, plain_worker
from geartrain.client.redis.connection import RedisConnection
from geartrain.client.redis.flow import Flow
from geartrain.client.redis.leased_worker import LeasedWorker
from geartrain.client.redis.plain_worker import TakenJob
from geartrain.errors import ClientError

# The lock of a function outlives the leases of the jobs that were taken under it.
_LOCK_LEASES: Final = 1.5
_ORIGIN_LEASES: Final = 2.0
_RETRY_SECONDS: Final = 1.0
_KEYS_PER_SCAN: Final = 1000

T = TypeVar("T")


class RedisSide:
    """A real Redis; `password` is empty if it has none."""

    def __init__(self, url: str, password: str, lease: float) -> None:
        self.url = url
        self.lease = lease
        self.identity = ""  # of this Redis, for the unique keys of its jobs at the server
        self._token = secrets.token_hex(8)  # of this bridge
        self._connection = RedisConnection(url, token=password)
        self._worker = LeasedWorker(self._token, lease)
        self._client = AsyncClient(url, token=password)

    async def open(self) -> None:
        """Find out which Redis this is; a ClientError if it is a Geartrain server."""
        if "geartrain_version" in await self.run(_ask("INFO")):
            raise ClientError(
                f"{self.url} is a Geartrain server, not a Redis: all its protocols share their jobs already, and "
                "`geartrain move` moves them to another server"
            )
        await self.run(_ask("SET", names.IDENTITY, secrets.token_hex(6), "NX"))
        self.identity = (await self.run(_ask("GET", names.IDENTITY))).decode()

    async def close(self) -> None:
        """Close all connections."""
        await self._connection.close()
        await self._client.close()

    async def run(self, flow: Flow[T]) -> T:
        """Run a flow; a ServerGoneError if Redis does not answer after some attempts."""
        return await self._connection.run(flow)

    async def insist(self, make: Callable[[], Flow[T]]) -> T:
        """Run the flow that `make` returns until Redis has answered, however long that takes."""
        while True:
            try:
                return await self.run(make())
            except connection.CONNECTION_ERRORS:
                await asyncio.sleep(_RETRY_SECONDS)

    # Functions

    async def functions(self) -> set[str]:
        """The functions that have workers, or had jobs."""
        found: set[str] = set()
        for pattern in ("uid:*", "count:*"):
            cursor = b"0"
            while True:
                cursor, keys = await self.run(_ask("SCAN", cursor, "MATCH", pattern, "COUNT", _KEYS_PER_SCAN))
                found.update(key.decode("utf-8", "surrogateescape").partition(":")[2] for key in keys)
                if cursor == b"0":
                    break
        return found

    async def look(self, functions: Sequence[str]) -> list[SideState]:
        """The workers and jobs of functions, in their order."""
        keys = []
        for function in functions:
            keys += [names.queue(function, name) for name in (names.SCHEDULED, *names.PRIORITIES)]
            keys += [names.count(function), names.workers(function), names.brought(function)]
        answer = await self.run(flow.evaluate(redis_scripts.LOOK, keys, [self._token, *functions]))
        return [
            SideState(max(workers, 0), max(waiting - brought, 0), brought=brought)
            for workers, waiting, brought in answer
        ]

    async def lock(self, function: str) -> bool:
        """Take or renew the lock of a function; false if another bridge has it."""
        arguments = [self._token, round(self.lease * _LOCK_LEASES * 1000)]
        return bool(await self.run(flow.evaluate(redis_scripts.LOCK, [names.bridge(function)], arguments)))

    async def unlock(self, function: str) -> None:
        """Leave a function to other bridges."""
        await self.run(self._worker.unregister(function))
        await self.run(flow.evaluate(redis_scripts.UNLOCK, [names.bridge(function)], [self._token]))

    async def register(self, function: str, registered: bool) -> None:
        """Count this bridge among the workers of a function, which clients may ask for before they submit, or not."""
        worker = self._worker
        await self.run(worker.register(function) if registered else worker.unregister(function))

    async def return_lost(self, function: str) -> None:
        """Put back the jobs of workers and bridges that died."""
        await self.run(self._worker.return_lost(function))

    # Jobs of this Redis

    async def take(self, function: str) -> TakenJob | None:
        """Take the next job, with a lease; none that was brought."""
        keys = [names.taken(function)]
        keys += [names.queue(function, name) for name in (names.SCHEDULED, *names.PRIORITIES)]
        keys.append(names.brought(function))
        arguments = [function, self._token, self.lease]
        reply = await self.run(flow.evaluate(redis_scripts.TAKE, keys, arguments))
        return None if reply is None else TakenJob(function, reply[0].decode(), int(reply[1]), reply[2])

    async def hold(self, jobs: Sequence[TakenJob]) -> list[TakenJob]:
        """Renew the leases of jobs; returns those that were given to other workers."""
        return await self.run(self._worker.hold(jobs))

    async def progress(self, job: TakenJob, dividend: int, divisor: int) -> None:
        """Report progress."""
        fields = ("status:dividend", dividend, "status:divisor", divisor)
        await self.run(_ask("HMSET", names.job(job.function, job.number), *fields))

    async def finish(self, job: TakenJob, status: str, output: bytes) -> None:
        """Write down how a job ended, unless it was given to another worker meanwhile."""
        await self.insist(lambda: self._worker.finish(job, status, output))

    async def give_back(self, job: TakenJob) -> None:
        """Put a job back into its queue."""
        await self.insist(lambda: self._worker.give_back(job))

    # Jobs of the server

    async def bring(self, function: str, payload: bytes, key: str) -> AsyncJob:
        """Submit a job of the server, unless it is here already; `key` names it."""
        keys = [
            names.origin(function, key),
            names.uid(function),
            names.queue(function, "normal"),
            names.brought(function),
            names.channel(function),
        ]
        arguments = [function, payload, self._origin_milliseconds]
        number = await self.insist(lambda: flow.evaluate(redis_scripts.BRING, keys, arguments))
        return self._client.job(b"%d" % number, function.encode("utf-8", "surrogateescape"))

    async def keep_origin(self, function: str, key: str) -> None:
        """Remember for another while which job was brought for a job of the server."""
        await self.run(_ask("PEXPIRE", names.origin(function, key), self._origin_milliseconds))

    async def forget_origin(self, function: str, key: str) -> None:
        """The job has ended."""
        await self.run(_ask("DEL", names.origin(function, key)))

    async def withdraw(self, function: str, number: int, key: str) -> bool:
        """End a job that was brought, and forget its origin; false if it does not wait any more."""
        keys = [
            names.origin(function, key),
            names.queue(function, "normal"),
            names.job(function, number),
            names.channel(function),
            names.lock(function, number),
        ]
        arguments = [number, "the server has it again", plain_worker.HASH_SECONDS, plain_worker.LOCK_SECONDS]
        return bool(await self.run(flow.evaluate(redis_scripts.WITHDRAW, keys, arguments)))

    @property
    def _origin_milliseconds(self) -> int:
        return round(self.lease * _ORIGIN_LEASES * 1000)


def _ask(*command: Any) -> Flow[Any]:
    return (yield flow.repeatable(*command))
