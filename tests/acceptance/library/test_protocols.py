"""What only some protocols can say, through the library. Every pair of protocols meets in tests/crossing."""

import asyncio
from collections.abc import Iterator

import pytest

import geartrain
from tests.acceptance.library import functions
from tests.acceptance.library.conftest import PATIENCE, play, working
from tests.support import serving

SCHEMES = ("gearman", "danga", "periodic", "memodb+tcp", "gearmonkey")


@pytest.fixture(scope="module")
def urls() -> Iterator[dict[str, str]]:
    """One server with all its doors open, by scheme."""
    flags = [flag for scheme in SCHEMES for flag in ("--listen", f"{scheme}://{serving.HOST}:0")]
    with serving.serve("--store", "memory", *flags) as server:
        yield {url.partition(":")[0]: url for url in server.urls}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_many_at_once_over_every_protocol(urls: dict[str, str], function: str, scheme: str) -> None:
    async def scenario() -> None:
        async with geartrain.AsyncClient(urls[scheme]) as client, working(urls[scheme], **{function: functions.talk}):
            results = await asyncio.gather(*(client.run(function, f"job {n}") for n in range(50)))
            assert results == [f"job {n}"[::-1].encode() for n in range(50)]
            jobs = await client.submit_many([client.order(function, "abc"), client.order(function, "def")])
            assert [await job.result() for job in jobs] == [b"cba", b"fed"]

    play(scenario)


def test_one_worker_for_all_protocols(urls: dict[str, str], function: str) -> None:
    async def scenario() -> None:
        async with working(*urls.values(), **{function: functions.talk}):
            for url in urls.values():
                async with geartrain.AsyncClient(url) as client:
                    assert await client.run(function, "abc") == b"cba"

    play(scenario)


def test_rescheduling(urls: dict[str, str], function: str) -> None:
    runs = 0

    async def later(job: geartrain.Job) -> str:
        nonlocal runs
        runs += 1
        if runs < 3:
            job.reschedule(0)
        return f"run {runs}"

    async def scenario() -> None:
        async with (
            geartrain.AsyncClient(urls["gearman"]) as client,
            working(urls["periodic"], **{function: later}),
        ):
            assert await client.run(function) == b"run 3"

    play(scenario)


def test_a_periodic_client_does_not_wait_for_a_rescheduled_job(urls: dict[str, str], function: str) -> None:
    """As with Periodic's own server, it gets a failure."""

    async def later(job: geartrain.Job) -> None:
        job.reschedule(0)

    async def scenario() -> None:
        url = urls["periodic"]
        async with geartrain.AsyncClient(url) as client, working(url, **{function: later}):
            with pytest.raises(geartrain.JobFailedError):
                await client.run(function)

    play(scenario)


def test_the_result_of_a_background_job(urls: dict[str, str], function: str) -> None:
    async def scenario() -> None:
        url = urls["danga"]
        async with geartrain.AsyncClient(url) as client, working(url, **{function: functions.talk}):
            job = await client.submit(function, "abc", background=True)
            assert await job.result(PATIENCE) == b"cba"
            assert await client.job(job.handle, function).result(PATIENCE) == b"cba"

    play(scenario)
