"""Stopping a worker: what runs is finished; the second time nothing is waited for, and another worker gets it."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import geartrain
from geartrain.client.job_events import Progressed
from tests.acceptance.library import functions
from tests.acceptance.library.conftest import HERE, PATIENCE, play, working
from tests.support import process, serving


@contextlib.contextmanager
def program(url: str, function: str, mode: str, home: Path) -> Iterator[process.Process]:
    running = process.Process([sys.executable, str(HERE / "signalled_worker.py"), url, function, mode], home)
    try:
        running.wait_for_line("working")
        yield running
    finally:
        running.kill()


async def runs(job: geartrain.AsyncJob) -> None:
    """Its function has begun."""
    async for event in job.events():
        assert event == Progressed(1, 2)
        return


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("mode", ["thread", "process"])
def test_a_signal_lets_the_running_job_finish(
    server: serving.ServerProcess, function: str, mode: str, number: signal.Signals, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"

    async def scenario() -> None:
        async with geartrain.AsyncClient(server.url) as client:
            with program(server.url, function, mode, tmp_path) as worker:
                job = await client.submit(function, str(gate))
                await runs(job)
                next_one = await client.submit(function, str(gate))
                worker.process.send_signal(number)
                worker.wait_for_line("log: stopping after 1 running jobs")
                gate.touch()
                assert await job.result() == b"through"
                assert worker.wait() == 0
                assert worker.lines[-1] == "ended"
                assert worker.stderr == ""
            assert (await next_one.status()).known
            assert not next_one.done

    play(scenario)


@pytest.mark.parametrize("mode", ["thread", "process"])
def test_a_second_signal_does_not_wait_and_the_job_goes_to_another(
    server: serving.ServerProcess, function: str, mode: str, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"

    async def scenario() -> None:
        async with geartrain.AsyncClient(server.url) as client:
            with program(server.url, function, mode, tmp_path) as worker:
                job = await client.submit(function, str(gate))
                await runs(job)
                worker.process.send_signal(signal.SIGTERM)
                worker.process.send_signal(signal.SIGINT)
                assert await asyncio.to_thread(worker.wait) == 0
            gate.touch()
            async with working(server.url, **{function: functions.wait_for_gate}):
                assert await job.result() == b"through"

    play(scenario)


def test_stop_from_inside_a_job(ours: serving.ServerProcess, function: str) -> None:
    async def scenario() -> None:
        worker = geartrain.AsyncWorker(ours.url)

        @worker.function(function)
        async def last(job: geartrain.Job) -> str:
            worker.stop()
            return "the last"

        async with geartrain.AsyncClient(ours.url) as client:
            running = asyncio.create_task(worker.run(signals=False))
            assert await client.run(function) == b"the last"
            await asyncio.wait_for(running, PATIENCE)
            await worker.close()

    play(scenario)


def test_a_stopped_worker_may_work_again(ours: serving.ServerProcess, function: str) -> None:
    async def scenario() -> None:
        worker = geartrain.AsyncWorker(ours.url)
        worker.register(function, functions.names)
        async with geartrain.AsyncClient(ours.url) as client:
            for _ in range(2):
                async with worker:
                    assert await client.run(function)

    play(scenario)


def test_stopping_at_once_cancels_coroutines_and_gives_their_jobs_back(
    ours: serving.ServerProcess, function: str
) -> None:
    async def scenario() -> None:
        began, cancelled = asyncio.Event(), asyncio.Event()

        async def hang(job: geartrain.Job) -> None:
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        async def well(job: geartrain.Job) -> str:
            return "by another"

        async with geartrain.AsyncClient(ours.url) as client:
            worker = geartrain.AsyncWorker(ours.url)
            worker.register(function, hang)
            await worker.start()
            job = await client.submit(function)
            await began.wait()
            worker.stop()
            worker.stop()
            await worker.close()
            assert cancelled.is_set()
            async with working(ours.url, **{function: well}):
                assert await job.result() == b"by another"

    play(scenario)


def test_a_worker_that_is_cancelled_gives_its_jobs_back(ours: serving.ServerProcess, function: str) -> None:
    async def scenario() -> None:
        began = asyncio.Event()

        async def hang(job: geartrain.Job) -> None:
            began.set()
            await asyncio.Event().wait()

        async with geartrain.AsyncClient(ours.url) as client:
            worker = geartrain.AsyncWorker(ours.url)
            worker.register(function, hang)
            running = asyncio.create_task(worker.run(signals=False))
            job = await client.submit(function)
            await began.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            async with working(ours.url, **{function: functions.names}):
                assert await job.result()

    play(scenario)
