"""Orders of a client protocol, and what their listeners hear."""

import asyncio
import time

import pytest

from geartrain.client.job_events import Completed, Data, Failed, Progressed, Warned
from geartrain.model import Priority
from tests.contract.protocols.targets import Target, only, that_can
from tests.support.protocol_ends import async_test, connected_client, connected_worker, new_name

EVERY_BYTE = bytes(range(256))


@pytest.mark.parametrize(
    "payload", [b"plain", b"", EVERY_BYTE, EVERY_BYTE * 16 * 1024], ids=["text", "empty", "bytes", "4MB"]
)
@async_test
async def test_payload_and_result_arrive_unchanged(target: Target, url: str, payload: bytes) -> None:
    function = new_name()
    async with connected_client(url) as client, connected_worker(url, function) as worker:
        listener = await client.accepted(function, payload)
        acceptance = await listener.acceptance()
        job = await worker.job()
        assert (job.function, job.payload) == (function, payload)
        assert acceptance.function == function
        if target.names_foreground_jobs:
            assert acceptance.handle
            assert job.handle in (acceptance.handle, b"")
        worker.complete(job, payload[::-1])
        assert await listener.events() == [Completed(payload[::-1])]


@async_test
async def test_reports_of_a_worker_are_heard_in_order(target: Target, url: str) -> None:
    """A worker may make every report: a protocol that has no message for one sends nothing."""
    function = new_name()
    async with connected_client(url) as client, connected_worker(url, function) as worker:
        listener = await client.accepted(function)
        job = await worker.job()
        worker.protocol.data(job, b"one")
        worker.protocol.data(job, EVERY_BYTE)
        worker.protocol.warn(job, b"careful")
        worker.protocol.progress(job, 1, 4)
        expected: list[object] = [Data(b"one"), Data(EVERY_BYTE)] if target.can.data else []
        expected += [Warned(b"careful")] if target.warnings else []
        expected += [Progressed(1, 4)] if target.can.progress else []
        assert [await listener.heard.next() for _ in expected] == expected
        worker.complete(job, b"done")
        assert await listener.events() == [Completed(b"done")]


@that_can("progress")
@async_test
async def test_progress_in_fractions(url: str) -> None:
    function = new_name()
    async with connected_client(url) as client, connected_worker(url, function) as worker:
        listener = await client.accepted(function)
        job = await worker.job()
        worker.protocol.progress(job, 0.75, 1)
        progress = await listener.heard.next()
        assert progress.numerator / progress.denominator == 0.75
        worker.complete(job)


@that_can("failure")
@async_test
async def test_failures_reach_the_client(target: Target, url: str) -> None:
    function = new_name()
    async with connected_client(url) as client, connected_worker(url, function) as worker:
        listener = await client.accepted(function)
        worker.fail(await worker.job(), "bad input", EVERY_BYTE, 77)
        [failure] = await listener.events()
        assert isinstance(failure, Failed)
        assert failure.data == (EVERY_BYTE if target.failure_data else b"")
        assert failure.code == (77 if target.failure_code else 1)

        listener = await client.accepted(function)
        worker.fail(await worker.job(), "no such file")
        [failure] = await listener.events()
        assert isinstance(failure, Failed)
        assert (failure.reason, failure.data) == ("no such file", b"no such file") or not target.failure_data

        listener = await client.accepted(function)
        worker.fail(await worker.job(), "", code=900)
        [failure] = await listener.events()
        assert isinstance(failure, Failed)
        assert failure.code == (255 if target.failure_code else 1)


@async_test
async def test_many_jobs_at_once(url: str) -> None:
    function, count = new_name(), 200
    async with connected_client(url) as client, connected_worker(url, function, concurrency=10) as worker:
        listeners = [await client.accepted(function, b"0")]
        listeners += [client.submit(function, b"%d" % number) for number in range(1, count)]
        for _ in range(count):
            job = await worker.job()
            worker.complete(job, job.payload * 2)
        assert [await listener.ending() for listener in listeners] == [
            Completed(b"%d" % number * 2) for number in range(count)
        ]


