"""The SP wire against bytes that real NNG programs sent, fed whole, byte by byte and at every split."""

from collections.abc import Callable, Iterable

import pytest

from geartrain.errors import WireError
from geartrain.wire import sp
from geartrain.wire.websocket import MAX_FRAGMENTS, WebSocketPipe

# What `nngcat` sent to a server when it was given the word hello.
REQ_GREETING = bytes.fromhex("00 53 50 00 00 30 00 00")
OVER_TCP = bytes.fromhex("00 00 00 00 00 00 00 09 87 fc 16 97 68 65 6c 6c 6f")
OVER_IPC = bytes.fromhex("01 00 00 00 00 00 00 00 09 87 a9 11 5f 68 65 6c 6c 6f")
OVER_WS = bytes.fromhex("82 89 00000000 a5 81 b2 01 68 65 6c 6c 6f")
MASKED = bytes.fromhex("82 89 01020304 a4 83 b1 05 69 67 6f 68 6e")
UPGRADE = (
    b"GET /memo HTTP/1.1\r\nHost: 127.0.0.1:44427\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: 9VEZaKqeC+d1xqPtG4Bkfg==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Protocol: rep.sp.nanomsg.org\r\n\r\n"
)
PING = bytes.fromhex("89 84 01020304 71 6b 6d 63")  # its payload is "ping"
IN_FRAGMENTS = bytes.fromhex("02 85 00000000 a5 81 b2 01 68") + PING + bytes.fromhex("80 84 00000000 65 6c 6c 6f")

Make = Callable[[], sp.MessagePipe]


def tcp() -> sp.MessagePipe:
    return sp.StreamPipe(sp.TCP)


def ipc() -> sp.MessagePipe:
    return sp.StreamPipe(sp.IPC)


def web() -> sp.MessagePipe:
    return WebSocketPipe("/memo")


HELLO_WS = bytes.fromhex("a581b201") + b"hello"
STREAMS: dict[str, tuple[Make, bytes, list[bytes]]] = {
    "tcp": (tcp, REQ_GREETING + OVER_TCP, [bytes.fromhex("87fc1697") + b"hello"]),
    "tcp, two": (tcp, REQ_GREETING + OVER_TCP * 2, [bytes.fromhex("87fc1697") + b"hello"] * 2),
    "tcp, an empty one": (tcp, REQ_GREETING + bytes(8) + OVER_TCP, [b"", bytes.fromhex("87fc1697") + b"hello"]),
    "ipc": (ipc, REQ_GREETING + OVER_IPC * 2, [bytes.fromhex("87a9115f") + b"hello"] * 2),
    "ws": (web, UPGRADE + OVER_WS + MASKED, [HELLO_WS] * 2),
    "ws in fragments": (web, UPGRADE + IN_FRAGMENTS + OVER_WS, [HELLO_WS] * 2),
}


def read(pipe: sp.MessagePipe, chunks: Iterable[bytes]) -> list[bytes]:
    """Every message that a pipe makes of these chunks."""
    found = []
    for chunk in chunks:
        pipe.feed(chunk)
        while pipe.next():
            found.append(pipe.data[pipe.start : pipe.end])
    return found


@pytest.mark.parametrize(("make", "stream", "expected"), STREAMS.values(), ids=STREAMS.keys())
class TestStreams:
    def test_whole(self, make: Make, stream: bytes, expected: list[bytes]) -> None:
        pipe = make()
        assert not pipe.greeted
        assert read(pipe, [stream]) == expected
        assert pipe.greeted

    def test_byte_by_byte(self, make: Make, stream: bytes, expected: list[bytes]) -> None:
        pipe = make()
        assert read(pipe, (stream[i : i + 1] for i in range(len(stream)))) == expected
        assert pipe.incomplete_size == 0

    def test_at_every_split(self, make: Make, stream: bytes, expected: list[bytes]) -> None:
        for at in range(1, len(stream)):
            assert read(make(), [stream[:at], stream[at:]]) == expected, at


def test_what_we_say_first() -> None:
    assert tcp().greeting == ipc().greeting == bytes.fromhex("00 53 50 00 00 31 00 00")
    assert web().greeting == b""


def test_messages_of_ours() -> None:
    backtrace = bytes.fromhex("87fc1697")
    assert tcp().framed(backtrace, b"hello") == [OVER_TCP]
    assert ipc().framed(bytes.fromhex("87a9115f"), b"hello") == [OVER_IPC]
    assert web().framed(bytes.fromhex("a581b201"), b"hello") == [b"\x82\x09" + HELLO_WS]


def test_a_large_payload_is_not_copied() -> None:
    payload = bytes(sp.COPY_UP_TO + 1)
    head, same = tcp().framed(b"head", payload)
    assert same is payload
    assert head == (4 + len(payload)).to_bytes(8, "big") + b"head"


def test_websocket_answers() -> None:
    pipe = web()
    read(pipe, [UPGRADE + PING])
    said = b"".join(pipe.answers)
    assert said.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
    assert said.endswith(b"\r\n\r\n\x8a\x04ping")


