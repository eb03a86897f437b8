"""gearmand's own options that change what peers see, on gearmand's own command line."""

import contextlib

import pytest

from tests.support.gearman_peer import Kind, Peer, Start, worker
from tests.support.peer import until


def lose(port: int, function: bytes, watch: Peer, handle: bytes) -> None:
    with worker(port, function) as peer:
        assert peer.grab().handle == handle
        assert watch.status(handle)[:2] == (1, 1)
    until(lambda: watch.status(handle)[1] == 0, "the job lost its worker")


@pytest.mark.parametrize("retries", [1, 2, 3])
def test_job_retries_is_the_number_of_attempts(retries: int, drop_in: Start) -> None:
    with (
        drop_in(f"--job-retries={retries}") as server,
        Peer(server.port) as client,
        Peer(server.port) as watch,
    ):
        handle = client.submit(b"f", b"", b"data")
        for _ in range(retries):
            client.silence()
            lose(server.port, b"f", watch, handle)
        client.expect(Kind.WORK_FAIL, handle)
        with worker(server.port, b"f") as last:
            assert last.take() is None


def test_without_job_retries_a_job_is_never_given_up(drop_in: Start) -> None:
    with drop_in() as server, Peer(server.port) as client, Peer(server.port) as watch:
        handle = client.submit(b"f", b"", b"data")
        for _ in range(15):
            lose(server.port, b"f", watch, handle)
        client.silence()
        with worker(server.port, b"f") as last:
            assert last.grab().handle == handle


def test_exceptions_for_everybody(drop_in: Start) -> None:
    with drop_in("--exceptions") as server, Peer(server.port) as client, worker(server.port, b"f") as busy:
        handle = client.submit(b"f", b"", b"data")
        busy.grab()
        busy.send(Kind.WORK_EXCEPTION, handle, b"it broke")
        client.expect(Kind.WORK_EXCEPTION, handle, b"it broke")


def test_a_job_that_exceeds_its_timeout_is_given_out_again(drop_in: Start) -> None:
    """Neither its client nor its worker is told."""
    with drop_in() as server, contextlib.ExitStack() as stack:
        client, slow, other = (stack.enter_context(Peer(server.port)) for _ in range(3))
        slow.send(Kind.CAN_DO_TIMEOUT, b"f", b"1000").silence()
        handle = client.submit(b"f", b"", b"data")
        assert slow.grab().handle == handle
        other.register(b"f").sleep()
        other.expect(Kind.NOOP)
        assert other.grab().handle == handle
        other.send(Kind.WORK_COMPLETE, handle, b"result")
        client.expect(Kind.WORK_COMPLETE, handle, b"result")
        client.silence()
        slow.silence()


@pytest.mark.differs_from_gearmand
def test_an_explicit_timeout_action_wins(drop_in: Start) -> None:
    with drop_in("--job-timeout-action=fail") as server, Peer(server.port) as client, Peer(server.port) as slow:
        slow.send(Kind.CAN_DO_TIMEOUT, b"f", b"1000").silence()
        handle = client.submit(b"f")
        slow.grab()
        client.expect(Kind.WORK_FAIL, handle)