@async_test
async def test_jobs_run_in_the_order_of_their_acceptance(url: str) -> None:
    """Equal payloads without a unique key are different jobs."""
    function = new_name()
    payloads = [b"%d" % (number // 2) for number in range(30)]
    async with connected_client(url) as client:
        for payload in payloads:
            await client.queued(function, payload)
        async with connected_worker(url, function) as worker:
            for payload in payloads:
                job = await worker.job()
                assert job.payload == payload
                worker.complete(job)


@that_can("unique")
@async_test
async def test_equal_unique_keys_share_one_job(url: str) -> None:
    function = new_name()
    async with connected_client(url) as client:
        listeners = [await client.queued(function, b"%d" % number, unique=b"key") for number in range(3)]
        assert len({(await listener.acceptance()).handle for listener in listeners}) == 1
        await client.queued(function, b"another", unique=b"another key")
        async with connected_worker(url, function) as worker:
            job = await worker.job()
            assert job.payload in (b"0", b"2")  # the first submission's, or that of the last
            assert job.unique in (b"key", b"")  # not every worker is told
            worker.complete(job)
            assert (await worker.job()).payload == b"another"


@that_can("unique")
@async_test
async def test_every_listener_of_a_shared_job_hears_its_end(url: str) -> None:
    function = new_name()
    async with (
        connected_client(url) as client,
        connected_client(url) as other,
        connected_worker(url, function) as worker,
    ):
        busy = await client.accepted(function)
        job = await worker.job()
        listeners = [await end.accepted(function, unique=b"key") for end in (client, client, other)]
        worker.complete(job)
        await busy.ending()
        worker.complete(await worker.job(), b"once")
        assert [await listener.ending() for listener in listeners] == [Completed(b"once")] * 3
        assert worker.jobs.empty()


@that_can("priority")
@async_test
async def test_higher_priorities_run_first(url: str) -> None:
    function = new_name()
    async with connected_client(url) as client:
        for priority in (Priority.LOW, Priority.NORMAL, Priority.HIGH):
            await client.queued(function, priority.name.encode(), priority=priority)
        async with connected_worker(url, function) as worker:
            for payload in (b"HIGH", b"NORMAL", b"LOW"):
                job = await worker.job()
                assert job.payload == payload
                worker.complete(job)


@that_can("run_at")
@async_test
async def test_delayed_jobs_wait_until_they_are_due(target: Target, url: str) -> None:
    function = new_name()
    async with connected_client(url) as client, connected_worker(url, function) as worker:
        distant = await client.queued(function, b"distant", run_at=time.time() + 3600)
        await client.queued(function, b"past", run_at=1000.0)
        job = await worker.job()
        assert job.payload == b"past"
        worker.complete(job)
        if target.wakes_for_delayed_jobs:
            due = time.time() + 0.5
            await client.queued(function, b"soon", run_at=due)
            job = await worker.job()
            assert job.payload == b"soon"
            assert time.time() >= due
            worker.complete(job)
        assert await client.protocol.cancel(await distant.acceptance())
        await client.queued(function, b"last")
        assert (await worker.job()).payload == b"last"


@that_can("timeout")
@async_test
async def test_order_with_a_time_limit(url: str) -> None:
    function = new_name()
    async with connected_client(url) as client, connected_worker(url, function) as worker:
        in_time = await client.accepted(function, timeout=60.0)
        worker.complete(await worker.job(), b"in time")
        assert await in_time.ending() == Completed(b"in time")


@that_can("timeout", "failure")
@async_test
async def test_job_that_takes_too_long_fails_or_goes_to_another_worker(url: str) -> None:
    function = new_name()
    async with connected_client(url) as client, connected_worker(url, function) as worker:
        listener = await client.accepted(function, timeout=0.5)
        job = await worker.job()
        async with connected_worker(url, function) as another:
            ending = asyncio.create_task(listener.ending())
            retry = asyncio.create_task(another.job())
            await asyncio.wait({ending, retry}, return_when=asyncio.FIRST_COMPLETED)
            if retry.done():
                another.complete(await retry, b"by another")
            else:
                retry.cancel()
            assert isinstance(await ending, Failed) or await ending == Completed(b"by another")
        worker.complete(job, b"too late")
        assert worker.lost.empty()


@that_can("cancel")
@async_test
async def test_cancelled_job_does_not_run(target: Target, url: str) -> None:
    function = new_name()
    async with connected_client(url) as client:
        cancelled = await (await client.queued(function, b"cancelled")).acceptance()
        await client.queued(function, b"next")
        assert await client.protocol.cancel(cancelled)
        if target.cancel_finds_jobs:
            assert not await client.protocol.cancel(cancelled)
        async with connected_worker(url, function) as worker:
            job = await worker.job()
            assert job.payload == b"next"
            worker.complete(job)


@only(lambda target: target.can.cancel and target.names_foreground_jobs)
@async_test
async def test_cancellation_ends_a_foreground_job(target: Target, url: str) -> None:
    function = new_name()
    async with connected_client(url) as client, connected_worker(url, function) as worker:
        running = await client.accepted(function, b"running")
        job = await worker.job()
        waiting = await client.accepted(function, b"waiting")
        assert await client.protocol.cancel(await waiting.acceptance())
        assert isinstance(await waiting.ending(), Failed)
        if target.cancels_running_jobs:
            assert await client.protocol.cancel(await running.acceptance())
            assert isinstance(await running.ending(), Failed)
            worker.complete(job, b"too late")
        else:
            assert not await client.protocol.cancel(await running.acceptance())
            worker.complete(job, b"done")
            assert await running.ending() == Completed(b"done")
        listener = await client.accepted(function)
        worker.complete(await worker.job(), b"next")
        assert await listener.ending() == Completed(b"next")


@that_can("status")
@async_test
async def test_status_from_the_queue_to_the_end(url: str) -> None:
    function = new_name()
    async with connected_client(url) as client:
        job_id = await (await client.queued(function)).acceptance()
        assert (await client.protocol.status(job_id)).known
        async with connected_worker(url, function) as worker:
            job = await worker.job()
            worker.protocol.progress(job, 3, 4)
            while (status := await client.protocol.status(job_id)).denominator == 0:
                pass  # the worker's report is on its way
            assert status[:5] == (True, True, 3, 4, "running")
            worker.complete(job)
            while await client.protocol.status(job_id) == status:
                pass
            assert not (await client.protocol.status(job_id)).known


@that_can("result_later")
@async_test
async def test_result_of_a_background_job(url: str) -> None:
    function = new_name()
    async with connected_client(url) as client:
        good = await (await client.queued(function, b"good")).acceptance()
        bad = await (await client.queued(function, b"bad")).acceptance()
        results = [asyncio.create_task(client.protocol.result(acceptance)) for acceptance in (good, good, bad)]
        async with connected_worker(url, function) as worker:
            worker.complete(await worker.job(), EVERY_BYTE)
            worker.fail(await worker.job(), "no such file")
            *endings, failure = [await result for result in results]
            assert endings == [Completed(EVERY_BYTE)] * 2
            assert isinstance(failure, Failed)
            assert failure.data == b"no such file"
        assert await client.protocol.result(good) == Completed(EVERY_BYTE)  # also when it is over


@that_can("cancel", "result_later")
@async_test
async def test_result_of_a_cancelled_job_is_a_failure(url: str) -> None:
    async with connected_client(url) as client:
        acceptance = await (await client.queued(new_name(), run_at=time.time() + 3600)).acceptance()
        assert await client.protocol.cancel(acceptance)
        assert isinstance(await client.protocol.result(acceptance), Failed)


@async_test
async def test_forgotten_listener_hears_nothing(url: str) -> None:
    function = new_name()
    async with connected_client(url) as client, connected_worker(url, function) as worker:
        running = await client.accepted(function, b"running")
        job = await worker.job()
        unanswered = client.submit(function, b"unanswered")
        client.forget(unanswered)
        client.forget(running)
        worker.complete(job, b"unheard")
        last = await client.accepted(function, b"last")
        while (job := await worker.job()).payload != b"last":
            worker.complete(job)
        worker.complete(job, b"heard")
        assert await last.ending() == Completed(b"heard")
        assert running.heard.empty()
