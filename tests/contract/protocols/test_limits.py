"""Limits of running jobs hold, and partitions take turns, whichever protocol the workers speak."""

import asyncio
from collections.abc import Sequence
from typing import Any

from geartrain.client.protocols.base import Assignment
from tests.contract.protocols.targets import Target, Urls, only
from tests.support.http_peer import Peer
from tests.support.protocol_ends import WorkerEnd, async_test, connected_worker, new_name

at_geartrain = only(lambda target: target.server == "geartrain")


def limit(urls: Urls, function: bytes, **limits: Any) -> None:
    answer = Peer(urls["http"]).call("PATCH", f"/functions/{function.decode()}/limits", limits)
    assert answer.status == 200


def submit(urls: Urls, function: bytes, *payloads: str, partition: str = "") -> list[str]:
    peer = Peer(urls["http"])
    return [peer.submit(function.decode(), payload, partition=partition)["handle"] for payload in payloads]


def waits_for(urls: Urls, handle: str) -> str:
    reason: str = Peer(urls["http"]).get(f"/jobs/{handle}")["waits_for"]
    return reason


async def jobs_of(worker: WorkerEnd, count: int) -> list[Assignment]:
    return [await worker.job() for _ in range(count)]


def payloads(jobs: Sequence[Assignment]) -> list[bytes]:
    return [job.payload for job in jobs]


async def taken_turns(worker: WorkerEnd, count: int) -> list[bytes]:
    """The payloads of jobs, one after another: each is completed before the next one comes."""
    found = []
    for _ in range(count):
        job = await worker.job()
        found.append(job.payload)
        worker.complete(job)
    return found


@at_geartrain
@async_test
async def test_no_more_run_than_may(target: Target, urls: Urls) -> None:
    function, other = new_name(), new_name()
    limit(urls, function, max_running=1)
    _, second = submit(urls, function, "1", "2")
    async with connected_worker(urls[target.scheme], function, other, concurrency=2) as worker:
        first = await worker.job()
        submit(urls, other, "behind")
        behind = await worker.job()  # the second one would have come before it
        assert payloads([first, behind]) == [b"1", b"behind"]
        assert waits_for(urls, second) == "one of 1 running jobs to end (max_running)"
        worker.complete(first)
        assert (await worker.job()).payload == b"2"


@at_geartrain
@async_test
async def test_no_more_of_a_partition_run_than_may(target: Target, urls: Urls) -> None:
    function = new_name()
    limit(urls, function, max_running_per_partition=1)
    _, second = submit(urls, function, "a1", "a2", partition="a")
    submit(urls, function, "b1", "b2", partition="b")
    async with connected_worker(urls[target.scheme], function, concurrency=3) as worker:
        first, other = await jobs_of(worker, 2)
        assert payloads([first, other]) == [b"a1", b"b1"]
        worker.complete(other)
        assert (await worker.job()).payload == b"b2"
        assert "max_running_per_partition" in waits_for(urls, second)
        worker.complete(first)
        assert (await worker.job()).payload == b"a2"


@at_geartrain
@async_test
async def test_partitions_take_turns(target: Target, urls: Urls) -> None:
    function = new_name()
    submit(urls, function, "a1", "a2", "a3", partition="a")
    submit(urls, function, "b1", partition="b")
    submit(urls, function, "1")
    async with connected_worker(urls[target.scheme], function) as worker:
        assert await taken_turns(worker, 5) == [b"a1", b"b1", b"1", b"a2", b"a3"]


@at_geartrain
@async_test
async def test_a_rate_lets_the_next_job_start_in_time(target: Target, urls: Urls) -> None:
    function = new_name()
    limit(urls, function, rate="1/h")
    _, second = submit(urls, function, "1", "2")
    async with connected_worker(urls[target.scheme], function) as worker:
        assert await taken_turns(worker, 1) == [b"1"]
        assert await asyncio.to_thread(waits_for, urls, second) == "the next start that the rate allows (rate)"
        limit(urls, function, rate="100/s")
        assert await taken_turns(worker, 1) == [b"2"]


@at_geartrain
@async_test
async def test_a_burst_lets_several_start_at_once(target: Target, urls: Urls) -> None:
    function = new_name()
    limit(urls, function, rate="1/h", burst=2)
    *_, third = submit(urls, function, "1", "2", "3")
    async with connected_worker(urls[target.scheme], function) as worker:
        assert await taken_turns(worker, 2) == [b"1", b"2"]
        assert await asyncio.to_thread(waits_for, urls, third) == "the next start that the rate allows (rate)"
        limit(urls, function, rate="100/s")
        assert await taken_turns(worker, 1) == [b"3"]


@at_geartrain
@async_test
async def test_the_rate_of_a_partition_stops_no_other(target: Target, urls: Urls) -> None:
    function = new_name()
    limit(urls, function, rate_per_partition="1/h", burst_per_partition=2)
    *_, third = submit(urls, function, "a1", "a2", "a3", partition="a")
    submit(urls, function, "b1", partition="b")
    async with connected_worker(urls[target.scheme], function) as worker:
        assert await taken_turns(worker, 3) == [b"a1", b"b1", b"a2"]
        reason = await asyncio.to_thread(waits_for, urls, third)
        assert reason == "the next start that the rate of its partition allows (rate_per_partition)"
        limit(urls, function, rate_per_partition="100/s")
        assert await taken_turns(worker, 1) == [b"a3"]
