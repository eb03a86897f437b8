"""kill -9 of `geartrain bridge`, again and again under load: every job of Redis and of the server is accounted for."""

import collections
import contextlib
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.bridge.conftest import BridgeProcess
from tests.acceptance.gearmonkey import redis_py_peer
from tests.crash.conftest import Start
from tests.support import redis_server
from tests.support.gearman_peer import Kind, Peer
from tests.support.waiting import wait_for

OF_REDIS, OF_SERVER = "resize", "mail"
JOBS = 300  # of each
KILLS = 4


@pytest.mark.peer("redis-server")
def test_every_job_is_accounted_for(start: Start, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    ran: collections.Counter[bytes] = collections.Counter()
    with redis_server.serve() as redis, start() as server:
        numbers = _submit(redis.port, server.port)
        with (
            _working(lambda stop: _server_worker(server.port, ran, stop)),
            _working(lambda stop: _redis_worker(redis.port, ran, stop)),
        ):
            for kill in range(KILLS):
                with _bridge(tmp_path / str(kill), redis, server.url):
                    goal = min(len(ran) + chance.randrange(1, JOBS // KILLS), 2 * JOBS)
                    _wait_until_run(ran, goal)
            with _bridge(tmp_path / "last", redis, server.url), Peer(server.port) as admin:
                wait_for(lambda: _finished(redis.port, numbers), "every job of Redis has ended")
                wait_for(lambda: all(row[1] == b"0" for row in admin.listing("status")), "every job of the server too")
    expected = {b"%s %d" % (side, number) for side in (b"redis", b"server") for number in range(JOBS)}
    assert set(ran) == expected


def _wait_until_run(ran: "collections.Counter[bytes]", goal: int) -> None:
    wait_for(lambda: len(ran) >= goal, f"{goal} jobs have run")


def _submit(redis_port: int, server_port: int) -> list[int]:
    client = redis_py_peer.Client(redis_port)
    numbers = [client.run(OF_REDIS, b"redis %d" % number) for number in range(JOBS)]
    client.close()
    with Peer(server_port) as peer:
        for number in range(JOBS):
            peer.submit(OF_SERVER.encode(), b"", b"server %d" % number, kind=Kind.SUBMIT_JOB_BG)
    return numbers


def _finished(redis_port: int, numbers: list[int]) -> bool:
    """Whether all have ended; then each has its own result."""
    client = redis_py_peer.Client(redis_port)
    jobs = [client.get(OF_REDIS, number) for number in numbers]
    client.close()
    if not all(job.finished for job in jobs):
        return False
    for job in jobs:
        assert job.status == "success"
        assert job.input is not None
        assert job.output == job.input[::-1]
    return True


@contextlib.contextmanager
def _bridge(home: Path, redis: redis_server.RedisProcess, url: str) -> Iterator[None]:
    """A bridge that is killed at the end of the block."""
    home.mkdir()
    bridge = BridgeProcess(home, redis, url, OF_REDIS, OF_SERVER, "--lease", "1")
    try:
        yield
        assert bridge.process.poll() is None, bridge.account()
    finally:
        bridge.kill()
    assert "Traceback" not in bridge.stderr, bridge.account()


@contextlib.contextmanager
def _working(work: Callable[[threading.Event], None]) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=work, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _server_worker(port: int, ran: "collections.Counter[bytes]", stop: threading.Event) -> None:
    with Peer(port).register(OF_REDIS.encode()) as worker:
        while not stop.is_set():
            job = worker.take()
            if job is None:
                stop.wait(0.01)
                continue
            ran[job.data] += 1
            worker.send(Kind.WORK_COMPLETE, job.handle, job.data[::-1])


def _redis_worker(port: int, ran: "collections.Counter[bytes]", stop: threading.Event) -> None:
    def work(payload: bytes) -> bytes:
        ran[payload] += 1
        return payload[::-1]

    worker = redis_py_peer.Worker(port, work)
    worker.accept(OF_SERVER)
    while not stop.is_set():
        worker.run_one(0.1)
    worker.close()