def test_the_example_of_rfc_6455() -> None:
    pipe = WebSocketPipe("/chat")
    head = UPGRADE.replace(b"/memo", b"/chat").replace(b"9VEZaKqeC+d1xqPtG4Bkfg==", b"dGhlIHNhbXBsZSBub25jZQ==")
    read(pipe, [head])
    assert b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" in pipe.answers[0]


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65535, 65536, 256 * 1024, 256 * 1024 + 1, 3_000_000])
def test_websocket_frames_of_every_size(size: int) -> None:
    payload = bytes(range(256)) * (size // 256) + bytes(size % 256)
    pipe = web()
    read(pipe, [UPGRADE])
    stream = b"".join(pipe.framed(b"\x80\0\0\1", payload))
    assert unframed(stream) == b"\x80\0\0\1" + payload


def unframed(stream: bytes) -> bytes:
    """One message of a server, by rules of our own; no frame may be larger than NNG takes."""
    body = b""
    expected = 0x02
    while True:
        first, size, at = stream[0], stream[1], 2
        if size > 125:
            at = 4 if size == 126 else 10
            size = int.from_bytes(stream[2:at], "big")
        assert first & 0x7F == expected
        assert size <= 1024 * 1024
        body += stream[at : at + size]
        stream = stream[at + size :]
        if first & 0x80:
            assert not stream
            return body
        expected = 0x00


REFUSED: dict[str, tuple[Make, bytes, str]] = {
    "not a greeting": (tcp, b"GET / HTTP/1.1", "PROTOCOL"),
    "not the beginning of one": (tcp, b"\0S\0", "PROTOCOL"),
    "another protocol": (tcp, sp.greeting(0x20), "PROTOCOL"),
    "reserved bytes": (tcp, sp.greeting(sp.REQ)[:-1] + b"\1", "PROTOCOL"),
    "a length of 2^63": (tcp, REQ_GREETING + b"\x80" + bytes(7), "MESSAGE_TOO_LONG"),
    "one byte too long": (tcp, REQ_GREETING + (sp.MAX_MESSAGE + 1).to_bytes(8, "big"), "MESSAGE_TOO_LONG"),
    "another message type": (ipc, REQ_GREETING + b"\2", "PROTOCOL"),
    "a frame of 2^63": (web, UPGRADE + b"\x82\xff\x80" + bytes(11), "MESSAGE_TOO_LONG"),
    "fragments that grow too long": (
        lambda: WebSocketPipe("/memo", 6),
        UPGRADE + bytes.fromhex("0283 00000000 616263 0084 00000000 64656667"), "MESSAGE_TOO_LONG",
    ),
    "an endless head": (web, b"GET /" + b"x" * 8192, "HTTP"),
}  # fmt: skip


@pytest.mark.parametrize(("make", "stream", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused(make: Make, stream: bytes, code: str) -> None:
    for chunks in ([stream], [stream[i : i + 1] for i in range(len(stream))]):
        with pytest.raises(WireError) as caught:
            read(make(), chunks)
        assert caught.value.code == code
        assert caught.value.fatal


@pytest.mark.parametrize("fragment", ["00 80 00000000", "00 81 00000000 61"], ids=["empty", "one byte"])
def test_fragments_are_counted(fragment: str) -> None:
    """The first and the last are fragments too."""
    first, last = bytes.fromhex("02 81 00000000 61"), bytes.fromhex("80 81 00000000 61")
    between = bytes.fromhex(fragment) * (MAX_FRAGMENTS - 2)
    [message] = read(web(), [UPGRADE, first + between + last])
    assert message == b"a" * (2 + between.count(b"a"))
    pipe = web()
    with pytest.raises(WireError, match="fragments") as caught:
        read(pipe, [UPGRADE, first + between + bytes.fromhex(fragment) + last])
    assert caught.value.fatal
    assert pipe.answers[-1] == b"\x88\x02" + (1008).to_bytes(2, "big")


def test_as_much_as_is_allowed() -> None:
    stream = REQ_GREETING + (9).to_bytes(8, "big") + bytes(9)
    assert read(sp.StreamPipe(sp.TCP, 9), [stream]) == [bytes(9)]


BACKTRACES = {
    "one word": ("87fc1697", 4),
    "one word and a body": ("87fc1697 68656c6c6f", 4),
    "two words": ("00000001 87fc1697 68", 8),
    "as many as are allowed": ("7fffffff" * 7 + "80000000", 32),
}


@pytest.mark.parametrize(("text", "size"), BACKTRACES.values(), ids=BACKTRACES.keys())
def test_backtraces(text: str, size: int) -> None:
    message = bytes.fromhex(text)
    assert sp.body(b"before" + message + b"\xff behind", 6, 6 + len(message)) == 6 + size


@pytest.mark.parametrize("text", ["", "80", "800000", "00000001", "00000001 8000"])
def test_a_backtrace_without_an_end_is_fatal(text: str) -> None:
    message = bytes.fromhex(text)
    with pytest.raises(WireError) as caught:
        sp.body(message + b"\x80\x80\x80\x80", 0, len(message))
    assert caught.value.fatal


def test_a_backtrace_of_too_many_hops_is_not() -> None:
    with pytest.raises(WireError) as caught:
        sp.body(bytes.fromhex("00000001" * 8 + "80000000"), 0, 36)
    assert not caught.value.fatal
