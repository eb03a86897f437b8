"""Jobs of Redis that a server's workers run, and the other way round; the peers have the original shape."""

import json
import threading
import time
from collections.abc import Callable

import pytest

from geartrain.client.gearmonkey import OPT_BLOCKING, OPT_ROLLCALL, Job
from geartrain.client.sync_client import Client
from geartrain.errors import JobFailedError
from tests.acceptance.bridge.conftest import BridgeProcess
from tests.acceptance.cli.conftest import run
from tests.acceptance.gearmonkey import redis_py_peer
from tests.support import redis_server, serving, waiting
from tests.support.gearman_peer import Assignment, Kind, Peer

pytestmark = pytest.mark.peer("redis-server")

Start = Callable[..., BridgeProcess]
StartWorker = Callable[..., redis_py_peer.Worker]


def test_job_of_redis_runs_at_the_server(
    redis: redis_server.RedisProcess, server: serving.ServerProcess, bridge: Start, function: str
) -> None:
    """With its priority, progress and result; the client asks by roll call whether there is a worker."""
    client = redis_py_peer.Client(redis.port)
    low = client.run(function, b"low", "low")
    due = client.run(function, b"due", "scheduled", scheduled=time.time() - 1)
    joined = bridge(server.url, function)
    with Peer(server.port).register(function.encode()) as worker:
        first = _next(worker)
        assert first.data == b"due"
        worker.send(Kind.WORK_STATUS, first.handle, b"3", b"4")
        waiting.wait_for(lambda: client.get(function, due).dividend == 3, "progress is in Redis")
        worker.send(Kind.WORK_COMPLETE, first.handle, b"result\0of due")
        worker.send(Kind.WORK_COMPLETE, _next(worker).handle, b"")
        waiting.wait_for(lambda: client.get(function, low).status == "success", "both have ended")
        number = client.run(function, b"third", options=OPT_ROLLCALL)
        worker.send(Kind.WORK_COMPLETE, _next(worker).handle, b"")
        client.redis.brpop([f"lock:{function}:{number}"], 0)
    assert client.get(function, due) == Job("success", b"due", b"result\0of due", 3, 4)
    client.close()
    joined.stop()
    assert json.loads(joined.lines[-1]) == {"to_server": 3, "to_redis": 0, "failed": 0, "sent_back": 0}


def test_job_of_the_server_runs_in_redis(
    redis: redis_server.RedisProcess,
    server: serving.ServerProcess,
    bridge: Start,
    redis_worker: StartWorker,
    function: str,
) -> None:
    seen = threading.Event()

    def work(payload: bytes) -> bytes:
        worker.update(1, 2)
        assert seen.wait(waiting.PATIENCE)
        return payload[::-1]

    worker = redis_worker(function, work)
    joined = bridge(server.url, function)
    with Peer(server.port) as client:
        handle = client.submit(function.encode(), b"key", b"hello")
        client.expect(Kind.WORK_STATUS, handle, b"1", b"2")
        seen.set()
        client.expect(Kind.WORK_COMPLETE, handle, b"olleh")
    joined.stop()
    assert json.loads(joined.lines[-1])["to_redis"] == 1
    assert not worker.redis.keys(f"geartrain:origin:{function}:*")


def test_failures_cross(
    redis: redis_server.RedisProcess,
    server: serving.ServerProcess,
    bridge: Start,
    redis_worker: StartWorker,
    function: str,
) -> None:
    def fail(payload: bytes) -> bytes:
        raise ValueError("no such image")

    redis_worker(f"{function}-there", fail)
    client = redis_py_peer.Client(redis.port)
    joined = bridge(server.url, function, f"{function}-there")
    with Peer(server.port).register(function.encode()) as worker:
        number = client.run(function, b"")
        worker.send(Kind.WORK_FAIL, _next(worker).handle)
        client.redis.brpop([f"lock:{function}:{number}"], 0)
        assert client.get(function, number).status == "error"
    with Client(server.url) as caller, pytest.raises(JobFailedError) as failure:
        caller.run(f"{function}-there", b"")
    assert failure.value.data == b"no such image"
    client.close()
    joined.stop()
    assert json.loads(joined.lines[-1])["failed"] == 2


