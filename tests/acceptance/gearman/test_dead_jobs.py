"""Dead jobs are listed, retried and deleted over the admin protocol; gearmand has nothing like it."""

from collections.abc import Iterator

import pytest

from tests.support import serving
from tests.support.gearman_peer import Kind, Peer

pytestmark = pytest.mark.differs_from_gearmand


@pytest.fixture
def server() -> Iterator[serving.ServerProcess]:
    options = ("--store", "memory", "--max-attempts", "1", "--listen", "gearman://127.0.0.1:0")
    with serving.serve(*options) as server:
        yield server


def bury(port: int) -> bytes:
    """A job whose only worker leaves in the middle of it."""
    with Peer(port) as client, Peer(port) as worker:
        handle = client.submit(b"fragile", b"key", b"data", kind=Kind.SUBMIT_JOB_BG)
        worker.send(Kind.CAN_DO, b"fragile")
        assert worker.grab().handle == handle
    return handle


def dead(admin: Peer) -> list[bytes]:
    admin.text("show dead jobs")
    return admin.block()


def test_a_dead_job_is_listed_with_its_reason_and_runs_again(server: serving.ServerProcess) -> None:
    handle = bury(server.port)
    with Peer(server.port) as admin, Peer(server.port) as worker:
        while not (rows := dead(admin)):
            admin.silence()
        assert len(rows) == 1
        name, function, attempts, reason = rows[0].split(b"\t")
        assert (name, function, attempts) == (handle, b"fragile", b"1")
        assert b"worker disconnected" in reason
        assert admin.text("retry job " + handle.decode()).line() == b"OK\r\n"
        assert dead(admin) == []
        worker.send(Kind.CAN_DO, b"fragile")
        assert worker.grab().handle == handle


def test_a_dead_job_is_deleted_for_good(server: serving.ServerProcess) -> None:
    handle = bury(server.port).decode()
    with Peer(server.port) as admin:
        while not dead(admin):
            admin.silence()
        assert admin.text("delete job " + handle).line() == b"OK\r\n"
        assert dead(admin) == []
        for verb in ("delete", "retry"):
            assert admin.text(f"{verb} job {handle}").line() == b"ERR UNKNOWN_JOB\r\n"


def test_a_key_that_is_taken_again_keeps_a_dead_job_where_it_is(server: serving.ServerProcess) -> None:
    handle = bury(server.port).decode()
    with Peer(server.port) as admin:
        while not dead(admin):
            admin.silence()
        admin.submit(b"fragile", b"key", b"data", kind=Kind.SUBMIT_JOB_BG)
        assert admin.text("retry job " + handle).line().startswith(b"ERR UNIQUE_IN_USE")
        assert len(dead(admin)) == 1
