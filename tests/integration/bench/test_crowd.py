"""The load's clients count answers right, however the bytes come."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from bench import crowd, lists, load

Dialogue = Callable[[socket.socket], None]


@pytest.fixture
def serve() -> Iterator[Callable[[Dialogue], int]]:
    """A server for one connection, played by a function."""
    threads: list[threading.Thread] = []
    listeners: list[socket.socket] = []

    def start(play: Dialogue) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def run() -> None:
            peer, _ = listener.accept()
            # The load hangs up when it has counted the last answer, which may be before all of its bytes are there.
            with peer, contextlib.suppress(ConnectionError):
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                play(peer)
                while peer.recv(4096):  # until the load hangs up
                    pass

        threads.append(threading.Thread(target=run))
        threads[-1].start()
        port: int = listener.getsockname()[1]
        return port

    yield start
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    for listener in listeners:
        listener.close()


def created(handle: bytes) -> bytes:
    return load.HEADER.pack(b"\0RES", load.CREATED, len(handle)) + handle


def answer_with(requests: int, size: int, answer: bytes, by: int) -> Dialogue:
    """Wait for so many requests, and answer all of them in pieces of so many bytes."""

    def play(peer: socket.socket) -> None:
        heard = 0
        while heard < requests * size:
            heard += len(peer.recv(65536))
        said = answer * requests
        for at in range(0, len(said), by):
            peer.sendall(said[at : at + by])

    return play


@pytest.mark.parametrize("by", [1, 7, 8, 13, 1000])
def test_gearman_answers_are_counted_once_at_every_split(serve: Callable[[Dialogue], int], by: int) -> None:
    request = load.packet(load.SUBMIT_BG, b"count\0\0" + crowd.PAYLOAD)
    port = serve(answer_with(5, len(request), created(b"H:here:12"), by))
    submits = load.Submits(port, b"count", 1, 5)
    submits.run(5)
    assert (submits.tally.sent, submits.tally.done) == (5, 5)
    submits.close()


@pytest.mark.parametrize("by", [1, 2, 3, 1000])
def test_redis_answers_are_counted_once_at_every_split(serve: Callable[[Dialogue], int], by: int) -> None:
    request = lists.command(b"LPUSH", b"count", b"nobody " + crowd.PAYLOAD)
    port = serve(answer_with(5, len(request), b":1000\r\n", by))
    submits = lists.Submits(port, b"count", 1, 5)
    submits.run(5)
    assert (submits.tally.sent, submits.tally.done) == (5, 5)
    submits.close()


def test_requests_that_go_one_by_one_are_timed(serve: Callable[[Dialogue], int]) -> None:
    request = load.packet(load.SUBMIT_BG, b"count\0\0" + crowd.PAYLOAD)

    def play(peer: socket.socket) -> None:
        for _ in range(3):
            answer_with(1, len(request), created(b"H:here:1"), 1000)(peer)

    submits = load.Submits(serve(play), b"count", 1, 1)
    submits.run(3)
    assert len(submits.waits) == 3
    assert all(wait > 0 for wait in submits.waits)
    submits.close()


def test_a_refusal_is_told(serve: Callable[[Dialogue], int]) -> None:
    refusal = load.HEADER.pack(b"\0RES", load.ERROR, 6) + b"CODE\0x"
    submits = load.Submits(serve(lambda peer: peer.sendall(refusal)), b"count", 1, 1)
    with pytest.raises(RuntimeError, match="the server refused"):
        submits.run(1)
    submits.close()


def test_a_server_that_hangs_up_is_told(serve: Callable[[Dialogue], int]) -> None:
    submits = load.Submits(serve(lambda peer: peer.shutdown(socket.SHUT_WR)), b"count", 1, 1)
    with pytest.raises(ConnectionError):
        submits.run(1)
    submits.close()
