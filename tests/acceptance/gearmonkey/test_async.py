"""The asyncio twins, on a real Redis and on our door."""

import asyncio
from typing import Any

import pytest

from geartrain.client.gearmonkey import OPT_BLOCKING, OPT_ROLLCALL, AsyncClient, AsyncWorker
from geartrain.errors import JobTimeoutError, NoWorkersError
from tests.acceptance.gearmonkey.conftest import Place


def test_client_and_worker(place: Place, function: str) -> None:
    async def work(payload: bytes) -> bytes:
        await worker.update(1, 2)
        if payload == b"bad":
            raise ValueError("no such luck")
        return payload.upper()

    worker = AsyncWorker(place.url, work)

    async def scenario() -> list[Any]:
        async with AsyncClient(place.url) as client, worker:
            with pytest.raises(NoWorkersError):
                await client.run(function, options=OPT_ROLLCALL)
            await worker.accept(function)
            running = asyncio.create_task(worker.run())
            numbers = [
                await client.run(function, payload, options=OPT_BLOCKING, timeout=10) for payload in (b"good", b"bad")
            ]
            later = await client.run(function, b"later", "scheduled", scheduled=4e9)
            worker.stop()
            await running
            return [await client.get(function, number) for number in (*numbers, later)]

    good, bad, later = asyncio.run(scenario())
    assert good[:3] == ("success", b"good", b"GOOD")
    assert bad[:3] == ("error", b"bad", b"no such luck")
    assert later[:3] == ("idle", b"later", None)


def test_many_clients_wait_at_once(place: Place, function: str) -> None:
    async def scenario() -> list[bytes | None]:
        async with AsyncClient(place.url) as client, AsyncWorker(place.url, lambda payload: payload * 2) as worker:
            await worker.accept(function)
            running = asyncio.create_task(worker.run())
            jobs = [client.run(function, b"%d" % n, options=OPT_BLOCKING, timeout=20) for n in range(30)]
            numbers = await asyncio.gather(*jobs)
            worker.stop()
            await running
            return [(await client.get(function, number)).output for number in numbers]

    assert asyncio.run(scenario()) == [b"%d%d" % (n, n) for n in range(30)]


def test_timeout(place: Place, function: str) -> None:
    async def scenario() -> None:
        async with AsyncClient(place.url) as client:
            with pytest.raises(JobTimeoutError) as waited:
                await client.run(function, options=OPT_BLOCKING, timeout=0.05)
            assert (await client.get(function, waited.value.id)).status == "idle"

    asyncio.run(scenario())


def test_payload_that_cannot_be_sent_harms_no_other_command(place: Place, function: str) -> None:
    """Commands share a connection."""

    async def scenario() -> list[bytes | None]:
        async with AsyncClient(place.url) as client:
            numbers = [await client.run(function, b"first")]
            results = await asyncio.gather(
                client.run(function, b"second"),
                client.run(function, "\ud800"),
                client.run(function, b"third"),
                return_exceptions=True,
            )
            assert [type(result) for result in results] == [int, UnicodeEncodeError, int]
            numbers += [result for result in results if isinstance(result, int)]
            return [(await client.get(function, number)).input for number in numbers]

    assert asyncio.run(scenario()) == [b"first", b"second", b"third"]


def test_cancelled_command_harms_no_other(place: Place, function: str) -> None:
    async def scenario() -> None:
        async with AsyncClient(place.url) as client:
            number = await client.run(function, b"x")
            reads = [asyncio.create_task(client.get(function, number)) for _ in range(10)]
            await asyncio.sleep(0)  # they are sent
            for read in reads[::2]:
                read.cancel()
            assert [job.input for job in await asyncio.gather(*reads[1::2])] == [b"x"] * 5
            assert (await client.get(function, number)).input == b"x"

    asyncio.run(scenario())
