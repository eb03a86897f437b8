"""Round trips and rubbish, for headers, pipes and frames."""

import contextlib
import io
from typing import Any

import cbor2
from hypothesis import given
from hypothesis import strategies as st

from geartrain.errors import WireError
from geartrain.wire import memodb as wire
from geartrain.wire import sp
from geartrain.wire.websocket import WebSocketPipe

NAMES = st.text(st.characters(codec="utf-8"), max_size=40)
IDS = st.binary(max_size=6)
ITEMS = st.one_of(NAMES, IDS, st.integers(-(2**70), 2**70), st.booleans(), st.none(), st.lists(NAMES, max_size=3))
ANY_HEADER = st.builds(lambda kind, id, rest: ["memo01", kind, id, *rest], ITEMS, ITEMS, st.lists(ITEMS, max_size=3))
JOBS = st.builds(lambda name, timeout: ["memo01", 2, b"", name, timeout], NAMES, st.integers(-(2**63), 2**64 - 1))
PIECES = st.lists(st.integers(1, 30), max_size=60)
UPGRADE = (
    b"GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Protocol: rep.sp.nanomsg.org\r\n\r\n"
)


def pieces(stream: bytes, sizes: list[int]) -> list[bytes]:
    found = []
    for size in sizes:
        found.append(stream[:size])
        stream = stream[size:]
    return [piece for piece in [*found, stream] if piece]


def read(pipe: sp.MessagePipe, chunks: list[bytes]) -> list[bytes]:
    found = []
    for chunk in chunks:
        pipe.feed(chunk)
        while pipe.next():
            found.append(pipe.data[pipe.start : pipe.end])
    return found


@given(JOBS, st.binary(max_size=100))
def test_every_job_is_understood(header: list[Any], payload: bytes) -> None:
    encoded = cbor2.dumps(header)
    message, at = wire.parse(encoded + payload)
    assert (message.kind, message.service.decode(), message.timeout, at) == (2, header[3], header[4], len(encoded))


@given(st.binary(min_size=4, max_size=4), NAMES, st.integers(1, 2**51))
def test_what_we_say_is_deterministic_cbor(id: bytes, name: str, timeout: int) -> None:
    assert wire.job(id, name.encode(), timeout) == cbor2.dumps(["memo01", 2, id, name, timeout], canonical=True)


@given(ANY_HEADER, st.binary(max_size=20))
def test_a_header_of_anything_is_understood_or_refused(header: list[Any], payload: bytes) -> None:
    encoded = cbor2.dumps(header)
    with contextlib.suppress(WireError):
        message, at = wire.parse(encoded + payload)
        assert at == len(encoded)
        assert [message.kind, message.id] == header[1:3]


@given(st.binary(max_size=60), st.sampled_from([b"", b"\x85\x66memo01\x02\x40", b"\x84\x66memo01\x01\x40", b"\x9f"]))
def test_the_end_of_a_header_is_where_cbor2_finds_it(rubbish: bytes, start: bytes) -> None:
    message = start + rubbish
    try:
        end = wire.header_end(message, 0, len(message))
    except WireError:
        return
    stream = io.BytesIO(message)
    with contextlib.suppress(cbor2.CBORDecodeError):  # text that is not UTF-8
        cbor2.CBORDecoder(stream).decode()
        assert stream.tell() == end


@given(st.binary(max_size=200))
def test_rubbish_is_refused_in_words(rubbish: bytes) -> None:
    with contextlib.suppress(WireError):
        wire.parse(rubbish)


@given(st.lists(st.binary(max_size=50), max_size=8), PIECES, st.sampled_from([sp.TCP, sp.IPC]))
def test_streams_come_out_as_they_went_in(messages: list[bytes], sizes: list[int], prefix: bytes) -> None:
    pipe = sp.StreamPipe(prefix)
    stream = sp.greeting(sp.REQ) + b"".join(b"".join(pipe.framed(message, b"")) for message in messages)
    assert read(pipe, pieces(stream, sizes)) == messages


@st.composite
def websocket_messages(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A message, and the frames of a client that say it."""
    message = draw(st.binary(max_size=400))
    cuts = sorted(draw(st.lists(st.integers(0, len(message)), max_size=3)))
    parts = [message[a:b] for a, b in zip([0, *cuts], [*cuts, len(message)], strict=True)]
    stream = b""
    for number, part in enumerate(parts):
        first = (0x80 if number == len(parts) - 1 else 0) | (0 if number else 2)
        stream += frame(first, part, draw(st.binary(min_size=4, max_size=4)))
        if draw(st.booleans()):
            stream += frame(0x89, b"ping", b"mask")
    return message, stream


def frame(first: int, payload: bytes, mask: bytes) -> bytes:
    masked = bytes(byte ^ mask[place % 4] for place, byte in enumerate(payload))
    size = len(payload)
    length = bytes([0x80 | size]) if size < 126 else b"\xfe" + size.to_bytes(2, "big")
    return bytes([first]) + length + mask + masked


@given(st.lists(websocket_messages(), max_size=5), PIECES)
def test_websocket_messages_come_out_as_they_went_in(messages: list[tuple[bytes, bytes]], sizes: list[int]) -> None:
    stream = UPGRADE + b"".join(frames for _, frames in messages)
    assert read(WebSocketPipe(""), pieces(stream, sizes)) == [message for message, _ in messages]


@given(st.binary(max_size=300), st.sampled_from(["tcp", "ipc", "ws"]), st.booleans(), PIECES)
def test_rubbish_ends_a_pipe_at_worst(rubbish: bytes, kind: str, greeted: bool, sizes: list[int]) -> None:
    pipe: sp.MessagePipe = (
        WebSocketPipe("", 1000) if kind == "ws" else sp.StreamPipe(sp.IPC if kind == "ipc" else sp.TCP, 1000)
    )
    greeting = UPGRADE if kind == "ws" else sp.greeting(sp.REQ)
    with contextlib.suppress(WireError):
        for message in read(pipe, pieces((greeting if greeted else b"") + rubbish, sizes)):
            assert len(message) <= 1000
            sp.body(message, 0, len(message))
