"""Submitting jobs and hearing of them, on our server and on gearmand."""

import asyncio
import time

import pytest

import geartrain
from geartrain.client.job_events import Completed, Data, Event, Failed, Progressed, Warned
from geartrain.client.order import Order
from geartrain.model import Priority
from tests.acceptance.library.conftest import PATIENCE, play, working
from tests.support import serving
from tests.support.gearman_peer import Peer


async def reverse(job: geartrain.Job) -> bytes:
    return job.payload[::-1]


async def talk(job: geartrain.Job) -> str:
    job.progress(1, 4)
    job.data("part")
    job.data(b"\0\xff")
    job.warn("careful")
    job.progress(4, 4)
    return "whole"


async def fail(job: geartrain.Job) -> None:
    raise ValueError(f"{job.payload.decode()} is not a number")


@pytest.mark.parametrize("payload", [b"", b"hello", "gr\u00fc\u00dfe", b"\0\xff\0", bytes(range(256)) * 32768])
def test_a_result_comes_back(server: serving.ServerProcess, function: str, payload: bytes | str) -> None:
    expected = (payload.encode() if isinstance(payload, str) else payload)[::-1]

    async def scenario() -> None:
        async with geartrain.AsyncClient(server.url) as client, working(server.url, **{function: reverse}):
            assert await client.run(function, payload) == expected

    play(scenario)


def test_a_thousand_jobs_at_once_on_one_connection(server: serving.ServerProcess, function: str) -> None:
    everything = asyncio.Event()

    async def hold(job: geartrain.Job) -> bytes:
        await everything.wait()
        return job.payload[::-1]

    async def scenario() -> None:
        async with geartrain.AsyncClient(server.url) as client, working(server.url, **{function: hold}):
            jobs = await asyncio.gather(*(client.submit(function, f"job {n}") for n in range(1000)))
            assert len({job.handle for job in jobs}) == 1000
            with Peer(server.port) as admin:
                assert admin.listing("status")
            everything.set()
            results = await asyncio.gather(*(job.result() for job in jobs))
            assert results == [f"job {n}"[::-1].encode() for n in range(1000)]

    play(scenario)


def test_events_come_in_order_and_the_end_is_the_last(server: serving.ServerProcess, function: str) -> None:
    async def scenario() -> list[Event]:
        async with geartrain.AsyncClient(server.url) as client, working(server.url, **{function: talk}):
            job = await client.submit(function)
            heard = [event async for event in job.events()]
            assert await job.result() == b"whole"
            assert job.done
            assert [event async for event in job.events()] == []
            return heard

    assert play(scenario) == [
        Progressed(1, 4),
        Data(b"part"),
        Data(b"\0\xff"),
        Warned(b"careful"),
        Progressed(4, 4),
        Completed(b"whole"),
    ]


def test_a_failure_says_why(server: serving.ServerProcess, function: str) -> None:
    async def scenario() -> None:
        async with geartrain.AsyncClient(server.url) as client, working(server.url, **{function: fail}):
            job = await client.submit(function, "x")
            with pytest.raises(geartrain.JobFailedError, match="ValueError: x is not a number") as caught:
                await job.result()
            assert caught.value.reason == "ValueError: x is not a number"
            assert caught.value.data == b"ValueError: x is not a number"
            (event,) = [event async for event in job.events()]
            assert event == Failed("ValueError: x is not a number", 1, b"ValueError: x is not a number")

    play(scenario)


def test_waiting_can_be_given_up_and_taken_up_again(server: serving.ServerProcess, function: str) -> None:
    go = asyncio.Event()

    async def wait(job: geartrain.Job) -> str:
        await go.wait()
        return "late"

    async def scenario() -> None:
        async with geartrain.AsyncClient(server.url) as client, working(server.url, **{function: wait}):
            job = await client.submit(function)
            with pytest.raises(geartrain.JobTimeoutError, match=function):
                await job.result(0.01)
            with pytest.raises(geartrain.JobTimeoutError):
                await client.run(function, wait=0.01)
            go.set()
            assert await job.result(PATIENCE) == b"late"

    play(scenario)


def test_equal_unique_keys_share_a_job_and_each_hears_everything_once(
    server: serving.ServerProcess, function: str
) -> None:
    async def scenario() -> None:
        async with geartrain.AsyncClient(server.url) as client:
            jobs = [await client.submit(function, unique="same") for _ in range(3)]
            assert len({job.handle for job in jobs}) == 1
            assert {job.unique for job in jobs} == {"same"}
            async with working(server.url, **{function: talk}):
                for job in jobs:
                    heard = [event async for event in job.events()]
                    assert [type(event) for event in heard] == [Progressed, Data, Data, Warned, Progressed, Completed]

    play(scenario)


def test_priorities(server: serving.ServerProcess, function: str) -> None:
    ran: list[bytes] = []

    async def note(job: geartrain.Job) -> None:
        ran.append(job.payload)

    async def scenario() -> None:
        async with geartrain.AsyncClient(server.url) as client:
            jobs = [
                await client.submit(function, name, priority=priority)
                for name, priority in (("low", "low"), ("normal", Priority.NORMAL), ("high", Priority.HIGH))
            ]
            worker = geartrain.AsyncWorker(server.url, concurrency=1)
            worker.register(function, note)
            async with worker:
                for job in jobs:
                    await job.result()

    play(scenario)
    assert ran == [b"high", b"normal", b"low"]


