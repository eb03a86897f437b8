"""Several servers at once: workers serve all of them, clients pick another when one is gone."""

import asyncio

import pytest

import geartrain
from tests.acceptance.library.conftest import STARTS, free_port, play, serve, until
from tests.support import serving

pytestmark = pytest.mark.peer("gearmand")


async def reverse(job: geartrain.Job) -> bytes:
    return job.payload[::-1]


def test_a_worker_serves_all_and_a_client_goes_on_when_one_is_gone(function: str) -> None:
    """Ours and gearmand, side by side; then gearmand is killed, and later started again on its port."""
    port = free_port()
    theirs = f"gearman://{serving.HOST}:{port}"

    async def scenario() -> None:
        with serve() as ours:
            worker = geartrain.AsyncWorker(ours.url, theirs, concurrency=3)
            worker.register(function, reverse)
            both = geartrain.AsyncClient(ours.url, theirs)
            only_theirs = geartrain.AsyncClient(theirs)
            with STARTS["gearmand"](port=port) as gearmand:
                async with worker, both, only_theirs:
                    async with geartrain.AsyncClient(ours.url) as only_ours:
                        assert await only_ours.run(function, "ours") == b"sruo"
                    assert await only_theirs.run(function, "theirs") == b"srieht"
                    assert await both.run(function, "either") == b"rehtie"
                    gearmand.kill()
                    for n in range(5):
                        assert await both.run(function, str(n), resubmit=True) == str(n).encode()
                    with STARTS["gearmand"](port=port):
                        assert await only_theirs.run(function, "back", resubmit=True) == b"kcab"
                        # Whatever the client talks to now, it works; then it is left with gearmand alone.
                        ours.kill()
                        assert await both.run(function, "again", resubmit=True) == b"niaga"

    play(scenario)


def test_no_more_jobs_run_at_once_than_allowed_over_all_servers(function: str) -> None:
    running = most = 0
    servers: set[str] = set()

    async def count(job: geartrain.Job) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        servers.add(job.payload.decode())
        await asyncio.sleep(0)
        running -= 1

    async def scenario() -> None:
        with serve() as first, STARTS["gearmand"]() as second:
            urls = [first.url, second.url]
            clients = [geartrain.AsyncClient(url) for url in urls]
            jobs = [
                await client.submit(function, url) for client, url in zip(clients, urls, strict=True) for _ in range(50)
            ]
            worker = geartrain.AsyncWorker(*urls, concurrency=2)
            worker.register(function, count)
            async with worker:
                for job in jobs:
                    await job.result()
            for client in clients:
                await client.close()
            assert servers == set(urls)

    play(scenario)
    assert 1 <= most <= 2


def test_equal_keys_of_two_clients_meet_at_one_server(function: str) -> None:
    async def scenario() -> None:
        with serve() as first, serve() as second:
            one = geartrain.AsyncClient(first.url, second.url)
            other = geartrain.AsyncClient(second.url, first.url)
            homes = set()
            async with one, other:
                for n in range(20):
                    key = f"key {n}"
                    mine, theirs = [await c.submit(function, background=True, unique=key) for c in (one, other)]
                    assert (mine.server, mine.handle) == (theirs.server, theirs.handle)
                    homes.add(mine.server)
            assert homes == {first.url, second.url}

    play(scenario)


def test_a_worker_comes_to_a_server_that_starts_later(function: str) -> None:
    port = free_port()
    late = f"gearman://{serving.HOST}:{port}"

    async def scenario() -> None:
        with serve() as first:
            worker = geartrain.AsyncWorker(first.url, late)
            worker.register(function, reverse)
            await worker.start()
            async with geartrain.AsyncClient(first.url) as client:
                assert await client.run(function, "abc") == b"cba"
            with serve(port):
                async with geartrain.AsyncClient(late) as client:
                    assert await client.run(function, "def") == b"fed"
                await worker.close()

    play(scenario)


def test_jobs_know_their_server(function: str) -> None:
    async def scenario() -> None:
        with serve() as first, serve() as second:
            async with geartrain.AsyncClient(first.url, second.url) as client:
                job = await client.submit(function, background=True)
                same = client.job(job.handle, server=job.server)
                assert (await same.status()).known

                async def gone() -> bool:
                    return not (await same.status()).known

                assert await same.cancel()
                await until(gone, "the job is gone")

    play(scenario)
