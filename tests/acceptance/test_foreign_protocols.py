"""HTTP and TLS at the doors of other protocols: the connection ends before anything of the request is handled."""

import ssl
from collections.abc import Iterator

import pytest

from tests.support import serving
from tests.support.gearman_peer import Kind, Peer, request
from tests.support.peer import RawPeer, connect

DOORS = ("gearman", "danga", "periodic", "memodb+tcp", "gearmonkey")
EVERY_DOOR = (*DOORS, "memodb+ws", "http")
SUBMISSION = request(Kind.SUBMIT_JOB_BG, b"evil", b"", b"data")
BODY = b"\r\ncreate function evil\r\nSET evil 1\r\n" + SUBMISSION
HEADS = [
    pytest.param(b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\n", id="POST"),
    pytest.param(b"GET /a%0Ashutdown HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", id="GET"),
    pytest.param(b"POST / HTTP/1.0\n\n", id="bare LF"),
    pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", id="HTTP/2"),
    pytest.param(b"X-Unknown: 1\r\nhOST: 127.0.0.1\r\n\r\n", id="Host"),
    pytest.param(b"POST /" + b"x" * 70_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", id="a long path"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[serving.ServerProcess]:
    listen = [word for door in EVERY_DOOR for word in ("--listen", f"{door}://127.0.0.1:0")]
    with serving.serve("--store", "memory", *listen) as running:
        yield running


@pytest.fixture(scope="module")
def shared_port() -> Iterator[serving.ServerProcess]:
    words = ("--listen", "gearman://127.0.0.1:0", "--danga-on-gearman-port")
    with serving.serve("--store", "memory", *words) as running:
        yield running


def nothing_happened(server: serving.ServerProcess) -> None:
    with Peer(server.port) as admin:
        admin.text("status")
        assert admin.block() == []


@pytest.mark.parametrize("head", HEADS)
def test_an_http_request_ends_the_connection(server: serving.ServerProcess, head: bytes) -> None:
    for url in server.urls[: len(DOORS)]:
        with RawPeer(connect(int(url.rpartition(":")[2]))) as peer:
            peer.raw(head + BODY)
            peer.rest()
        nothing_happened(server)


@pytest.mark.parametrize("head", HEADS)
def test_the_port_that_gearman_shares_with_danga(shared_port: serving.ServerProcess, head: bytes) -> None:
    with RawPeer(connect(shared_port.port)) as peer:
        peer.raw(head + BODY)
        peer.rest()
    nothing_happened(shared_port)


@pytest.mark.parametrize("door", EVERY_DOOR)
def test_a_tls_handshake_ends_the_connection(server: serving.ServerProcess, door: str) -> None:
    """Whatever a line of it says: the session ticket in it is chosen by somebody else."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="evil.example").do_handshake()
    with RawPeer(connect(int(server.urls[EVERY_DOOR.index(door)].rpartition(":")[2]))) as peer:
        port = peer.socket.getsockname()[1]
        peer.raw(outgoing.read() + BODY)
        peer.rest()
    nothing_happened(server)
    assert server.says(f"peer=127.0.0.1:{port} ")
    line = next(line for line in server.stderr.splitlines() if f"peer=127.0.0.1:{port} " in line)
    assert "peer refused" in line
    assert "his port does not speak TLS" in line


def test_commands_that_look_a_little_like_http_are_carried_out(server: serving.ServerProcess) -> None:
    with RawPeer(connect(int(server.urls[4].rpartition(":")[2]))) as redis:
        assert redis.raw(b"GET count:HTTP/1.1\r\n").line() == b"$-1\r\n"
        assert redis.raw(b"ECHO host:\r\n").line() == b"$5\r\n"
    with Peer(server.port) as admin:
        assert admin.text("GET / HTTP").line() == b"ERR UNKNOWN_COMMAND Unknown+server+commandGET\r\n"
        assert admin.text("version HTTP/1.1").line().startswith(b"OK ")
