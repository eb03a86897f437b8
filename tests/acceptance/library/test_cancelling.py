"""Cancelling a running job: its worker is told, ends the function, and goes on with the next job."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import geartrain
from tests.acceptance.library import functions
from tests.acceptance.library.conftest import PATIENCE, play, until
from tests.support import serving
from tests.support.gearman_peer import Kind, Peer

PROTOCOLS = ["gearman", "danga", "http", "periodic", "gearmonkey"]


@pytest.fixture(scope="module")
def urls() -> Iterator[dict[str, str]]:
    listens = [word for scheme in PROTOCOLS for word in ("--listen", f"{scheme}://127.0.0.1:0")]
    with serving.serve("--store", "memory", *listens) as server:
        yield {url.partition(":")[0]: url for url in server.urls}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_coroutine_is_cancelled(urls: dict[str, str], function: str, protocol: str) -> None:
    async def scenario() -> None:
        begun, cancelled = asyncio.Event(), asyncio.Event()

        async def work(job: geartrain.Job) -> bytes:
            if job.payload == b"next":
                return b"done"
            begun.set()
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                assert job.revoked
                cancelled.set()
                raise
            return b""

        worker = geartrain.AsyncWorker(urls[protocol])
        worker.register(function, work)
        async with worker, geartrain.AsyncClient(urls["gearman"]) as client:
            job = await client.submit(function, background=True)
            await begun.wait()
            assert await job.cancel()
            assert (await job.status()).state == "cancelled"
            await cancelled.wait()
            assert await client.run(function, "next", wait=PATIENCE) == b"done"
            assert (await job.status()).state == "cancelled"

    play(scenario)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_thread_sees_it(urls: dict[str, str], function: str, protocol: str) -> None:
    async def scenario() -> None:
        begun, seen = threading.Event(), threading.Event()

        def work(job: geartrain.Job) -> bytes:
            if job.payload == b"next":
                return b"done"
            begun.set()
            while not job.revoked:
                seen.wait(0.01)
            seen.set()
            return b"ignored"

        worker = geartrain.AsyncWorker(urls[protocol])
        worker.register(function, work)
        async with worker, geartrain.AsyncClient(urls["gearman"]) as client:
            job = await client.submit(function, background=True)
            assert await asyncio.to_thread(begun.wait, PATIENCE)
            assert await job.cancel()
            assert await asyncio.to_thread(seen.wait, PATIENCE)
            assert await client.run(function, "next", wait=PATIENCE) == b"done"
            assert (await job.status()).state == "cancelled"

    play(scenario)


def test_a_process_is_ended(urls: dict[str, str], function: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        worker = geartrain.AsyncWorker(urls["gearman"], mode="process")
        worker.register(function, functions.sleep_or_say_where)
        async with worker, geartrain.AsyncClient(urls["gearman"]) as client:
            started = tmp_path / "started"
            job = await client.submit(function, str(started), background=True)

            async def has_started() -> bool:
                return started.exists() and bool(started.read_text())

            await until(has_started, "the process runs the job")
            assert await job.cancel()
            assert await client.run(function, wait=PATIENCE) != started.read_bytes()

            async def has_ended() -> bool:
                return not Path(f"/proc/{started.read_text()}").exists()

            await until(has_ended, "the process has ended")

    play(scenario)


def test_a_job_that_was_fetched_ahead_never_begins(urls: dict[str, str], function: str) -> None:
    async def scenario() -> None:
        begun, go_on = asyncio.Event(), asyncio.Event()
        payloads: list[bytes] = []

        async def work(job: geartrain.Job) -> None:
            payloads.append(job.payload)
            begun.set()
            await go_on.wait()

        worker = geartrain.AsyncWorker(urls["gearman"], prefetch=1)
        worker.register(function, work)
        async with geartrain.AsyncClient(urls["gearman"]) as client:
            jobs = [await client.submit(function, name, background=True) for name in ("one", "two", "three")]
            async with worker:
                await begun.wait()

                async def is_fetched() -> bool:
                    return (await jobs[1].status()).running

                await until(is_fetched, "the second job is fetched ahead")
                assert await jobs[1].cancel()
                go_on.set()
                assert await jobs[2].result(PATIENCE) == b""
        assert payloads == [b"one", b"three"]

    play(scenario)


def test_workers_of_other_libraries_get_no_notice(urls: dict[str, str], function: str) -> None:
    """A worker that has announced nothing hears nothing of it, and its late answer is no error."""
    port = int(urls["gearman"].rpartition(":")[2])
    name = function.encode()
    with geartrain.Client(urls["gearman"]) as client, Peer(port) as worker:
        worker.send(Kind.CAN_DO, name)
        job = client.submit(function, background=True)
        worker.send(Kind.GRAB_JOB)
        handle = job.handle.encode()
        worker.expect(Kind.JOB_ASSIGN, handle, name, b"")
        assert job.cancel()
        worker.send(Kind.WORK_COMPLETE, handle, b"late")
        worker.send(Kind.ECHO_REQ, b"after")
        worker.expect(Kind.ECHO_RES, b"after")


def test_the_notice_on_the_wire(urls: dict[str, str], function: str) -> None:
    port = int(urls["gearman"].rpartition(":")[2])
    with geartrain.Client(urls["gearman"]) as client, Peer(port) as worker:
        worker.send(Kind.OPTION_REQ, b"geartrain-worker")
        worker.expect(Kind.OPTION_RES, b"geartrain-worker", b"60")
        worker.send(Kind.CAN_DO, function.encode())
        job = client.submit(function, background=True)
        worker.send(Kind.GRAB_JOB)
        handle = job.handle.encode()
        worker.expect(Kind.JOB_ASSIGN, handle, function.encode(), b"")
        assert job.cancel()
        worker.expect(Kind.WORK_FAIL, handle)
