"""`shutdown` and `shutdown graceful`, as the document has them; gearmand no longer does."""

import pytest

from tests.support.gearman_peer import Kind, Peer, Start, worker
from tests.support.peer import until

pytestmark = pytest.mark.differs_from_gearmand


def refuses(port: int) -> bool:
    try:
        Peer(port).close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:
        pass  # it was on its way in when the door closed
    return False


@pytest.mark.parametrize("command", ["shutdown", "SHUTDOWN"])
def test_shutdown_stops_the_server(command: str, start: Start) -> None:
    with start() as server, Peer(server.port) as client, Peer(server.port) as admin:
        client.submit(b"f", b"", b"data")
        assert admin.text(command).line() == b"OK\r\n"
        admin.closed()
        client.closed()
        assert server.wait() == 0
        assert refuses(server.port)


def test_shutdown_does_not_wait_for_running_jobs(start: Start) -> None:
    with start() as server, Peer(server.port) as client, worker(server.port, b"f") as busy:
        client.submit(b"f", b"", b"data")
        busy.grab()
        client.text("shutdown")
        assert server.wait() == 0
        busy.closed()


def test_graceful_without_jobs_stops_at_once(start: Start) -> None:
    with start() as server, Peer(server.port) as admin, worker(server.port, b"f") as idle:
        admin.text("shutdown graceful")
        idle.closed()
        assert server.wait() == 0


@pytest.mark.parametrize("command", ["shutdown graceful", "Shutdown GRACEFUL"])
def test_graceful_lets_a_running_job_finish_and_delivers_its_result(command: str, start: Start) -> None:
    with start() as server, Peer(server.port) as client, worker(server.port, b"f") as busy:
        handle = client.submit(b"f", b"", b"data")
        busy.grab()
        with Peer(server.port) as admin:
            assert admin.text(command).line() == b"OK\r\n"
        until(lambda: refuses(server.port), "the listening socket closed")
        busy.send(Kind.WORK_STATUS, handle, b"1", b"2")
        client.expect(Kind.WORK_STATUS, handle, b"1", b"2")
        result = b"result" * 100_000
        busy.send(Kind.WORK_COMPLETE, handle, result)
        client.expect(Kind.WORK_COMPLETE, handle, result)
        client.closed()
        busy.closed()
        assert server.wait() == 0


def test_graceful_does_not_wait_for_a_worker_that_leaves(start: Start) -> None:
    with start() as server, Peer(server.port) as admin:
        with worker(server.port, b"f") as busy:
            admin.submit(b"f", b"", b"data", kind=Kind.SUBMIT_JOB_BG)
            busy.grab()
            admin.text("shutdown graceful").line()
        assert server.wait() == 0
