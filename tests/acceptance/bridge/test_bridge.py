"""Jobs of Redis that a server's workers run, and the other way round; the peers have the original shape."""

import json
import threading
import time
from collections.abc import Callable

import pytest

from geartrain.client.gearmonkey import OPT_BLOCKING, OPT_ROLLCALL, Job
from geartrain.client.sync_client import Client
from geartrain.errors import JobFailedError
from tests.acceptance.bridge.conftest import PROTOCOLS, BridgeProcess, Scene
from tests.acceptance.cli.conftest import run
from tests.acceptance.gearmonkey import redis_py_peer
from tests.support import redis_server, serving, waiting
from tests.support.gearman_peer import Assignment, Kind, Peer

pytestmark = pytest.mark.peer("redis-server")

Start = Callable[..., BridgeProcess]
StartWorker = Callable[..., redis_py_peer.Worker]


def test_job_of_redis_runs_at_the_server(scene: Scene) -> None:
    """With its priority, progress and result; the client asks by roll call whether there is a worker."""
    client = redis_py_peer.Client(scene.redis.port)
    low = client.run(scene.function, b"low", "low")
    due = client.run(scene.function, b"due", "scheduled", scheduled=time.time() - 1)
    joined = scene.bridge(scene.server.url, scene.function)
    with Peer(scene.server.port).register(scene.function.encode()) as worker:
        first = _next(worker)
        assert first.data == b"due"
        worker.send(Kind.WORK_STATUS, first.handle, b"3", b"4")
        waiting.wait_for(lambda: client.get(scene.function, due).dividend == 3, "progress is in Redis")
        worker.send(Kind.WORK_COMPLETE, first.handle, b"result\0of due")
        worker.send(Kind.WORK_COMPLETE, _next(worker).handle, b"")
        waiting.wait_for(lambda: client.get(scene.function, low).status == "success", "both have ended")
        number = client.run(scene.function, b"third", options=OPT_ROLLCALL)
        worker.send(Kind.WORK_COMPLETE, _next(worker).handle, b"")
        client.redis.brpop([f"lock:{scene.function}:{number}"], 0)
    assert client.get(scene.function, due) == Job("success", b"due", b"result\0of due", 3, 4)
    client.close()
    joined.stop()
    assert json.loads(joined.lines[-1]) == {"to_server": 3, "to_redis": 0, "failed": 0, "sent_back": 0}


def test_job_of_the_server_runs_in_redis(scene: Scene, redis_worker: StartWorker) -> None:
    seen = threading.Event()

    def work(payload: bytes) -> bytes:
        worker.update(1, 2)
        assert seen.wait(waiting.PATIENCE)
        return payload[::-1]

    worker = redis_worker(scene.function, work)
    joined = scene.bridge(scene.server.url, scene.function)
    with Peer(scene.server.port) as client:
        handle = client.submit(scene.function.encode(), b"key", b"hello")
        client.expect(Kind.WORK_STATUS, handle, b"1", b"2")
        seen.set()
        client.expect(Kind.WORK_COMPLETE, handle, b"olleh")
    joined.stop()
    assert json.loads(joined.lines[-1])["to_redis"] == 1
    assert not worker.redis.keys(f"geartrain:origin:{scene.function}:*")


def test_failures_cross(scene: Scene, redis_worker: StartWorker) -> None:
    def fail(payload: bytes) -> bytes:
        raise ValueError("no such image")

    redis_worker(f"{scene.function}-there", fail)
    client = redis_py_peer.Client(scene.redis.port)
    joined = scene.bridge(scene.server.url, scene.function, f"{scene.function}-there")
    with Peer(scene.server.port).register(scene.function.encode()) as worker:
        number = client.run(scene.function, b"")
        worker.send(Kind.WORK_FAIL, _next(worker).handle)
        client.redis.brpop([f"lock:{scene.function}:{number}"], 0)
        assert client.get(scene.function, number).status == "error"
    with Client(scene.server.url) as caller, pytest.raises(JobFailedError) as failure:
        caller.run(f"{scene.function}-there", b"")
    assert failure.value.data == b"no such image"
    client.close()
    joined.stop()
    assert json.loads(joined.lines[-1])["failed"] == 2


