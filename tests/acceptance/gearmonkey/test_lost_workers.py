"""Workers that die: their jobs are finished by others, and they are no longer counted."""

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from geartrain.client import gearmonkey
from tests.acceptance.gearmonkey import redis_py_peer
from tests.acceptance.gearmonkey.conftest import Place
from tests.support import process, serving
from tests.support.peer import until

LEASE = 0.5
LONG_LEASE = 3.0  # of a worker that lives, and is renewed in time on a busy machine too
ROOT = Path(__file__).parents[3]


@contextlib.contextmanager
def stuck_worker(place: Place, function: str, home: Path, kind: str = "ours") -> Iterator[process.Process]:
    """A worker in a process of its own, once it is counted."""
    script = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.acceptance.gearmonkey import stuck_worker"
    running = process.Process([sys.executable, "-c", script, kind, place.url, function, str(LEASE)], home)
    try:
        running.wait_for_line("ready")
        yield running
    finally:
        running.kill()


def wait_for(raw: Any, key: str, *values: bytes | None) -> None:
    """Redis has no signal for the end of a lease."""
    until(lambda: raw.get(key) in values, f"{key} is one of {values}")


def finish_lost_job(worker: Any) -> None:
    deadline = time.monotonic() + 10
    while not worker.run_one(0.1):
        assert time.monotonic() < deadline, "the job did not come back"


@pytest.mark.parametrize("priority", ["high", "normal", "low", "scheduled"])
def test_killed_workers_job_is_finished_by_another(
    place: Place, function: str, tmp_path: Path, raw: Any, priority: str
) -> None:
    """SIGKILL after the pop."""
    scheduled = 1.0 if priority == "scheduled" else None
    with gearmonkey.Client(place.url) as client, stuck_worker(place, function, tmp_path) as worker:
        number = client.run(function, b"abc", priority, scheduled=scheduled)
        worker.wait_for_line("popped abc")
        assert client.get(function, number).status == "busy"
        worker.kill()
        with gearmonkey.Worker(place.url, lambda payload: payload.upper(), lease=LEASE) as other:
            other.accept(function)
            finish_lost_job(other)
        assert client.get(function, number)[:3] == ("success", b"abc", b"ABC")
        assert not raw.exists(f"queue:{function}:{priority}")


def test_killed_worker_is_no_longer_counted(place: Place, function: str, tmp_path: Path, raw: Any) -> None:
    with stuck_worker(place, function, tmp_path) as worker:
        assert raw.get(f"count:{function}") == b"1"
        with gearmonkey.Worker(place.url, lease=LEASE) as other:
            other.accept(function)
            assert not other.run_one(0.01)
            assert raw.get(f"count:{function}") == b"2"
            worker.kill()
            wait_for(raw, f"count:{function}", b"1")
    wait_for(raw, f"count:{function}", None, b"0")


def test_worker_at_work_keeps_its_job_beyond_the_lease(place: Place, function: str) -> None:
    """The lease is renewed while the work function works."""
    done: list[bytes] = []

    def work_long(payload: bytes) -> bytes:
        until = time.monotonic() + 1.5 * LONG_LEASE
        while time.monotonic() < until:
            assert not other.run_one(0.1), "the job was given to another although its worker lives"
        done.append(payload)
        return b"done"

    with (
        gearmonkey.Client(place.url) as client,
        gearmonkey.Worker(place.url, work_long, lease=LONG_LEASE) as worker,
        gearmonkey.Worker(place.url, done.append, lease=LONG_LEASE) as other,
    ):
        worker.accept(function)
        number = client.run(function, b"x")
        other.accept(function + "else")
        assert not other.run_one(0.01)
        other.accept(function)
        # It has not looked for this function yet, so the job is the first one's.
        assert worker.run_one(5)
        assert client.get(function, number)[::2] == ("success", b"done", None)
    assert done == [b"x"]


@pytest.mark.peer("redis-server")
@pytest.mark.parametrize("place", ["redis"], indirect=True)
def test_our_own_keys_do_not_outlive_the_work(place: Place, function: str, raw: Any) -> None:
    with gearmonkey.Client(place.url) as client, gearmonkey.Worker(place.url, bytes.upper) as worker:
        worker.accept(function)
        client.run(function, b"x")
        assert worker.run_one()
        assert raw.zcard(f"geartrain:taken:{function}") == 0
        assert raw.zcard(f"geartrain:workers:{function}") == 1
    assert not raw.keys("geartrain:*" + function)


class TestTheDoor:
    """What only our server can do: it knows which connection popped what, and waits a little for its reports."""

    @pytest.fixture(scope="class")
    @classmethod
    def place(cls) -> Iterator[Place]:
        listen = f"gearmonkey://{serving.HOST}:0"
        with serving.serve("--store", "memory", "--listen", listen, "--gearmonkey-grace", "50ms") as server:
            yield Place("geartrain", server.port)

    def test_plain_worker_killed(self, place: Place, function: str, tmp_path: Path, raw: Any) -> None:
        """No word of ours is in that worker, and its job is not lost all the same."""
        client = redis_py_peer.Client(place.port)
        with stuck_worker(place, function, tmp_path, "plain") as worker:
            number = client.run(function, b"abc")
            worker.wait_for_line("popped abc")
            assert raw.get(f"count:{function}") == b"1"
            worker.kill()
            other = redis_py_peer.Worker(place.port, lambda payload: payload.upper())
            other.accept(function)
            assert other.run_one(10)
            assert client.get(function, number).output == b"ABC"
            assert raw.get(f"count:{function}") == b"1"
            other.close()
        client.close()

    def test_popped_job_goes_back_when_its_connection_closes(self, place: Place, function: str, raw: Any) -> None:
        client, worker = redis_py_peer.Client(place.port), redis_py_peer.connect(place.port)
        number = client.run(function, b"abc")
        assert worker.brpop([f"queue:{function}:normal"], 5)[1] == b"%d" % number
        worker.close()
        assert raw.brpop([f"queue:{function}:normal"], 10)[1] == b"%d" % number
        client.close()

    def test_late_answer_is_refused(self, place: Place, function: str, raw: Any) -> None:
        """The job waits in its queue again: whoever had it has it no more."""
        client, worker = redis_py_peer.Client(place.port), redis_py_peer.connect(place.port)
        number = client.run(function, b"abc")
        assert worker.rpop(f"queue:{function}:normal") == b"%d" % number
        worker.close()
        until(lambda: raw.hget(f"job:{function}:{number}", "status") == b"idle", "the job is back in its queue")
        with pytest.raises(Exception, match="is not yours"):
            raw.hset(f"job:{function}:{number}", mapping={"status": "success", "output": "late"})
        assert client.get(function, number).status == "idle"
        client.close()
