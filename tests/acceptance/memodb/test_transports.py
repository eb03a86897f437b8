"""The same broker over IPv4, IPv6, socket files and WebSocket."""

import base64
import contextlib
import hashlib
import os
import socket
import struct
from collections.abc import Iterator

import pytest

from tests.acceptance.memodb.conftest import port_of
from tests.support import memodb_peer, serving
from tests.support.memodb_peer import Pipe
from tests.support.websocket_peer import Socket

HAS_IPV6 = socket.has_ipv6 and os.path.exists("/proc/net/if_inet6")


@pytest.fixture(scope="module")
def flags() -> list[str]:
    return ["--listen", "memodb+ipc:///proc/self/cwd/door.sock", "--listen", "memodb+ws://127.0.0.1:0/memo"]


def test_a_client_and_a_worker_at_different_places(server: serving.ServerProcess, client: Pipe, service: str) -> None:
    with Pipe.ipc(str(server.home / "door.sock")) as worker:
        asked = worker.ready(service)
        request = client.job(service, b"x" * 300_000)
        assigned = worker.reply(asked)
        assert assigned.payload == b"x" * 300_000
        worker.result(assigned.id, b"y" * 300_000)
        assert client.reply(request).payload == b"y" * 300_000


@pytest.mark.skipif(not HAS_IPV6, reason="this machine has no IPv6")
def test_ipv6() -> None:
    with (
        serving.serve("--store", "memory", "--listen", "memodb+tcp://[::1]:0") as server,
        Pipe.tcp(server.port, "::1") as pipe,
    ):
        assert server.url == f"memodb+tcp://[::1]:{server.port}"
        pipe.silence()


@pytest.fixture
def web(server: serving.ServerProcess) -> Iterator[Socket]:
    with contextlib.closing(Socket(port_of(server, "memodb+ws"))) as web:
        yield web


HEARTBEAT = struct.pack(">I", 0x80000001) + memodb_peer.header(memodb_peer.HEARTBEAT, b"none")
DISCONNECT = struct.pack(">I", 0x80000001) + memodb_peer.header(memodb_peer.DISCONNECT, b"none")


def test_websocket(web: Socket) -> None:
    status, fields = web.ask()
    token = hashlib.sha1(base64.b64encode(b"sixteen bytes...") + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
    assert status == b"HTTP/1.1 101 Switching Protocols"
    assert fields[b"Sec-WebSocket-Accept"] == base64.b64encode(token)
    assert fields[b"Sec-WebSocket-Protocol"] == b"rep.sp.nanomsg.org"
    web.send(0x82, HEARTBEAT)
    assert web.receive() == (0x82, DISCONNECT)


def test_websocket_fragments_and_pings(web: Socket) -> None:
    web.ask()
    web.send(0x02, HEARTBEAT[:3])
    web.send(0x89, b"are you there?")
    assert web.receive() == (0x8A, b"are you there?")
    web.send(0x00, b"")
    web.send(0x8A, b"a pong that nobody asked for")
    web.send(0x80, HEARTBEAT[3:])
    assert web.receive() == (0x82, DISCONNECT)


def test_websocket_goodbye(web: Socket) -> None:
    web.ask()
    web.send(0x88, struct.pack(">H", 1000))
    assert web.receive() == (0x88, struct.pack(">H", 1000))
    assert web.stream.read() == b""


@pytest.mark.parametrize(
    ("path", "changed", "status"),
    [
        ("/elsewhere", {}, b"404"),
        ("/memo", {"Sec_WebSocket_Protocol": "pub.sp.nanomsg.org"}, b"400"),
        ("/memo", {"Sec_WebSocket_Key": "short"}, b"400"),
        ("/memo", {"Sec_WebSocket_Version": "8"}, b"426"),
        ("/memo", {"Upgrade": "h2c"}, b"400"),
        ("/memo", {"X": "x" * 9000}, b""),
    ],
)
def test_websocket_refused(web: Socket, path: str, changed: dict[str, str], status: bytes) -> None:
    line, _ = web.ask(path, **changed)
    assert status in line
    assert web.stream.read() == b""


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ((0x81, b"text"), 1003),
        ((0x80, b"goes on with nothing"), 1002),
        ((0x8B, b"an unknown control frame"), 1002),
        ((0x89, b"x" * 126), 1002),
        ((0x09, b"a ping in fragments"), 1002),
    ],
)
def test_websocket_faults(web: Socket, frame: tuple[int, bytes], code: int) -> None:
    web.ask()
    web.send(*frame)
    assert web.receive() == (0x88, struct.pack(">H", code))
    assert web.stream.read() == b""


@pytest.mark.parametrize("raw", [b"\x82\x05hello", b"\xf2\x80\0\0\0\0", b"\x82\xff\x80" + bytes(11)])
def test_websocket_frames_that_make_no_sense(web: Socket, raw: bytes) -> None:
    web.ask()
    web.socket.sendall(raw)
    assert web.stream.read() == b""
