"""How a worker protocol asks for jobs, gets them, and ends them."""

from geartrain.client.job_events import Completed, Failed
from geartrain.client.slots import Slots
from tests.contract.protocols.targets import Target, Urls, only
from tests.support.protocol_ends import (
    async_test,
    connected_client,
    connected_worker,
    new_name,
    until,
)


@async_test
async def test_worker_gets_as_many_jobs_as_it_has_slots(url: str) -> None:
    """The ends count; another worker takes what the first one has no slot for."""
    function = new_name()
    async with connected_client(url) as client:
        for number in range(5):
            await client.queued(function, b"%d" % number)
        async with connected_worker(url, function, concurrency=2) as worker:
            jobs = [await worker.job() for _ in range(2)]
            async with connected_worker(url, function, concurrency=3) as another:
                others = [await another.job() for _ in range(3)]
                assert {job.payload for job in (*jobs, *others)} == {b"0", b"1", b"2", b"3", b"4"}
                await client.queued(function, b"5")
                worker.complete(jobs[1])
                jobs[1] = await worker.job()
                assert jobs[1].payload == b"5"
                for job in others:
                    another.complete(job)
            for job in jobs:
                worker.complete(job)


@only(lambda target: target.shares_slots)
@async_test
async def test_slots_are_shared_by_several_connections(url: str) -> None:
    function, count = new_name(), 6
    slots = Slots(1)
    async with (
        connected_client(url) as client,
        connected_worker(url, function, slots=slots) as first,
        connected_worker(url, function, slots=slots) as second,
    ):
        for number in range(count):
            await client.queued(function, b"%d" % number)
        for _ in range(count):
            await until(lambda: bool(first.running or second.running), "a job is assigned")
            assert len(first.running) + len(second.running) == 1
            worker = first if first.running else second
            worker.complete(await worker.job())
    assert slots.free == 1


@async_test
async def test_functions_come_and_go_while_jobs_run(url: str) -> None:
    first, second = new_name("first"), new_name("second")
    async with connected_client(url) as client, connected_worker(url, first, concurrency=2) as worker:
        listener = await client.accepted(first)
        job = await worker.job()
        worker.protocol.unregister(first)
        worker.protocol.register(second, 0.0)
        other = await client.accepted(second)
        other_job = await worker.job()
        assert other_job.function == second
        worker.complete(other_job, b"second")
        worker.complete(job, b"first")  # what runs of a withdrawn function goes on
        assert await listener.ending() == Completed(b"first")
        assert await other.ending() == Completed(b"second")

        await client.queued(first, b"for another worker")
        async with connected_worker(url, first) as another:
            job = await another.job()
            assert job.payload == b"for another worker"
            another.complete(job)
        worker.protocol.register(first, 0.0)
        listener = await client.accepted(first, b"again")
        worker.complete(await worker.job(), b"again")
        assert await listener.ending() == Completed(b"again")


@async_test
async def test_worker_without_functions(url: str) -> None:
    function = new_name()
    async with connected_client(url) as client, connected_worker(url) as worker:
        await client.queued(function)
        worker.protocol.register(function, 0.0)
        worker.complete(await worker.job())


@async_test
async def test_worker_that_stops_fetching_finishes_what_it_has(url: str) -> None:
    function = new_name()
    async with connected_client(url) as client, connected_worker(url, function, concurrency=3) as worker:
        listener = await client.accepted(function)
        job = await worker.job()
        await worker.stop_fetching()
        await client.queued(function, b"for another worker")
        async with connected_worker(url, function) as another:
            left = await another.job()
            assert left.payload == b"for another worker"
            another.complete(left)
        worker.complete(job, b"done")
        assert await listener.ending() == Completed(b"done")
        assert worker.lost.empty()


@async_test
async def test_idle_worker_stops_fetching(url: str) -> None:
    async with connected_worker(url, new_name(), concurrency=3) as worker:
        await worker.stop_fetching()
        assert worker.lost.empty()


@async_test
async def test_released_job_frees_its_slot(url: str) -> None:
    function = new_name()
    async with connected_client(url) as client, connected_worker(url, function) as worker:
        for _ in range(2):
            await client.queued(function)
        worker.release(await worker.job())
        worker.complete(await worker.job())
        assert worker.lost.empty()


@async_test
async def test_jobs_of_a_worker_that_is_closed_go_back(url: str) -> None:
    function = new_name()
    async with connected_client(url) as client:
        async with connected_worker(url, function, concurrency=2) as worker:
            listener = await client.accepted(function)
            await worker.job()
        async with connected_worker(url, function) as another:
            another.complete(await another.job(), b"by another")
            assert await listener.ending() == Completed(b"by another")


@async_test
async def test_ending_is_sent_before_the_worker_closes(url: str) -> None:
    function = new_name()
    async with connected_client(url) as client:
        async with connected_worker(url, function) as worker:
            listener = await client.accepted(function)
            worker.complete(await worker.job(), b"last words")
        assert await listener.ending() == Completed(b"last words")


@only(lambda target: target.worker_can.reschedule)
@async_test
async def test_rescheduled_job_runs_again(url: str) -> None:
    function = new_name()
    async with connected_client(url) as client, connected_worker(url, function) as worker:
        await client.queued(function, b"payload")
        worker.reschedule(await worker.job(), 0.0)
        job = await worker.job()
        assert job.payload == b"payload"
        worker.complete(job)


@only(lambda target: target.server != "redis")
@async_test
async def test_answer_to_a_job_that_was_taken_back_is_not_heard(target: Target, urls: Urls, url: str) -> None:
    """A Gearman client cancels it while the worker of the target's protocol runs it."""
    function = new_name()
    async with connected_client(urls["gearman"]) as client, connected_worker(url, function) as worker:
        listener = await client.accepted(function)
        job = await worker.job()
        assert await client.protocol.cancel(await listener.acceptance())
        assert isinstance(await listener.ending(), Failed)
        if target.revokes:
            assert await worker.revocations.next() is job
        worker.complete(job, b"too late")
        listener = await client.accepted(function)
        worker.complete(await worker.job(), b"next")
        assert await listener.ending() == Completed(b"next")
        assert worker.revocations.empty()
        assert worker.lost.empty()
