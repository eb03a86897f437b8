"""Packets as large as gearmand carries them, and packets beyond the limit: the error arrives before the end."""

import contextlib
import socket

import pytest

from tests.support.gearman_peer import Kind, Peer, Start, request
from tests.support.peer import connect

MEGABYTE = 1 << 20
EIGHTY_MEGABYTES = 80_000_000
TOO_LARGE = "ARGUMENT_TOO_LARGE"


def test_eighty_megabytes_pass_where_gearmand_was(drop_in: Start, function: bytes) -> None:
    data = b"x" * EIGHTY_MEGABYTES
    with drop_in() as server, Peer(server.port) as client, Peer(server.port) as worker:
        handle = client.submit(function, b"", data)
        assert worker.register(function).grab().data == data
        worker.send(Kind.WORK_COMPLETE, handle, data)
        client.expect(Kind.WORK_COMPLETE, handle, data)


@pytest.mark.differs_from_gearmand
def test_the_error_is_read_after_a_whole_packet_was_sent(start: Start, function: bytes) -> None:
    """A client that sends first and reads then: a reset would take the ERROR away from it."""
    with start("--max-packet", "1MiB") as server, Peer(server.port) as client:
        client.raw(request(Kind.SUBMIT_JOB, function, b"", b"x" * EIGHTY_MEGABYTES))
        code, text = client.error()
        assert (code, "1048576" in text) == (TOO_LARGE, True)
        client.closed()


@pytest.mark.differs_from_gearmand
def test_a_limit_of_gearmands_command_line(drop_in: Start, function: bytes) -> None:
    with drop_in("--max-packet=1MiB") as server, Peer(server.port) as client:
        client.raw(request(Kind.SUBMIT_JOB, function, b"", b"x" * (2 * MEGABYTE)))
        assert client.error()[0] == TOO_LARGE
        client.closed()


@pytest.mark.differs_from_gearmand
def test_a_refused_worker_gives_its_job_back_while_it_is_still_sending(start: Start, function: bytes) -> None:
    with start("--max-packet", "1MiB") as server, contextlib.ExitStack() as stack:
        client, refused, other = (stack.enter_context(Peer(server.port)) for _ in range(3))
        handle = client.submit(function)
        assert refused.register(function).grab().handle == handle
        refused.raw(request(Kind.WORK_COMPLETE, handle, b"x" * (2 * MEGABYTE))[: MEGABYTE // 2])
        assert refused.error()[0] == TOO_LARGE
        refused.closed()
        refused.raw(b"x" * MEGABYTE)
        other.register(function).sleep()
        other.expect(Kind.NOOP)
        assert other.grab().handle == handle


@pytest.mark.differs_from_gearmand
def test_a_stop_does_not_wait_for_a_refused_peer(start: Start) -> None:
    with start() as server:
        peer = connect(server.port)
        peer.sendall(b"\0XYZ")
        while peer.recv(4096):
            pass
        server.stop()
        with contextlib.suppress(ConnectionResetError), peer:
            peer.shutdown(socket.SHUT_WR)
