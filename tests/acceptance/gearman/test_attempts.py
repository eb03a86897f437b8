"""A job that loses worker after worker is set aside in the end, and its client is told."""

import pytest

from tests.support.gearman_peer import Kind, Peer, Start, worker
from tests.support.peer import until

pytestmark = pytest.mark.differs_from_gearmand  # which deletes such a job without a trace


def lose(port: int, function: bytes, client: Peer, handle: bytes) -> None:
    with worker(port, function) as peer:
        assert peer.grab().handle == handle
        assert client.status(handle)[:2] == (1, 1)
    until(lambda: client.status(handle)[1] == 0, "the job lost its worker")


def test_a_waiting_client_gets_work_fail(start: Start) -> None:
    with start("--max-attempts", "2") as server, Peer(server.port) as client, Peer(server.port) as watch:
        handle = client.submit(b"f", b"key", b"data")
        lose(server.port, b"f", watch, handle)
        client.silence()
        lose(server.port, b"f", watch, handle)
        client.expect(Kind.WORK_FAIL, handle)
        client.silence()
        with worker(server.port, b"f") as last:
            assert last.take() is None
        assert client.submit(b"f", b"key", b"data") != handle


def test_a_background_job_is_handed_out_no_more(start: Start) -> None:
    with start("--max-attempts", "2") as server, Peer(server.port) as client:
        handle = client.submit(b"f", b"key", b"data", kind=Kind.SUBMIT_JOB_BG)
        lose(server.port, b"f", client, handle)
        lose(server.port, b"f", client, handle)
        client.silence()
        with worker(server.port, b"f") as last:
            assert last.take() is None
            last.sleep().silence()
            fresh = client.submit(b"f", b"key", b"data", kind=Kind.SUBMIT_JOB_BG)
            assert fresh != handle
            assert last.grab().handle == fresh


def test_giving_up_the_function_counts_too(start: Start) -> None:
    with start("--max-attempts", "2") as server, Peer(server.port) as client, worker(server.port) as peer:
        handle = client.submit(b"f", b"", b"data")
        for _ in range(2):
            peer.send(Kind.CAN_DO, b"f")
            assert peer.grab().handle == handle
            client.silence()
            peer.send(Kind.CANT_DO, b"f").silence()
        client.expect(Kind.WORK_FAIL, handle)


def test_a_job_that_is_done_in_time_never_fails(start: Start) -> None:
    with start("--max-attempts", "2") as server, Peer(server.port) as client, Peer(server.port) as watch:
        handle = client.submit(b"f", b"", b"data")
        lose(server.port, b"f", watch, handle)
        with worker(server.port, b"f") as second:
            assert second.grab().handle == handle
            second.send(Kind.WORK_COMPLETE, handle, b"result")
            client.expect(Kind.WORK_COMPLETE, handle, b"result")
        client.silence()