def test_workers_of_the_own_side_come_first(scene: Scene, redis_worker: StartWorker) -> None:
    """A worker in Redis gets all jobs. When it is busy for longer than the grace, what waits goes to the server."""
    busy, free = threading.Event(), threading.Event()

    def work(payload: bytes) -> bytes:
        if payload == b"long":
            busy.set()
            assert free.wait(waiting.PATIENCE)
        return b"Redis"

    redis_worker(scene.function, work)
    client = redis_py_peer.Client(scene.redis.port)
    with Peer(scene.server.port).register(scene.function.encode()) as worker:
        patient = scene.bridge(scene.server.url, scene.function, "--grace", "600")
        for _ in range(20):
            number = client.run(scene.function, b"short", options=OPT_BLOCKING)
            assert client.get(scene.function, number).output == b"Redis"
        patient.stop()
        long = client.run(scene.function, b"long")
        assert busy.wait(waiting.PATIENCE)
        scene.bridge(scene.server.url, scene.function, "--grace", "0.1")
        surplus = client.run(scene.function, b"surplus")
        job = _next(worker)
        assert job.data == b"surplus"
        worker.send(Kind.WORK_COMPLETE, job.handle, b"server")
        client.redis.brpop([f"lock:{scene.function}:{surplus}"], 0)
        free.set()
        client.redis.brpop([f"lock:{scene.function}:{long}"], 0)
    assert [client.get(scene.function, number).output for number in (long, surplus)] == [b"Redis", b"server"]
    client.close()


def test_surplus_of_the_server(scene: Scene, redis_worker: StartWorker) -> None:
    """The server's only worker is busy: what waits for longer than the grace goes to Redis."""
    redis_worker(scene.function, lambda payload: b"Redis")
    with Peer(scene.server.port).register(scene.function.encode()) as worker, Peer(scene.server.port) as client:
        first = client.submit(scene.function.encode(), b"", b"first")
        job = _next(worker)
        scene.bridge(scene.server.url, scene.function, "--grace", "0.1")
        second = client.submit(scene.function.encode(), b"", b"second")
        client.expect(Kind.WORK_COMPLETE, second, b"Redis")
        worker.send(Kind.WORK_COMPLETE, job.handle, b"server")
        client.expect(Kind.WORK_COMPLETE, first, b"server")


def test_job_goes_home(scene: Scene, redis_worker: StartWorker) -> None:
    """It was sent to a side whose workers left before they took it."""
    client = redis_py_peer.Client(scene.redis.port)
    number = client.run(scene.function, b"hello")
    joined = scene.bridge(scene.server.url, scene.function)
    with Peer(scene.server.port).register(scene.function.encode()):
        waiting.wait_for(lambda: client.get(scene.function, number).status == "busy", "the bridge has it")
        waiting.wait_for(lambda: _jobs(scene.server, scene.function) == 1, "the server has it")
    redis_worker(scene.function, lambda payload: payload[::-1])
    waiting.wait_for(lambda: client.get(scene.function, number).finished, "it has ended")
    assert client.get(scene.function, number).output == b"olleh"
    client.close()
    joined.stop()
    assert json.loads(joined.lines[-1]) == {"to_server": 0, "to_redis": 0, "failed": 0, "sent_back": 1}


def test_job_is_recalled(
    redis: redis_server.RedisProcess, geartrain: serving.ServerProcess, bridge: Start, function: str
) -> None:
    """Redis counts workers that were killed. A job that none of them takes goes to a worker of the server.

    gearmand cannot: it takes no job back from a worker that stays.
    """
    with redis_py_peer.connect(redis.port) as raw, Peer(geartrain.port) as client:
        raw.set(f"count:{function}", 3)
        joined = bridge(geartrain.url, function, "--grace", "0.1")
        handle = client.submit(function.encode(), b"", b"hello")
        waiting.wait_for(lambda: raw.llen(f"queue:{function}:normal") == 1, "the job is in Redis")
        with Peer(geartrain.port).register(function.encode()) as worker:
            job = _next(worker)
            assert (job.handle, job.data) == (handle, b"hello")
            worker.send(Kind.WORK_COMPLETE, handle, b"olleh")
            client.expect(Kind.WORK_COMPLETE, handle, b"olleh")
        assert raw.llen(f"queue:{function}:normal") == 0
        assert not raw.keys(f"geartrain:origin:{function}:*")
    joined.stop()
    assert json.loads(joined.lines[-1]) == {"to_server": 0, "to_redis": 0, "failed": 0, "sent_back": 1}


