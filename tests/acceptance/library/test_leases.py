"""A worker that is frozen loses its job to another; when it wakes up, its answer is ignored and it goes on."""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import geartrain
from geartrain.client import control
from tests.acceptance.library.conftest import HERE, PATIENCE, play, until
from tests.support import process, serving

PROTOCOLS = ["gearman", "danga", "http", "gearmonkey"]
LEASE = "2s"


@pytest.fixture(scope="module")
def urls() -> Iterator[dict[str, str]]:
    listens = [word for scheme in PROTOCOLS for word in ("--listen", f"{scheme}://127.0.0.1:0")]
    leases = ("--worker-lease", LEASE, "--http-worker-lease", LEASE)
    with serving.serve("--store", "memory", *leases, *listens) as server:
        yield {url.partition(":")[0]: url for url in server.urls}


@contextlib.contextmanager
def program(url: str, function: str, home: Path) -> Iterator[process.Process]:
    running = process.Process([sys.executable, str(HERE / "signalled_worker.py"), url, function, "thread"], home)
    try:
        running.wait_for_line("working")
        yield running
    finally:
        running.kill()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_frozen_worker_loses_its_job(urls: dict[str, str], function: str, protocol: str, tmp_path: Path) -> None:
    async def answer(job: geartrain.Job) -> bytes:
        return b"by another worker"

    async def scenario() -> None:
        gate = tmp_path / "gate"
        async with geartrain.AsyncClient(urls["gearman"]) as client:
            with program(urls[protocol], function, tmp_path) as frozen:
                job = await client.submit(function, str(gate), background=True)

                async def runs() -> bool:
                    return (await job.status()).running

                await until(runs, "the job runs")
                os.kill(frozen.pid, signal.SIGSTOP)
                other = geartrain.AsyncWorker(urls["gearman"])
                other.register(function, answer)
                async with other:
                    assert await job.result(PATIENCE) == b"by another worker"
                    view = await control.ask(client, "job", handle=job.handle)
                    [attempt] = view["trials"]
                    assert attempt["door"] == protocol
                    if protocol != "http":
                        assert attempt["why"] == "worker sent no heartbeat for 2 s"
                gate.touch()
                os.kill(frozen.pid, signal.SIGCONT)
                # It reconnects and goes on; what it answers for the first job is not heard.
                assert await client.run(function, str(gate), wait=PATIENCE)
                assert await job.result() == b"by another worker"

    play(scenario)