def test_background_jobs_can_be_asked_for_and_cancelled(server: serving.ServerProcess, function: str) -> None:
    async def scenario() -> None:
        async with geartrain.AsyncClient(server.url) as client, geartrain.AsyncClient(server.url) as other:
            job = await client.submit(function, background=True)
            status = await job.status()
            assert (status.known, status.running) == (True, False)
            same = other.job(job.handle)
            assert (await same.status()).known
            assert await same.cancel() is True
            unknown = other.job("H:nobody:1")
            assert (await unknown.status()).known is False
            assert await unknown.cancel() is False

    play(scenario)


def test_the_status_has_the_progress(server: serving.ServerProcess, function: str) -> None:
    said, go = asyncio.Event(), asyncio.Event()

    async def half(job: geartrain.Job) -> None:
        job.progress(1, 2)
        said.set()
        await go.wait()

    async def scenario() -> None:
        async with geartrain.AsyncClient(server.url) as client, working(server.url, **{function: half}):
            job = await client.submit(function)
            await said.wait()
            async for event in job.events():
                assert event == Progressed(1, 2)
                break
            assert await job.status() == (True, True, 1, 2, "running", "")
            go.set()
            assert await job.result() == b""

    play(scenario)


def test_a_cancelled_job_fails_for_who_waits(server: serving.ServerProcess, function: str) -> None:
    async def scenario() -> None:
        async with geartrain.AsyncClient(server.url) as client:
            job = await client.submit(function)
            assert await job.cancel()
            with pytest.raises(geartrain.JobFailedError):
                await job.result()

    play(scenario)


def test_a_time_that_has_passed_means_now_and_one_to_come_waits(server: serving.ServerProcess, function: str) -> None:
    ran = asyncio.Event()

    async def note(job: geartrain.Job) -> None:
        assert job.payload == b"now"
        ran.set()

    async def scenario() -> None:
        async with geartrain.AsyncClient(server.url) as client:
            await client.submit(function, "now", background=True, at=time.time() - 10)
            async with working(server.url, **{function: note}):
                await ran.wait()
            later = await client.submit(function, "later", background=True, delay=3600)
            assert (await later.status()).known
            assert await later.cancel()

    play(scenario)


def test_a_full_queue_refuses(server: serving.ServerProcess, function: str) -> None:
    async def scenario() -> None:
        async with geartrain.AsyncClient(server.url) as client:
            kept = await client.submit(function, background=True)
            with Peer(server.port) as admin:
                admin.text(f"maxqueue {function} 1")
                assert admin.line().strip() == b"OK"
            with pytest.raises(geartrain.RefusedError, match="QUEUE_ERROR"):
                await client.submit(function, background=True)
            orders = [client.order(function, background=True), client.order(f"{function}-other", background=True)]
            with pytest.raises(geartrain.RefusedError):
                await client.submit_many(orders)
            refused, taken = await client.submit_many(orders, return_exceptions=True)
            assert isinstance(refused, geartrain.RefusedError)
            assert isinstance(taken, geartrain.AsyncJob)
            assert await kept.cancel()

    play(scenario)


def test_many_at_once(server: serving.ServerProcess, function: str) -> None:
    async def scenario() -> None:
        async with geartrain.AsyncClient(server.url) as client, working(server.url, **{function: reverse}):
            jobs = await client.submit_many(client.order(function, f"n{n}") for n in range(5000))
            assert [await job.result() for job in jobs] == [f"n{n}"[::-1].encode() for n in range(5000)]
            assert await client.submit_many([]) == []

    play(scenario)


def test_closing_ends_every_wait(ours: serving.ServerProcess, function: str) -> None:
    async def scenario() -> None:
        client = geartrain.AsyncClient(ours.url)
        job = await client.submit(function)
        waiting = asyncio.create_task(job.result())
        await asyncio.sleep(0)
        await client.close()
        with pytest.raises(geartrain.ClientError, match="closed"):
            await waiting
        for call in (client.submit(function), client.connect(), job.status()):
            with pytest.raises(geartrain.ClientError, match="closed"):
                await call
        await client.close()

    play(scenario)


def test_a_job_that_is_not_waited_for_any_more(ours: serving.ServerProcess, function: str) -> None:
    async def scenario() -> None:
        async with geartrain.AsyncClient(ours.url) as client:
            job = await client.submit(function)
            job.forget()
            with pytest.raises(geartrain.ClientError, match="not waited for"):
                await job.result()
            async with working(ours.url, **{function: reverse}):
                assert await client.run(function, "abc") == b"cba"

    play(scenario)


def test_a_cancelled_call_leaves_the_client_usable(ours: serving.ServerProcess, function: str) -> None:
    async def scenario() -> None:
        async with geartrain.AsyncClient(ours.url) as client:
            calls = [asyncio.create_task(client.run(function, str(n))) for n in range(10)]
            await client.submit(f"{function}-other", background=True)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            assert all(call.cancelled() for call in calls)
            async with working(ours.url, **{function: reverse}):
                assert await client.run(function, "abc") == b"cba"

    play(scenario)


def test_orders_are_checked_when_they_are_made(ours: serving.ServerProcess, function: str) -> None:
    client = geartrain.AsyncClient(ours.url)
    assert client.order(function, "x", background=True, priority="low", unique="k") == Order(
        function.encode(), b"x", True, Priority.LOW, b"k"
    )
    with pytest.raises(ValueError, match="no priority"):
        client.order(function, priority="urgent")
    with pytest.raises(ValueError, match="not both"):
        client.order(function, background=True, at=1.0, delay=1.0)
