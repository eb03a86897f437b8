"""The library with the stock tools, over our server and over gearmand. Other libraries meet it in tests/interop."""

import subprocess
from pathlib import Path

import pytest

import geartrain
from tests.acceptance.library import functions
from tests.acceptance.library.conftest import PATIENCE, plain_worker
from tests.support import process, serving


@pytest.mark.peer("gearman")
def test_the_gearman_command_as_client(server: serving.ServerProcess, function: str) -> None:
    worker = geartrain.Worker(server.url)
    worker.register(function, functions.talk)
    command = ["gearman", "-h", serving.HOST, "-p", str(server.port), "-f", function]
    with plain_worker(worker):
        run = subprocess.run(command, input=b"abc", capture_output=True, timeout=PATIENCE)
    assert (run.returncode, run.stdout) == (0, b"partcba50% Complete\n")
    assert b"careful" in run.stderr


@pytest.mark.peer("gearman")
def test_the_gearman_command_as_worker(server: serving.ServerProcess, function: str, tmp_path: Path) -> None:
    command = ["gearman", "-w", "-h", serving.HOST, "-p", str(server.port), "-f", function, "--", "rev"]
    worker = process.Process(command, tmp_path)
    try:
        with geartrain.Client(server.url) as client:
            jobs = [client.submit(function, f"job {n}\n") for n in range(20)]
            assert [job.result(PATIENCE) for job in jobs] == [f"{f'job {n}'[::-1]}\n".encode() for n in range(20)]
    finally:
        worker.kill()
