"""Jobs at our door survive the server: what was acknowledged is there after kill -9, and so is what came of it."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from geartrain.client import gearmonkey
from tests.acceptance.gearmonkey import redis_py_peer
from tests.support import serving


@contextlib.contextmanager
def door(store: Path, *options: str) -> Iterator[serving.ServerProcess]:
    listen = f"gearmonkey://{serving.HOST}:0"
    with serving.serve("--store", f"sqlite://{store}", "--listen", listen, *options) as running:
        yield running


def test_acknowledged_jobs_survive_kill_9(tmp_path: Path, function: str) -> None:
    store = tmp_path / "jobs.db"
    with door(store) as server, gearmonkey.Client(server.url) as client:
        numbers = [client.run(function, b"%d" % n, "low" if n % 2 else "high") for n in range(20)]
        later = client.run(function, b"later", "scheduled", scheduled=4e9)
        server.kill()
    with door(store) as server, gearmonkey.Client(server.url) as client:
        with gearmonkey.Worker(server.url, bytes.upper) as worker:
            worker.accept(function)
            for _ in numbers:
                assert worker.run_one()
            assert not worker.run_one(0.01)
        assert [client.get(function, number).output for number in numbers] == [b"%d" % n for n in range(20)]
        assert client.get(function, later)[:2] == ("idle", b"later")
        assert client.run(function) > max(*numbers, later), "an id was given out twice"


def test_popped_jobs_survive_kill_9(tmp_path: Path, function: str) -> None:
    store = tmp_path / "jobs.db"
    with door(store) as server, redis_py_peer.connect(server.port) as raw, gearmonkey.Client(server.url) as client:
        number = client.run(function, b"x")
        assert raw.rpop(f"queue:{function}:normal") == b"%d" % number
        server.kill()
    with door(store) as server, redis_py_peer.connect(server.port) as raw:
        assert raw.rpop(f"queue:{function}:normal") == b"%d" % number


@pytest.mark.parametrize("transaction", [False, True])
def test_results_are_there_after_a_restart(tmp_path: Path, function: str, transaction: bool) -> None:
    """From the records, also in the middle of a pipeline; the input is not kept."""
    store = tmp_path / "jobs.db"
    with door(store) as server, gearmonkey.Client(server.url) as client:
        good, bad = client.run(function, b"good"), client.run(function, b"bad")
        with gearmonkey.Worker(server.url, lambda payload: payload.decode().index("g") or b"done") as worker:
            worker.accept(function)
            assert worker.run_one()
            assert worker.run_one()
    with door(store) as server, redis_py_peer.connect(server.port) as raw:
        with raw.pipeline(transaction=transaction) as pipeline:
            pipeline.ping()
            pipeline.hgetall(f"job:{function}:{good}")
            pipeline.brpop([f"lock:{function}:{bad}"], 1)
            pipeline.hget(f"job:{function}:{bad}", "status")
            pipeline.hgetall(f"job:{function}:{bad + 1000}")
            _, done, woken, failed, nothing = pipeline.execute()
        assert done == {b"status": b"success", b"output": b"done"}
        assert list(woken) == [f"lock:{function}:{bad}".encode(), b"OK"]
        assert failed == b"error"
        assert nothing == {}
        with pytest.raises(Exception, match="is over"):
            raw.hset(f"job:{function}:{good}", "status", "idle")


def test_fields_of_a_programs_own_survive_kill_9(tmp_path: Path, function: str) -> None:
    store = tmp_path / "jobs.db"
    with door(store) as server, redis_py_peer.connect(server.port) as raw:
        first, second = raw.incr(f"uid:{function}"), raw.incr(f"uid:{function}")
        for number in (first, second):
            raw.hset(f"job:{function}:{number}", mapping={"status": "idle", "input": "x", "colour": b"\xff red"})
            raw.lpush(f"queue:{function}:normal", number)
        raw.hset(f"job:{function}:{second}", "size", "large")
        server.kill()
    with door(store) as server, redis_py_peer.connect(server.port) as raw:
        assert raw.hmget(f"job:{function}:{first}", "input", "colour", "size") == [b"x", b"\xff red", None]
        assert raw.hmget(f"job:{function}:{second}", "input", "colour", "size") == [b"x", b"\xff red", b"large"]
        assert raw.rpop(f"queue:{function}:normal") == b"%d" % first
        raw.hset(f"job:{function}:{first}", mapping={"status": "success", "output": "y"})
    with door(store) as server, redis_py_peer.connect(server.port) as raw:
        assert raw.hgetall(f"job:{function}:{first}") == {b"status": b"success", b"output": b"y"}
        assert raw.hget(f"job:{function}:{second}", "size") == b"large"


def test_jobs_of_an_older_handle_prefix_keep_their_ids(tmp_path: Path, function: str) -> None:
    store = tmp_path / "jobs.db"
    with door(store, "--handle-prefix", "H:old") as server, gearmonkey.Client(server.url) as client:
        number = client.run(function, b"x")
    with door(store, "--handle-prefix", "H:new") as server, gearmonkey.Client(server.url) as client:
        assert client.get(function, number)[:2] == ("idle", b"x")
        with gearmonkey.Worker(server.url, bytes.upper) as worker:
            worker.accept(function)
            assert worker.run_one()
        assert client.get(function, number).output == b"X"


def test_unused_id_is_worthless_after_a_restart(tmp_path: Path, function: str) -> None:
    """An id that was taken and not queued is forgotten; its client is told, and no other gets it."""
    store = tmp_path / "jobs.db"
    with door(store) as server, redis_py_peer.connect(server.port) as raw:
        number = raw.incr(f"uid:{function}")
        raw.hset(f"job:{function}:{number}", mapping={"status": "idle", "input": "x"})
        server.kill()
    with door(store) as server, redis_py_peer.connect(server.port) as raw:
        with pytest.raises(Exception, match="INCR uid:"):
            raw.lpush(f"queue:{function}:normal", number)
        assert raw.incr(f"uid:{function}") > number
