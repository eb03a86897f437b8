"""What a bridge does in a real Redis, step by step."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from geartrain.client.bridge.direction import SideState
from geartrain.client.bridge.redis_side import RedisSide
from tests.acceptance.gearmonkey import redis_py_peer
from tests.support import redis_server

pytestmark = pytest.mark.peer("redis-server")


@asynccontextmanager
async def opened(redis: redis_server.RedisProcess, lease: float = 30.0) -> AsyncIterator[RedisSide]:
    side = RedisSide(redis.url, "", lease)
    await side.open()
    try:
        yield side
    finally:
        await side.close()


def play(redis: redis_server.RedisProcess, scenario: Callable[[RedisSide], Awaitable[None]]) -> None:
    async def run() -> None:
        async with opened(redis) as side:
            await scenario(side)

    asyncio.run(run())


def test_brought_job_is_not_taken(redis: redis_server.RedisProcess, function: str) -> None:
    """However many of them wait before the next job that was submitted here."""

    async def scenario(side: RedisSide) -> None:
        for number in range(150):
            await side.bring(function, b"brought", str(number))
        client = redis_py_peer.Client(redis.port)
        own = client.run(function, b"own")
        client.close()
        assert await side.look([function]) == [SideState(workers=0, waiting=1, brought=150)]
        job = await side.take(function)
        assert job is not None
        assert (job.number, job.input) == (own, b"own")
        assert await side.take(function) is None

    play(redis, scenario)


def test_job_that_is_brought_twice_is_one(redis: redis_server.RedisProcess, function: str) -> None:
    async def scenario(side: RedisSide) -> None:
        first, second = [await side.bring(function, b"", "same") for _ in range(2)]
        assert first.handle == second.handle
        assert await side.withdraw(function, int(first.handle), "same")
        assert not await side.withdraw(function, int(first.handle), "same")
        third = await side.bring(function, b"", "same")
        assert third.handle != first.handle

    play(redis, scenario)


def test_ended_jobs_are_forgotten(redis: redis_server.RedisProcess, function: str) -> None:
    async def scenario(side: RedisSide) -> None:
        await side.bring(function, b"", "one")
        worker = redis_py_peer.Worker(redis.port, lambda payload: payload)
        worker.accept(function)
        assert await side.look([function]) == [SideState(workers=1, brought=1)]
        worker.run_one()
        assert await side.look([function]) == [SideState(workers=1)]
        assert worker.redis.zcard(f"geartrain:brought:{function}") == 0
        worker.close()

    play(redis, scenario)


def test_job_of_a_dead_bridge_returns(redis: redis_server.RedisProcess, function: str) -> None:
    """It is in its queue again when its lease is over; the dead bridge cannot end it any more."""

    async def scenario(side: RedisSide) -> None:
        client = redis_py_peer.Client(redis.port)
        number = client.run(function, b"hello")
        async with opened(redis, lease=0.05) as dead:
            job = await dead.take(function)
            assert job is not None
            assert await side.take(function) is None
            again = None
            while again is None:
                await side.return_lost(function)
                again = await side.take(function)
            assert again.number == number
            await dead.finish(job, "error", b"late")
        await side.finish(again, "success", b"olleh")
        assert client.get(function, number).output == b"olleh"
        client.close()

    play(redis, scenario)


def test_lock(redis: redis_server.RedisProcess, function: str) -> None:
    async def scenario(side: RedisSide) -> None:
        async with opened(redis) as other:
            assert await side.lock(function)
            assert await side.lock(function)
            assert not await other.lock(function)
            await other.unlock(function)
            assert not await other.lock(function)
            await side.unlock(function)
            assert await other.lock(function)

    play(redis, scenario)