def test_workers_of_the_own_side_come_first(
    redis: redis_server.RedisProcess,
    server: serving.ServerProcess,
    bridge: Start,
    redis_worker: StartWorker,
    function: str,
) -> None:
    """A free worker in Redis gets all jobs. When it is busy, what waits goes to the server."""
    busy, free = threading.Event(), threading.Event()

    def work(payload: bytes) -> bytes:
        if payload == b"long":
            busy.set()
            assert free.wait(waiting.PATIENCE)
        return b"Redis"

    redis_worker(function, work)
    client = redis_py_peer.Client(redis.port)
    with Peer(server.port).register(function.encode()) as worker:
        bridge(server.url, function, "--grace", "0.6")
        worker.sleep()
        for _ in range(20):
            number = client.run(function, b"short", options=OPT_BLOCKING)
            assert client.get(function, number).output == b"Redis"
        long = client.run(function, b"long")
        assert busy.wait(waiting.PATIENCE)
        surplus = client.run(function, b"surplus")
        job = _next(worker)
        assert job.data == b"surplus"
        worker.send(Kind.WORK_COMPLETE, job.handle, b"server")
        client.redis.brpop([f"lock:{function}:{surplus}"], 0)
        free.set()
        client.redis.brpop([f"lock:{function}:{long}"], 0)
    assert [client.get(function, number).output for number in (long, surplus)] == [b"Redis", b"server"]
    client.close()


def test_surplus_of_the_server(
    redis: redis_server.RedisProcess,
    server: serving.ServerProcess,
    bridge: Start,
    redis_worker: StartWorker,
    function: str,
) -> None:
    """The server's only worker is busy: what waits for longer than the grace goes to Redis."""
    redis_worker(function, lambda payload: b"Redis")
    bridge(server.url, function, "--grace", "0.6")
    with Peer(server.port).register(function.encode()) as worker, Peer(server.port) as client:
        waiting.wait_for(lambda: _workers(server, function) == 1, "the bridge sees the worker, and is none itself")
        first = client.submit(function.encode(), b"", b"first")
        job = _next(worker)
        second = client.submit(function.encode(), b"", b"second")
        client.expect(Kind.WORK_COMPLETE, second, b"Redis")
        worker.send(Kind.WORK_COMPLETE, job.handle, b"server")
        client.expect(Kind.WORK_COMPLETE, first, b"server")


def test_job_goes_home(
    redis: redis_server.RedisProcess,
    server: serving.ServerProcess,
    bridge: Start,
    redis_worker: StartWorker,
    function: str,
) -> None:
    """It was sent to a side whose workers left before they took it."""
    client = redis_py_peer.Client(redis.port)
    number = client.run(function, b"hello")
    joined = bridge(server.url, function)
    with Peer(server.port).register(function.encode()):
        waiting.wait_for(lambda: client.get(function, number).status == "busy", "the bridge has it")
        waiting.wait_for(lambda: _jobs(server, function) == 1, "the server has it")
    redis_worker(function, lambda payload: payload[::-1])
    waiting.wait_for(lambda: client.get(function, number).finished, "it has ended")
    assert client.get(function, number).output == b"olleh"
    client.close()
    joined.stop()
    assert json.loads(joined.lines[-1]) == {"to_server": 0, "to_redis": 0, "failed": 0, "sent_back": 1}


def test_direction(
    redis: redis_server.RedisProcess,
    server: serving.ServerProcess,
    bridge: Start,
    redis_worker: StartWorker,
    function: str,
) -> None:
    """With only one way, a job of the other side stays, and the bridge is no worker there."""
    redis_worker(f"{function}-there", lambda payload: b"")
    client = redis_py_peer.Client(redis.port)
    joined = bridge(server.url, function, f"{function}-there", "--direction", "to-server")
    with Peer(server.port).register(function.encode()) as worker, Peer(server.port) as other:
        other.submit(f"{function}-there".encode(), b"", b"", kind=Kind.SUBMIT_JOB_BG)
        client.run(function, b"")
        worker.send(Kind.WORK_COMPLETE, _next(worker).handle, b"")
        assert _workers(server, f"{function}-there") == 0
    joined.stop()
    assert json.loads(joined.lines[-1])["to_redis"] == 0
    client.close()