def test_direction(scene: Scene, redis_worker: StartWorker) -> None:
    """With only one way, a job of the other side stays, and the bridge is no worker there."""
    redis_worker(f"{scene.function}-there", lambda payload: b"")
    client = redis_py_peer.Client(scene.redis.port)
    joined = scene.bridge(scene.server.url, scene.function, f"{scene.function}-there", "--direction", "to-server")
    with Peer(scene.server.port).register(scene.function.encode()) as worker, Peer(scene.server.port) as other:
        other.submit(f"{scene.function}-there".encode(), b"", b"", kind=Kind.SUBMIT_JOB_BG)
        client.run(scene.function, b"")
        worker.send(Kind.WORK_COMPLETE, _next(worker).handle, b"")
        assert _workers(scene.server, f"{scene.function}-there") == 0
    joined.stop()
    assert json.loads(joined.lines[-1])["to_redis"] == 0
    client.close()


def test_all_functions(scene: Scene) -> None:
    client = redis_py_peer.Client(scene.redis.port)
    number = client.run(scene.function, b"hello")
    joined = scene.bridge(scene.server.url, "--all")
    with Peer(scene.server.port).register(scene.function.encode()) as worker:
        worker.send(Kind.WORK_COMPLETE, _next(worker).handle, b"ok")
        client.redis.brpop([f"lock:{scene.function}:{number}"], 0)
    client.close()
    joined.stop()


def test_second_bridge_waits(scene: Scene) -> None:
    first = scene.bridge(scene.server.url, scene.function, "--lease", "6")
    second = scene.bridge(scene.server.url, scene.function, "--lease", "6")
    assert second.says("another bridge has it")
    first.stop()
    client = redis_py_peer.Client(scene.redis.port)
    with Peer(scene.server.port).register(scene.function.encode()) as worker:
        number = client.run(scene.function, b"")
        worker.send(Kind.WORK_COMPLETE, _next(worker).handle, b"")
        client.redis.brpop([f"lock:{scene.function}:{number}"], 0)
    client.close()
    second.stop()
    assert json.loads(second.lines[-1])["to_server"] == 1


@pytest.mark.parametrize("protocol", PROTOCOLS[1:])
def test_every_protocol(
    redis: redis_server.RedisProcess,
    geartrain: serving.ServerProcess,
    bridge: Start,
    redis_worker: StartWorker,
    function: str,
    protocol: str,
) -> None:
    """Both ways, by each protocol of a Geartrain server."""
    redis_worker(f"{function}-there", lambda payload: payload.upper())
    client = redis_py_peer.Client(redis.port)
    joined = bridge(geartrain.urls[PROTOCOLS.index(protocol)], function, f"{function}-there")
    with Peer(geartrain.port).register(function.encode()) as worker:
        number = client.run(function, b"hello")
        job = _next(worker)
        worker.send(Kind.WORK_COMPLETE, job.handle, job.data[::-1])
        client.redis.brpop([f"lock:{function}:{number}"], 0)
    assert client.get(function, number).output == b"olleh"
    with Client(geartrain.url) as caller:
        assert caller.run(f"{function}-there", b"hello") == b"HELLO"
    joined.stop()
    client.close()


def test_refusals(redis: redis_server.RedisProcess, geartrain: serving.ServerProcess) -> None:
    address, url = f"redis://127.0.0.1:{redis.port}", geartrain.url
    assert "use --all" in run("", "bridge", address, url, code=2).err
    assert "--redis-password-file" in run("", "bridge", "redis://:secret@old", url, "f", code=2).err
    assert "no URL of a Redis" in run("", "bridge", url, url, "f", code=2).err
    assert "no direction" in run("", "bridge", address, url, "f", "--direction", "up", code=2).err
    itself = f"redis://127.0.0.1:{geartrain.urls[PROTOCOLS.index('gearmonkey')].rpartition(':')[2]}"
    assert "is a Geartrain server, not a Redis" in run("", "bridge", itself, url, "f", code=1).err


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
