"""MemoDB's codecs: its CBOR headers, the SP pipes that carry them, and WebSocket, each from both sides."""

from collections.abc import Callable

import cbor2

from campaigns.codecs.codec import Codec, Packet, Stream
from campaigns.mutation import LIMIT, Wrap, unwrapped
from geartrain.wire import memodb as wire
from geartrain.wire import memodb_client, sp, sp_client, websocket, websocket_client

_BACKTRACE = b"\x81\0\0\1"
_WORKER = b"id16id16id16id16"
_KEY = "dGhlIHNhbXBsZSBub25jZQ=="
_MASK = b"\1\2\3\4"
_FIRST_BYTE = 1
_FINAL_BINARY = b"\x82"
_PING = b"\x89"
_PONG = b"\x8a"
_CLOSE = b"\x88"

REQUESTS = (
    memodb_client.ready([b"reverse", b"sum"]),
    memodb_client.job(b"reverse", 40000) + b"payload",
    memodb_client.job("r\u00e9".encode(), 0),
    memodb_client.result(_WORKER) + b"result",
    memodb_client.result(_WORKER, disconnecting=True) + b"result",
    memodb_client.heartbeat(_WORKER),
    cbor2.dumps([wire.VERSION, wire.JOB, b"", "x" * 100, -1]),
    cbor2.dumps([wire.VERSION, 99, b"", [["deep"]], 2**64, 1.5, None, True]),
    b"\x9f\x66memo01\x02\x40\x7f\x61a\x61b\xff\x01\xff",  # indefinite lengths
)
ANSWERS = (
    wire.RESULT_TO_CLIENT + b"result",
    wire.job(_WORKER, b"reverse", 40000) + b"payload",
    wire.heartbeat(_WORKER),
    wire.disconnect(_WORKER),
)
MESSAGES = (
    *(_BACKTRACE + header for header in REQUESTS),
    b"\0\0\0\1" * 3 + _BACKTRACE + REQUESTS[1],
    b"\0\0\0\1" * 9,
)
UPGRADE = (
    "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    f"Sec-WebSocket-Key: {_KEY}\r\nSec-WebSocket-Version: 13\r\n"
    f"Sec-WebSocket-Protocol: {websocket.SUBPROTOCOL}\r\n\r\n"
).encode()
_ACCEPTED = (
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    f"Sec-WebSocket-Accept: {websocket.token(_KEY)}\r\nSec-WebSocket-Protocol: {websocket.SUBPROTOCOL}\r\n\r\n"
).encode()


def over_tcp(message: bytes) -> bytes:
    """A message with its length."""
    return len(message).to_bytes(8, "big") + message


def over_ipc(message: bytes) -> bytes:
    """The same over a socket file."""
    return sp.IPC + over_tcp(message)


def masked_frame(body: bytes) -> bytes:
    """A WebSocket frame of a client: the first byte of the body is that of the frame."""
    payload = body[_FIRST_BYTE:]
    head = websocket.frame_head((body or _FINAL_BINARY)[0], len(payload))
    masked = websocket.exclusive_or(payload, _MASK)
    return head[:1] + bytes((head[1] | 0x80,)) + head[2:] + _MASK + masked


def _plain_frame(body: bytes) -> bytes:
    payload = body[_FIRST_BYTE:]
    return websocket.frame_head((body or _FINAL_BINARY)[0], len(payload)) + payload


class _PipeWithKnownKey(websocket_client.ClientPipe):
    """A client's pipe whose key is not random, so that an answer can be prepared for it."""

    def __init__(self) -> None:
        super().__init__("127.0.0.1", 12704, "/", LIMIT)
        self._key = _KEY


def _open_pipe(pipe: sp.MessagePipe) -> Stream:
    def packet() -> Packet | None:
        more = pipe.next()
        pipe.answers.clear()
        if not more:
            return None
        data, start, end = pipe.data, pipe.start, pipe.end
        body = sp.body(data, start, end)
        return (b"message", data[start:body], data[body:end])

    return Stream(pipe.feed, packet)


def _stream_codec(name: str, pipe: Callable[[], sp.MessagePipe], wrap: Wrap, peer: int) -> Codec:
    """A codec of SP over a byte stream, whose peer begins with its greeting."""
    return Codec(name, MESSAGES, lambda: _open_pipe(pipe()), wrap, _SP_TOKENS, (sp.greeting(peer),))


class _Messages:
    """The header codecs read whole messages: the last one that was fed."""

    def __init__(self, side: "type[_ServerSide] | type[_ClientSide]") -> None:
        self._parse = side.parse
        self._message: bytes | None = None

    def feed(self, message: bytes) -> None:
        self._message = message

    def packet(self) -> Packet | None:
        message, self._message = self._message, None
        if message is None:
            return None
        header, at = self._parse(message)
        return (header.kind, header, message[at:])


class _ServerSide:
    parse = staticmethod(wire.parse)


class _ClientSide:
    parse = staticmethod(memodb_client.parse)


def _open_messages(side: type[_ServerSide] | type[_ClientSide]) -> Stream:
    messages = _Messages(side)
    return Stream(messages.feed, messages.packet)


_SP_TOKENS = (b"\0SP\0", b"\x80\0\0\0", _BACKTRACE, sp.IPC)
_CBOR_TOKENS = (b"\x66memo01", b"\x40", b"\x9f", b"\xff", b"\x5f", b"\x7f", b"\xa1", b"\xc0", b"\xfb", b"\x1b")
_HTTP_TOKENS = (b"\r\n", b"\r\n\r\n", b": ", b"Upgrade", b"HTTP/1.1", b"13", _KEY.encode())
TOKENS = (*_SP_TOKENS, *_CBOR_TOKENS)
FRAMES = (
    *(_FINAL_BINARY + message for message in MESSAGES),
    _PING + b"ping",
    _PONG,
    _CLOSE + b"\x03\xe8",
    b"\x02" + MESSAGES[0][:5],  # the first of two fragments, and the second
    b"\x80" + MESSAGES[0][5:],
)
CODECS = (
    Codec("memodb", REQUESTS, lambda: _open_messages(_ServerSide), unwrapped, _CBOR_TOKENS, in_messages=True),
    Codec("memodb-client", ANSWERS, lambda: _open_messages(_ClientSide), unwrapped, _CBOR_TOKENS, in_messages=True),
    _stream_codec("sp", lambda: sp.StreamPipe(sp.TCP, LIMIT), over_tcp, sp.REQ),
    _stream_codec("sp-ipc", lambda: sp.StreamPipe(sp.IPC, LIMIT), over_ipc, sp.REQ),
    _stream_codec("sp-client", lambda: sp_client.StreamPipe(sp.TCP, LIMIT), over_tcp, sp.REP),
    Codec(
        "websocket",
        FRAMES,
        lambda: _open_pipe(websocket.WebSocketPipe("/", LIMIT)),
        masked_frame,
        (*_SP_TOKENS, *_HTTP_TOKENS),
        (UPGRADE,),
    ),
    Codec(
        "websocket-client",
        FRAMES,
        lambda: _open_pipe(_PipeWithKnownKey()),
        _plain_frame,
        (*_SP_TOKENS, *_HTTP_TOKENS),
        (_ACCEPTED,),
    ),
)
