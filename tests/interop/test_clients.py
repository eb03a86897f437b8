"""Every library's client; the worker on the other side is the test itself, byte by byte."""

import pytest

from tests.interop.libraries import GEARMAN, LIBRARIES, Library
from tests.interop.peer import Ask, Dial
from tests.support.gearman_peer import Kind, Peer
from tests.support.peer import until

CLIENTS = pytest.mark.parametrize("client", LIBRARIES, ids=str)
STATUS_CLIENTS = pytest.mark.parametrize("client", [one for one in LIBRARIES if one.asks_status], ids=str)
BINARY_CLIENTS = pytest.mark.parametrize("client", [one for one in LIBRARIES if one.binary], ids=str)

EVERY_BYTE = bytes(range(256)) * 4
LARGE = b"0123456789abcdef" * (1 << 17)  # 2 MiB: many reads and writes on both sides


@pytest.fixture
def worker(dial: Dial, function: str) -> Peer:
    return dial().register(function.encode())


@CLIENTS
def test_foreground_job(ask: Ask, client: Library, worker: Peer, function: str) -> None:
    asked = ask(client, "run", function, b"question")
    job = worker.grab()
    assert (job.function, job.data) == (function.encode(), b"question")
    worker.send(Kind.WORK_COMPLETE, job.handle, b"answer")
    assert asked.heard() == ["complete answer"]


@CLIENTS
def test_job_that_waits_for_its_worker(ask: Ask, client: Library, dial: Dial, function: str) -> None:
    asked = ask(client, "run", function, b"early")
    admin = dial()
    until(lambda: [function.encode(), b"1", b"0", b"0"] in admin.listing("status"), "the job is queued")
    worker = dial().register(function.encode())
    job = worker.grab()
    worker.send(Kind.WORK_COMPLETE, job.handle, b"late")
    assert asked.heard() == ["complete late"]


@CLIENTS
def test_empty_result(ask: Ask, client: Library, worker: Peer, function: str) -> None:
    asked = ask(client, "run", function, b"question")
    worker.send(Kind.WORK_COMPLETE, worker.grab().handle, b"")
    assert asked.heard() == ["complete"]


@BINARY_CLIENTS
@pytest.mark.parametrize("payload", [EVERY_BYTE, LARGE], ids=["every-byte", "large"])
def test_payload_and_result_are_any_bytes(
    ask: Ask, client: Library, worker: Peer, function: str, payload: bytes
) -> None:
    asked = ask(client, "run", function, payload)
    job = worker.grab()
    assert job.data == payload
    worker.send(Kind.WORK_COMPLETE, job.handle, payload[::-1])
    assert asked.heard() == ["complete " + payload[::-1].decode("latin-1")]


@CLIENTS
def test_failure(ask: Ask, client: Library, worker: Peer, function: str) -> None:
    asked = ask(client, "run", function, b"question")
    worker.send(Kind.WORK_FAIL, worker.grab().handle)
    assert asked.heard() == ["fail"]


@pytest.mark.parametrize("client", [one for one in LIBRARIES if one.hears_exception], ids=str)
def test_exception(ask: Ask, client: Library, worker: Peer, function: str) -> None:
    asked = ask(client, "run", function, b"question")
    worker.send(Kind.WORK_EXCEPTION, worker.grab().handle, b"it broke")
    assert asked.heard() == ["exception it broke"]


@pytest.mark.differs_from_gearmand
@pytest.mark.parametrize("client", [one for one in LIBRARIES if not one.hears_exception], ids=str)
def test_exception_is_a_failure_to_a_client_that_did_not_ask_for_exceptions(
    ask: Ask, client: Library, worker: Peer, function: str
) -> None:
    """gearmand ends this failure's handle with a NUL, at which libgearman hangs and python3-gearman falls over."""
    asked = ask(client, "run", function, b"question")
    worker.send(Kind.WORK_EXCEPTION, worker.grab().handle, b"it broke")
    assert asked.heard() == ["fail"]


@pytest.mark.parametrize("client", [one for one in LIBRARIES if one.hears], ids=str)
def test_progress(ask: Ask, client: Library, worker: Peer, function: str) -> None:
    asked = ask(client, "run", function, b"question")
    handle = worker.grab().handle
    worker.send(Kind.WORK_STATUS, handle, b"1", b"4")
    worker.send(Kind.WORK_DATA, handle, b"part")
    worker.send(Kind.WORK_WARNING, handle, b"careful")
    worker.send(Kind.WORK_STATUS, handle, b"4", b"4")
    worker.send(Kind.WORK_COMPLETE, handle, b"whole")
    assert asked.heard() == list(client.hears)


