"""Jobs that GearMonkey programs submit and Gearman workers run, and the other way round."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from geartrain.client import gearmonkey
from geartrain.client.gearmonkey import OPT_BLOCKING, OPT_ROLLCALL
from geartrain.errors import NoWorkersError
from tests.acceptance.gearmonkey import redis_py_peer
from tests.support import gearman_peer, serving
from tests.support.gearman_peer import Kind


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[int, str]]:
    """A Gearman door's port and a GearMonkey door's address, of one server."""
    listens = [f"--listen={scheme}://{serving.HOST}:0" for scheme in ("gearman", "gearmonkey")]
    with serving.serve("--store", "memory", *listens, "--gearmonkey-grace", "50ms") as running:
        gearman, monkey = running.urls
        yield int(gearman.rpartition(":")[2]), monkey


@pytest.fixture
def gearman(both: tuple[int, str]) -> Iterator[gearman_peer.Peer]:
    with gearman_peer.Peer(both[0]) as peer:
        yield peer


@pytest.fixture
def client(both: tuple[int, str]) -> Iterator[gearmonkey.Client]:
    with gearmonkey.Client(both[1]) as made:
        yield made


@pytest.fixture
def raw(both: tuple[int, str]) -> Iterator[Any]:
    connection = redis_py_peer.connect(int(both[1].rpartition(":")[2]))
    yield connection
    connection.close()


class TestGearmanWorker:
    def test_success(self, gearman: gearman_peer.Peer, client: gearmonkey.Client, function: str) -> None:
        gearman.register(function.encode())
        number = client.run(function, b"\0binary", "high")
        job = gearman.grab()
        assert job.data == b"\0binary"
        assert job.handle.endswith(b":%d" % number)
        gearman.send(Kind.WORK_STATUS, job.handle, b"1", b"4")
        gearman.silence()
        assert client.get(function, number) == ("busy", b"\0binary", None, 1, 4)
        gearman.send(Kind.WORK_COMPLETE, job.handle, b"result\0")
        gearman.silence()
        assert client.get(function, number)[:3] == ("success", b"\0binary", b"result\0")

    @pytest.mark.parametrize(
        ("words", "output"), [([Kind.WORK_FAIL], b"worker reported failure"), ([Kind.WORK_EXCEPTION, b"oops"], b"oops")]
    )
    def test_failure(
        self, gearman: gearman_peer.Peer, client: gearmonkey.Client, function: str, words: Any, output: bytes
    ) -> None:
        gearman.register(function.encode())
        number = client.run(function, b"x")
        kind, *rest = words
        gearman.send(kind, gearman.grab().handle, *rest)
        gearman.silence()
        assert client.get(function, number)[:3] == ("error", b"x", output)

    def test_blocking_client_is_woken_without_a_word_of_redis(
        self, gearman: gearman_peer.Peer, client: gearmonkey.Client, function: str
    ) -> None:
        gearman.register(function.encode())
        worker = threading.Thread(
            daemon=True, target=lambda: gearman.send(Kind.WORK_COMPLETE, gearman.grab().handle, b"done")
        )
        worker.start()
        number = client.run(function, b"x", options=OPT_BLOCKING, timeout=10)
        worker.join()
        assert client.get(function, number).output == b"done"

    def test_roll_call_counts_it(
        self, both: tuple[int, str], gearman: gearman_peer.Peer, client: gearmonkey.Client, function: str
    ) -> None:
        with pytest.raises(NoWorkersError):
            client.run(function, options=OPT_ROLLCALL)
        gearman.register(function.encode())
        assert client.run(function, options=OPT_ROLLCALL)

    def test_scheduled(self, gearman: gearman_peer.Peer, client: gearmonkey.Client, function: str) -> None:
        gearman.register(function.encode())
        client.run(function, b"later", "scheduled", scheduled=4e9)
        client.run(function, b"due", "scheduled", scheduled=1)
        assert gearman.grab().data == b"due"
        assert gearman.take() is None

    def test_late_word_of_a_gearmonkey_worker_is_refused(
        self, gearman: gearman_peer.Peer, client: gearmonkey.Client, function: str, raw: Any
    ) -> None:
        gearman.register(function.encode())
        number = client.run(function, b"x")
        gearman.grab()
        with pytest.raises(Exception, match="is not yours"):
            raw.hset(f"job:{function}:{number}", mapping={"status": "success", "output": "mine"})
        assert client.get(function, number).status == "busy"


class TestGearmonkeyWorker:
    @pytest.mark.parametrize("kind", [Kind.SUBMIT_JOB, Kind.SUBMIT_JOB_HIGH, Kind.SUBMIT_JOB_LOW])
    def test_foreground_job(
        self, both: tuple[int, str], gearman: gearman_peer.Peer, client: gearmonkey.Client, function: str, kind: int
    ) -> None:
        handle = gearman.submit(function.encode(), data=b"abc\0", kind=kind)
        with gearmonkey.Worker(both[1], lambda payload: worker.update(1, 2) or payload.upper()) as worker:
            worker.accept(function)
            assert worker.run_one()
        gearman.expect(Kind.WORK_STATUS, handle, b"1", b"2")
        gearman.expect(Kind.WORK_COMPLETE, handle, b"ABC\0")
        number = int(handle.rpartition(b":")[2])
        assert client.get(function, number)[:3] == ("success", b"abc\0", b"ABC\0")

    def test_error_is_an_exception(self, both: tuple[int, str], gearman: gearman_peer.Peer, function: str) -> None:
        gearman.send(Kind.OPTION_REQ, b"exceptions")
        gearman.expect(Kind.OPTION_RES, b"exceptions")
        handle = gearman.submit(function.encode(), data=b"x")

        def fail(payload: bytes) -> bytes:
            raise ValueError("no such luck")

        with gearmonkey.Worker(both[1], fail) as worker:
            worker.accept(function)
            assert worker.run_one()
        gearman.expect(Kind.WORK_EXCEPTION, handle, b"no such luck")

    def test_background_job_appears_as_an_id_with_a_hash(
        self, gearman: gearman_peer.Peer, function: str, raw: Any
    ) -> None:
        handle = gearman.submit(function.encode(), data=b"abc", kind=Kind.SUBMIT_JOB_BG)
        number = handle.rpartition(b":")[2]
        key = f"job:{function}:".encode() + number
        assert raw.lrange(f"queue:{function}:normal", 0, -1) == [number]
        assert raw.hgetall(key) == {b"status": b"idle", b"input": b"abc"}
        assert raw.rpop(f"queue:{function}:normal") == number
        assert gearman.status(handle) == (1, 1, 0, 0)
        assert raw.hset(key, mapping={"status": "success", "output": "out"}) == 1
        assert gearman.status(handle) == (0, 0, 0, 0)

    def test_gearman_sees_the_worker(self, both: tuple[int, str], gearman: gearman_peer.Peer, function: str) -> None:
        with gearmonkey.Worker(both[1]) as worker:
            worker.accept(function)
            assert not worker.run_one(0.01)
            assert [function.encode(), b"0", b"0", b"1"] in gearman.listing("status")

    def test_job_of_a_worker_that_died_goes_to_a_gearman_worker(
        self, both: tuple[int, str], gearman: gearman_peer.Peer, client: gearmonkey.Client, function: str, raw: Any
    ) -> None:
        number = client.run(function, b"x")
        with redis_py_peer.connect(int(both[1].rpartition(":")[2])) as dying:
            assert dying.rpop(f"queue:{function}:normal") == b"%d" % number
        gearman.register(function.encode())
        assert gearman.grab().data == b"x"

    def test_events_of_gearman_jobs(self, gearman: gearman_peer.Peer, function: str, raw: Any) -> None:
        subscriber = raw.pubsub(ignore_subscribe_messages=True)
        subscriber.psubscribe("channel:*")
        assert subscriber.get_message(timeout=5) is None
        gearman.register(function.encode())
        handle = gearman.submit(function.encode(), data=b"abc")
        gearman.send(Kind.WORK_COMPLETE, gearman.grab().handle, b"out")
        number = handle.rpartition(b":")[2]
        heard = [subscriber.get_message(timeout=5) for _ in range(3)]
        subscriber.close()
        assert {message["channel"] for message in heard} == {f"channel:{function}".encode()}
        assert [message["data"] for message in heard] == [b"create:" + number, b"start:" + number, b"finish:" + number]
        assert raw.hget(f"job:{function}:{number.decode()}", "output") == b"out"
