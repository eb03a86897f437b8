"""What makes no sense ends the connection it came on, with the reason in the log, and no other."""

from collections.abc import Callable

import pytest

from tests.support import serving
from tests.support.danga_peer import INCOMPLETE, SYNC, Kind, Peer, creation, packet

Dial = Callable[[], Peer]

REFUSED = {
    "another magic": (b"\0XYZ\x06\0\0\0\0", "INVALID_MAGIC"),
    "a response": (packet(Kind.JOB_ASSIGN_RES, magic=b"\0RES"), "INVALID_MAGIC"),
    "a line of text": (b"status\n", "INVALID_MAGIC"),
    "Gearman": (b"\0REQ\0\0\0\x01\0\0\0\x03add", "noop is for workers"),
    "noop": (packet(Kind.NOOP), "noop is for workers"),
    "job_create_res": (packet(Kind.JOB_CREATE_RES, b"H:lap:1"), "job_create_res is for workers"),
    "a type that does not exist": (packet(0x0E), "there is no packet type 0x0E"),
    "too long": (b"\0REQ\x01\xff\xff\xff\xff", "announces 4294967295 bytes"),
    "worker_sleep with a body": (packet(Kind.WORKER_SLEEP, b"x"), "worker_sleep has 1 bytes, and needs exactly 0"),
    "a status that is too short": (packet(Kind.JOB_STATUS_ANNOUNCE, bytes(8)), "needs exactly 12"),
    "a status without a job": (packet(Kind.JOB_STATUS_ANNOUNCE, bytes(12)), "from a worker that has no job"),
    "a completion without a job": (packet(Kind.JOB_COMPLETE_ANNOUNCE, b"\0x"), "from a worker that has no job"),
    "a completion without a code": (packet(Kind.JOB_COMPLETE_ANNOUNCE), "needs at least 1"),
    "a creation without a name": (creation(b""), "needs at least 5"),
    "a creation with an empty name": (creation(b"", b"key"), "an empty job name"),
    "a creation without NULs": (packet(Kind.JOB_CREATE_REQ, b"mail mail"), "each end with NUL"),
    "a job type that does not exist": (creation(b"mail", type=3), "job type 3"),
    "an empty job name": (packet(Kind.WORKER_CONNECT, b"a\0\0b"), "an empty job name"),
}


@pytest.mark.parametrize(("data", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_it_is_refused_alone_and_with_a_reason(
    data: bytes, why: str, dial: Dial, application: Peer, server: serving.ServerProcess
) -> None:
    peer = dial().raw(data)
    host, port = peer.socket.getsockname()
    peer.closed()
    assert server.says(f"peer refused  peer={host}:{port}")
    assert why in next(line for line in server.stderr.splitlines() if f"peer={host}:{port}" in line)
    application.silence()


def test_what_was_right_before_is_answered(dial: Dial, name: bytes) -> None:
    peer = dial().raw(creation(name) + packet(Kind.JOB_STATUS_REQ, b"?") + b"rubbish" + creation(name))
    assert peer.body(Kind.JOB_CREATE_RES)
    assert peer.streamed_status() == (0, 0, 0)
    peer.closed()


def test_a_refused_worker_loses_its_job_to_others(dial: Dial, application: Peer, worker: Peer, name: bytes) -> None:
    handle = application.create(name, args=b"x")
    bad = dial().connect(name)
    bad.grab()
    bad.raw(b"rubbish").closed()
    assert worker.grab() == (name, b"x")
    worker.finish(b"done")
    assert application.result(handle).result == b"done"


@pytest.mark.parametrize("handle", [b"", b"?", b"H:nowhere:1", b"H:nowhere:99999999999999999999", b"\0" * 9])
def test_an_unknown_handle_is_no_mistake(handle: bytes, application: Peer) -> None:
    assert application.status(handle) == (0, 0, 0)
    assert application.completion(handle) == INCOMPLETE


def test_a_full_queue_gives_no_handle(
    application: Peer, gearman: Callable[[], Peer], name: bytes, server: serving.ServerProcess
) -> None:
    admin = gearman()
    application.create(name)
    admin.text(b"maxqueue %b 1" % name)
    assert admin.line() == b"OK\r\n"
    assert application.create(name) == b""
    assert application.create(name, type=SYNC) == b""
    assert server.says(f"the queue of '{name.decode()}' is full (1 jobs)")
    application.silence()


def test_a_job_that_was_cancelled_under_its_worker(
    application: Peer, worker: Peer, gearman: Callable[[], Peer], name: bytes
) -> None:
    """The draft cannot tell the worker: what it still says of that job is passed over."""
    handle = application.create(name)
    worker.grab()
    admin = gearman()
    admin.text(b"cancel job " + handle)
    assert admin.line() == b"OK\r\n"
    worker.announce(1, 2).finish(b"too late")
    assert worker.take() is None
    assert application.result(handle) == (1, 1, b"")
    application.create(name, args=b"next")
    assert worker.grab() == (name, b"next")


def test_a_packet_that_does_not_go_on() -> None:
    with (
        serving.serve("--listen", "danga://127.0.0.1:0", "--store", "memory", "--stall-timeout", "50ms") as server,
        Peer(server.port) as stalling,
        Peer(server.port) as silent,
    ):
        stalling.raw(packet(Kind.JOB_STATUS_REQ, b"handle")[:12]).closed()
        assert server.says("no more of a packet arrived")
        silent.silence()


def test_requests_that_wait_are_bounded() -> None:
    with (
        serving.serve("--listen", "danga://127.0.0.1:0", "--store", "memory", "--write-limit", "10kB") as server,
        Peer(server.port) as peer,
    ):
        peer.create(b"slow", type=SYNC)
        peer.raw(packet(Kind.JOB_STATUS_REQ, b"handle") * 100).closed()
        assert server.says("requests wait for the answers before them")