def test_all_functions(
    redis: redis_server.RedisProcess, server: serving.ServerProcess, bridge: Start, function: str
) -> None:
    client = redis_py_peer.Client(redis.port)
    number = client.run(function, b"hello")
    joined = bridge(server.url, "--all")
    with Peer(server.port).register(function.encode()) as worker:
        worker.send(Kind.WORK_COMPLETE, _next(worker).handle, b"ok")
        client.redis.brpop([f"lock:{function}:{number}"], 0)
    client.close()
    joined.stop()


def test_second_bridge_waits(
    redis: redis_server.RedisProcess, server: serving.ServerProcess, bridge: Start, function: str
) -> None:
    first = bridge(server.url, function, "--lease", "1")
    second = bridge(server.url, function, "--lease", "1")
    assert second.says("another bridge has it")
    first.stop()
    client = redis_py_peer.Client(redis.port)
    with Peer(server.port).register(function.encode()) as worker:
        number = client.run(function, b"")
        worker.send(Kind.WORK_COMPLETE, _next(worker).handle, b"")
        client.redis.brpop([f"lock:{function}:{number}"], 0)
    client.close()
    second.stop()
    assert json.loads(second.lines[-1])["to_server"] == 1


@pytest.mark.parametrize("protocol", ["http", "gearmonkey", "periodic", "danga", "memodb+tcp"])
def test_every_protocol(
    redis: redis_server.RedisProcess, bridge: Start, redis_worker: StartWorker, function: str, protocol: str
) -> None:
    """Both ways, by each protocol of a Geartrain server."""
    redis_worker(f"{function}-there", lambda payload: payload.upper())
    listen = ("--listen", "gearman://127.0.0.1:0", "--listen", f"{protocol}://127.0.0.1:0")
    client = redis_py_peer.Client(redis.port)
    with serving.serve("--store", "memory", *listen) as server:
        joined = bridge(server.urls[1], function, f"{function}-there")
        with Peer(server.port).register(function.encode()) as worker:
            number = client.run(function, b"hello")
            job = _next(worker)
            worker.send(Kind.WORK_COMPLETE, job.handle, job.data[::-1])
            client.redis.brpop([f"lock:{function}:{number}"], 0)
        assert client.get(function, number).output == b"olleh"
        with Client(server.url) as caller:
            assert caller.run(f"{function}-there", b"hello") == b"HELLO"
        joined.stop()
    client.close()


def test_refusals(redis: redis_server.RedisProcess, server: serving.ServerProcess) -> None:
    address = f"redis://127.0.0.1:{redis.port}"
    assert "use --all" in run("", "bridge", address, server.url, code=2).err
    assert "--redis-password-file" in run("", "bridge", "redis://:secret@old", server.url, "f", code=2).err
    assert "no URL of a Redis" in run("", "bridge", server.url, server.url, "f", code=2).err
    assert "no direction" in run("", "bridge", address, server.url, "f", "--direction", "up", code=2).err
    with serving.serve("--store", "memory", "--listen", "gearmonkey://127.0.0.1:0") as other:
        text = run("", "bridge", f"redis://127.0.0.1:{other.port}", server.url, "f", code=1).err
        assert "is a Geartrain server, not a Redis" in text


def _next(worker: Peer) -> Assignment:
    """The next job, once there is one."""
    while (job := worker.take()) is None:
        worker.sleep()
        worker.expect(Kind.NOOP)
    return job


def _column(server: serving.ServerProcess, function: str, column: int) -> int:
    with Peer(server.port) as admin:
        rows = {row[0]: row for row in admin.listing("status")}
    return int(rows[function.encode()][column]) if function.encode() in rows else 0


def _jobs(server: serving.ServerProcess, function: str) -> int:
    return _column(server, function, 1)


def _workers(server: serving.ServerProcess, function: str) -> int:
    return _column(server, function, 3)