@CLIENTS
def test_background_job_is_there_after_its_client_left(ask: Ask, client: Library, dial: Dial, function: str) -> None:
    handle = ask(client, "background", function, b"later").handle()
    job = dial().register(function.encode()).grab()
    assert (job.handle.decode(), job.data) == (handle, b"later")


@CLIENTS
def test_unique_key_reaches_the_worker(ask: Ask, client: Library, worker: Peer, function: str) -> None:
    ask(client, "background", function, b"once", unique="the-key").handle()
    assert worker.grab(Kind.GRAB_JOB_UNIQ).unique == b"the-key"


@CLIENTS
def test_same_unique_key_is_the_same_job(ask: Ask, client: Library, dial: Dial, function: str) -> None:
    first = ask(client, "background", function, b"first", unique="the-key").handle()
    second = ask(client, "background", function, b"second", unique="the-key").handle()
    assert first == second
    worker = dial().register(function.encode())
    assert worker.grab().data == b"first"
    assert worker.take() is None


@CLIENTS
def test_two_clients_share_a_job_and_its_result(
    ask: Ask, client: Library, worker: Peer, dial: Dial, function: str
) -> None:
    first = ask(client, "run", function, b"question", unique="the-key")
    job = worker.grab()
    second = ask(client, "run", function, b"question", unique="the-key")
    admin = dial()
    until(lambda: _waiting(admin, b"the-key") == 2, "both clients wait for the job")
    worker.send(Kind.WORK_COMPLETE, job.handle, b"answer")
    assert first.heard() == second.heard() == ["complete answer"]


def _waiting(peer: Peer, unique: bytes) -> int:
    peer.send(Kind.GET_STATUS_UNIQUE, unique)
    return int(peer.body(Kind.STATUS_RES_UNIQUE).split(b"\0")[5])


@CLIENTS
def test_priorities(ask: Ask, client: Library, dial: Dial, function: str) -> None:
    for priority in ("low", "normal", "high"):
        ask(client, "background", function, priority.encode(), priority=priority).handle()
    worker = dial().register(function.encode())
    assert [worker.grab().data for _ in range(3)] == [b"high", b"normal", b"low"]


@CLIENTS
def test_priorities_of_jobs_that_clients_wait_for(ask: Ask, client: Library, dial: Dial, function: str) -> None:
    admin = dial()
    asked = {}
    for count, priority in enumerate(("low", "normal", "high"), 1):
        asked[priority.encode()] = ask(client, "run", function, priority.encode(), priority=priority)
        queued = [function.encode(), b"%d" % count, b"0", b"0"]
        until(lambda queued=queued: queued in admin.listing("status"), "the job is queued")  # type: ignore[misc]
    worker = dial().register(function.encode())
    jobs = [worker.grab() for _ in range(3)]
    assert [job.data for job in jobs] == [b"high", b"normal", b"low"]
    for job in jobs:
        worker.send(Kind.WORK_COMPLETE, job.handle, job.data)
    assert {data: one.heard() for data, one in asked.items()} == {data: [f"complete {data.decode()}"] for data in asked}


@STATUS_CLIENTS
def test_status_of_a_job_through_its_life(ask: Ask, client: Library, dial: Dial, worker: Peer, function: str) -> None:
    handle = ask(client, "background", function, b"long").handle()

    def status() -> list[str]:
        return ask(client, "status", handle).heard()

    assert status() == ["status 1 0 0/0"]
    job = worker.grab()
    assert status() == ["status 1 1 0/0"]
    worker.send(Kind.WORK_STATUS, job.handle, b"3", b"7").silence()
    assert status() == ["status 1 1 3/7"]
    worker.send(Kind.WORK_COMPLETE, job.handle, b"").silence()
    assert status() == ["status 0 0 0/0"]


@pytest.mark.parametrize("client", [one for one in LIBRARIES if one is not GEARMAN], ids=str)
def test_client_that_is_killed_leaves_no_job_behind(ask: Ask, client: Library, dial: Dial, function: str) -> None:
    admin = dial()
    others = _connections(admin)
    asked = ask(client, "run", function, b"abandoned")
    until(lambda: [function.encode(), b"1", b"0", b"0"] in admin.listing("status"), "the job is queued")
    own = _connections(admin) - others
    assert own
    asked.kill()
    until(lambda: not own & _connections(admin), "the server has noticed that the client is gone")
    assert dial().register(function.encode()).take() is None


def _connections(admin: Peer) -> set[tuple[bytes, ...]]:
    """The server's connections; clients are among the workers, without functions."""
    return {tuple(row) for row in admin.listing("workers")}
