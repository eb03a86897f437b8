"""Asking about a background job later, from another program that knows its handle, over every protocol."""

import asyncio
import contextlib
import datetime
import time
from collections.abc import AsyncIterator

import pytest

import geartrain
from geartrain.client.job_events import Completed, Data, Failed, Progressed
from geartrain.errors import ExpiredError, JobFailedError, ResultGoneError, UnsupportedError
from tests.contract.protocols.targets import Target, Urls, only
from tests.support.protocol_ends import async_test, connected_worker, new_name

at_geartrain = only(lambda target: target.server == "geartrain")
NO_JOB = "H:nowhere:999999999"


@contextlib.asynccontextmanager
async def submitted_elsewhere(
    target: Target, urls: Urls, function: bytes, at: float | None = None
) -> AsyncIterator[geartrain.AsyncJob]:
    """A background job as another program sees it; where a protocol has none, one that came over gearman."""
    submitter = target.scheme if target.can.background and (at is None or target.can.run_at) else "gearman"
    async with geartrain.AsyncClient(urls[submitter]) as client:
        submitted = await client.submit(function, b"payload", background=True, at=at)
    named = submitter == target.scheme
    async with geartrain.AsyncClient(urls[target.scheme]) as client:
        yield client.job(submitted.handle, function if named else b"", submitted.unique if named else b"")


async def reached(job: geartrain.AsyncJob, state: str) -> geartrain.client.order.Status:
    """The job's status, when a report that is on its way has arrived."""
    while (status := await job.status()).state != state:
        await asyncio.sleep(0.01)
    return status


@async_test
async def test_states_before_and_after_the_end(target: Target, urls: Urls) -> None:
    function = new_name()
    async with submitted_elsewhere(target, urls, function) as job:
        status = await job.status()
        assert (status.state, status.known, status.running) == ("queued", True, False)
        async with connected_worker(urls[target.scheme], function) as worker:
            running = await worker.job()
            worker.protocol.progress(running, 3, 4)
            status = await reached(job, "running")
            assert status.known
            assert status.running
            while target.worker_can.progress and not status.denominator:
                status = await job.status()
            assert not target.worker_can.progress or (status.numerator, status.denominator) == (3, 4)
            worker.complete(running, b"result")
            status = await reached(job, "done" if target.server != "gearmand" else "unknown")
            assert (status.known, status.running) == (False, False)


@only(lambda target: target.server != "gearmand")
@async_test
async def test_result_before_and_after_the_end(target: Target, urls: Urls) -> None:
    function = new_name()
    async with submitted_elsewhere(target, urls, function) as job:
        waiting = [asyncio.create_task(job.result()) for _ in range(2)]
        async with connected_worker(urls[target.scheme], function) as worker:
            worker.complete(await worker.job(), b"\xff result")
            assert [await result for result in waiting] == [b"\xff result"] * 2
        async with geartrain.AsyncClient(urls[target.scheme]) as client:
            assert await client.job(job.handle, job.function, job.unique).result() == b"\xff result"


@only(lambda target: target.server != "gearmand")
@async_test
async def test_events_of_a_background_job(target: Target, urls: Urls) -> None:
    function = new_name()
    async with submitted_elsewhere(target, urls, function) as job:
        async with connected_worker(urls[target.scheme], function) as worker:
            running = await worker.job()
            worker.protocol.progress(running, 3, 4)
            await reached(job, "running")
            events = job.events()
            sends_parts = target.worker_can.progress and (target.can.data or target.scheme in ("http", "gearmonkey"))
            if sends_parts:
                assert await anext(events) == Progressed(3, 4)
            rest = asyncio.create_task(anext(events))
            worker.complete(running, b"result")
            assert await rest == Completed(b"result")
            assert [event async for event in events] == []
            assert await job.result() == b"result"
        assert [event async for event in job.events()] == [Completed(b"result")]


@only(lambda target: target.server == "geartrain" and target.can.data and target.worker_can.data)
@async_test
async def test_events_contain_the_parts_of_a_result(target: Target, urls: Urls) -> None:
    function = new_name()
    async with (
        submitted_elsewhere(target, urls, function) as job,
        connected_worker(urls[target.scheme], function) as worker,
        contextlib.aclosing(job.events()) as events,
    ):
        running = await worker.job()
        first = asyncio.create_task(anext(events))
        while not first.done():  # the watch begins when the server has its control job
            worker.protocol.data(running, b"\xffpart")
            await asyncio.sleep(0.01)
        assert await first == Data(b"\xffpart")
        worker.complete(running)


@at_geartrain
@async_test
async def test_scheduled_and_cancelled(target: Target, urls: Urls) -> None:
    async with submitted_elsewhere(target, urls, new_name(), at=time.time() + 3600) as job:
        assert (await job.status()).state == "scheduled"
        result = asyncio.create_task(job.result())
        assert await job.cancel()
        with pytest.raises(JobFailedError, match=r"cancelled|removed"):
            await result
        assert (await job.status()).state == "cancelled"
        assert [type(event) async for event in job.events()] == [Failed]


@at_geartrain
@async_test
async def test_unknown(target: Target, urls: Urls) -> None:
    async with geartrain.AsyncClient(urls[target.scheme]) as client:
        job = client.job(NO_JOB if target.scheme != "gearmonkey" else "999999999", new_name())
        assert (await job.status()).state == "unknown"
        with pytest.raises(ResultGoneError):
            await job.result()


@only(lambda target: target.server == "gearmand")
@async_test
async def test_a_server_without_records_says_so(target: Target, urls: Urls) -> None:
    async with submitted_elsewhere(target, urls, new_name()) as job:
        with pytest.raises(UnsupportedError):
            await job.result()
        with pytest.raises(UnsupportedError):
            await anext(job.events())
        assert await job.cancel()


@only(lambda target: target.server == "geartrain" and target.can.expires)
@async_test
async def test_expired(target: Target, urls: Urls) -> None:
    async with geartrain.AsyncClient(urls[target.scheme]) as client:
        moment = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=0.2)
        orders = [client.order(new_name(), background=True, expires=expires) for expires in (0.2, moment)]
        for job in await client.submit_many(orders):
            with pytest.raises(ExpiredError, match="no worker was free"):
                await job.result()
            assert (await job.status()).state == "expired"
        with pytest.raises(ValueError, match="before it may run"):
            client.order(new_name(), background=True, delay=10, expires=5)
        with pytest.raises(ValueError, match="above 0"):
            client.order(new_name(), background=True, expires=0)


@only(lambda target: target.server == "gearmand")
@async_test
async def test_a_server_that_is_no_geartrain_gets_no_job_that_expires(target: Target, url: str) -> None:
    async with geartrain.AsyncClient(url) as client:
        with pytest.raises(UnsupportedError, match="no Geartrain"):
            await client.submit(new_name(), background=True, expires=60)
        with pytest.raises(UnsupportedError, match="background"):
            await client.submit(new_name(), expires=60)
