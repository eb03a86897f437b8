"""A job of the library takes no more round trips at our door than on a real Redis."""

import asyncio
from collections.abc import Iterator

import pytest

from geartrain.client import gearmonkey
from tests.acceptance.gearmonkey.conftest import Place
from tests.support.redis_proxy import RENEWALS, RedisProxy

JOBS = 20
# The commands of a client that submits, and of a worker that finds jobs in the queue.
SUBMISSION = {
    "redis": ["INCR", "HMSET", "PUBLISH", "LPUSH"],
    "geartrain": ["HMSET", "LPUSH"],
}
RUN = {
    "redis": ["EVALSHA TAKE", "EVALSHA FINISH"],
    "geartrain": ["BRPOP", "HMSET"],
}


@pytest.fixture
def proxy(place: Place) -> Iterator[RedisProxy]:
    with RedisProxy(place.port) as between:
        yield between


def test_client(place: Place, proxy: RedisProxy, function: str) -> None:
    with gearmonkey.Client(proxy.url) as client:
        for _ in range(4):  # the first ones find out what the server is, and take ids
            client.run(function, b"x")
        trips, answered = proxy.round_trips, len(proxy.answered)
        for _ in range(JOBS):
            client.run(function, b"x")
        commands = [name for name in proxy.answered[answered:] if name != "INCRBY"]
        assert commands == SUBMISSION[place.name] * JOBS
        blocks = proxy.answered[answered:].count("INCRBY")
        assert blocks < JOBS / 5
        each = 4 if place.name == "redis" else 1
        assert proxy.round_trips - trips == each * JOBS + blocks


def test_worker(place: Place, proxy: RedisProxy, function: str) -> None:
    with gearmonkey.Client(place.url) as client, gearmonkey.Worker(proxy.url, bytes.upper) as worker:
        worker.accept(function)
        numbers = [client.run(function, b"abc") for _ in range(JOBS + 1)]
        assert worker.run_one(10)  # which also registers
        trips, answered = proxy.round_trips, len(proxy.answered)
        for _ in range(JOBS):
            assert worker.run_one(10)
        commands = [name for name in proxy.answered[answered:] if name not in RENEWALS]
        assert commands == RUN[place.name] * JOBS
        renewals = len(proxy.answered) - answered - len(commands)
        assert proxy.round_trips - trips <= 2 * JOBS + renewals
        assert [client.get(function, number).output for number in numbers] == [b"ABC"] * (JOBS + 1)


def test_commands_of_many_coroutines_leave_together(proxy: RedisProxy, function: str) -> None:
    async def scenario() -> None:
        async with gearmonkey.AsyncClient(proxy.url) as client:
            number = await client.run(function, b"x")
            trips = proxy.round_trips
            jobs = await asyncio.gather(*(client.get(function, number) for _ in range(JOBS)))
            assert [job.input for job in jobs] == [b"x"] * JOBS
            assert proxy.round_trips == trips + 1

    asyncio.run(scenario())
