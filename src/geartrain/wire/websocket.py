"""SP over WebSocket (RFC 6455), the server's side: one binary message is one SP message, and no greeting.

The peer names its counterpart as the subprotocol, so a REQ peer asks for `rep.sp.nanomsg.org`. Large messages come
in fragments, and have to be sent in fragments: NNG closes a pipe that sends it a frame of more than a megabyte.

>>> WebSocketPipe("/memo").framed(b"\\xa5\\x81\\xb2\\x01", b"hello")[0].hex()
'8209a581b20168656c6c6f'
"""

import base64
import binascii
import hashlib
import struct
from collections.abc import Callable
from typing import Final

from geartrain.errors import WireError
from geartrain.wire import foreign_protocol
from geartrain.wire.packet_buffer import PacketBuffer
from geartrain.wire.sp import COPY_UP_TO, MAX_MESSAGE

SUBPROTOCOL: Final = "rep.sp.nanomsg.org"
MAX_HEAD: Final = 8192  # bytes of the HTTP request
MAX_FRAME: Final = 256 * 1024  # bytes in a frame of ours
# Fragments of one message: they may be empty, so the size of the message is no bound. NNG's have 64 KiB.
MAX_FRAGMENTS: Final = 64 * 1024

_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_BLANK_LINE: Final = b"\r\n\r\n"
_KEY_SIZE: Final = 16
_ONCE: Final = frozenset({"host", "origin"})

_CONTINUATION: Final = 0x0
_BINARY: Final = 0x2
_CLOSE: Final = 0x8
_PING: Final = 0x9
_PONG: Final = 0xA
_FIN: Final = 0x80
_RESERVED: Final = 0x70
_MASKED: Final = 0x80
_MASK_SIZE: Final = 4
_MAX_CONTROL: Final = 125
# Unmasking makes a few copies of its input, so it gets no more than this at a time.
_UNMASK_AT_ONCE: Final = 256 * 1024

# Close codes of RFC 6455, section 7.4.1.
_NORMAL: Final = 1000
_PROTOCOL_ERROR: Final = 1002
_UNSUPPORTED: Final = 1003
_POLICY: Final = 1008

# Checks the Host and the Origin of a request, which may be missing; a WireError refuses it.
Admit = Callable[[str, str | None], None]


class WebSocketPipe:
    """A pipe over WebSocket at one path. `answers` has what must be sent back."""

    __slots__ = (
        "_admit",
        "_fragments",
        "_fragments_size",
        "_frames",
        "_path",
        "answers",
        "data",
        "end",
        "greeted",
        "greeting",
        "max_message",
        "start",
    )  # fmt: skip

    def __init__(self, path: str, max_message: int = MAX_MESSAGE, admit: Admit | None = None) -> None:
        self.max_message = max_message
        self.greeting = b""
        self.greeted = False  # its HTTP request was accepted
        self.data = b""  # a whole message
        self.start = 0
        self.end = 0
        self._frames = FrameReader()
        self._path = path or "/"
        self._admit = admit
        self.answers: list[bytes] = []  # the HTTP response, pongs and the closing frame
        self._fragments: list[bytes] | None = None  # of a message that is not complete
        self._fragments_size = 0

    @property
    def split_packets(self) -> int:
        """Tells one incomplete frame from the next."""
        return self._frames.split_packets

    @property
    def incomplete_size(self) -> int:
        """How many bytes of an incomplete message have arrived."""
        return self._frames.incomplete_size + self._fragments_size

    def feed(self, data: bytes) -> None:
        """Take what was read; `next` has returned False before."""
        self._frames.feed(data)

    def next(self) -> bool:
        """Whether there is another message; it lies in `data` between `start` and `end`."""
        if not self.greeted:
            head = self._frames.head()
            if head is None:
                return False
            self._upgrade(head)
        while self._frames.next(self._room()):
            if self._take(self._frames.first, self._frames.payload()):
                return True
        self.data = b""
        return False

    def framed(self, head: bytes, payload: bytes) -> list[bytes]:
        """A message of these two, in as many frames as it needs."""
        size = len(head) + len(payload)
        if size <= COPY_UP_TO:
            return [frame_head(_FIN | _BINARY, size) + head + payload]
        frames = []
        kind = _BINARY
        taken = 0
        while True:
            part = payload[taken : taken + MAX_FRAME]
            taken += len(part)
            last = _FIN if taken == len(payload) else 0
            frames += [frame_head(kind | last, len(head) + len(part)) + head, part]
            if last:
                return frames
            kind, head = _CONTINUATION, b""

    def _upgrade(self, head: bytes) -> None:
        try:
            self.answers.append(accept(head, self._path, self._admit))
        except WireError as error:
            self.answers.append(_refusal(error.code))
            raise
        self.greeted = True

    def _room(self) -> int:
        return self.max_message - self._fragments_size

    def _take(self, first: int, payload: bytes) -> bool:
        """Whether this frame completes a message."""
        kind = first & 0x0F
        if kind & _CLOSE:
            self._control(kind, first, payload)
            return False
        if kind not in (_BINARY, _CONTINUATION):
            raise self._closing(_UNSUPPORTED, f"A frame has type {kind}; only binary ones are understood")
        if (kind == _CONTINUATION) != (self._fragments is not None):
            raise self._closing(_PROTOCOL_ERROR, "The fragments of a message are out of order")
        if first & _FIN and self._fragments is None:
            self.data = payload
        else:
            self._fragments = self._fragments or []
            self._fragments.append(payload)
            self._fragments_size += len(payload)
            if len(self._fragments) > MAX_FRAGMENTS:
                raise self._closing(_POLICY, f"A message has more than {MAX_FRAGMENTS} fragments")
            if not first & _FIN:
                return False
            self.data = b"".join(self._fragments)
            self._fragments = None
            self._fragments_size = 0
        self.end = len(self.data)
        return True

    def _control(self, kind: int, first: int, payload: bytes) -> None:
        if len(payload) > _MAX_CONTROL or not first & _FIN:
            raise self._closing(_PROTOCOL_ERROR, "A control frame is too long or in fragments")
        if kind == _PING:
            self.answers.append(self._control_frame(_PONG, payload))
        elif kind == _CLOSE:
            raise self._closing(_NORMAL, "The peer closed the pipe")
        elif kind != _PONG:
            raise self._closing(_PROTOCOL_ERROR, f"There is no control frame of type {kind}")

    def _closing(self, code: int, why: str) -> WireError:
        self.answers.append(self._control_frame(_CLOSE, code.to_bytes(2, "big")))
        return WireError("CLOSED" if code == _NORMAL else "WEBSOCKET", why)

    def _control_frame(self, kind: int, payload: bytes) -> bytes:
        return frame_head(_FIN | kind, len(payload)) + payload


class FrameReader(PacketBuffer):
    """Cuts the stream into the HTTP head and then frames; a client's are masked, a server's are not."""

    __slots__ = ("_mask", "_masked", "first")

    def __init__(self, masked: bool = True) -> None:
        super().__init__()
        self._masked = masked
        self.first = 0  # the first byte of the current frame
        self._mask = b""

    def head(self) -> bytes | None:
        """The HTTP request, when it is complete."""
        data = self.data
        end = data.find(_BLANK_LINE, 0, MAX_HEAD)
        if end < 0:
            if len(data) >= MAX_HEAD:
                raise WireError("HTTP", f"a request may have {MAX_HEAD} bytes")
            if data:
                if foreign := foreign_protocol.hint(data):
                    raise WireError("HTTP", f"a connection begins with an HTTP request{foreign}")
                self._keep(data, 0, len(data) + 1)
            return None
        self._position = end + len(_BLANK_LINE)
        return data[:end]

    def next(self, room: int) -> bool:
        """Whether there is another frame, which may have at most `room` bytes."""
        data = self.data
        position = self._position
        have = len(data) - position
        if not have:
            self.data = b""
            self._position = 0
            return False
        if have < 2:
            return self._need_more(position, 2)
        first, second = data[position], data[position + 1]
        if first & _RESERVED or bool(second & _MASKED) != self._masked:
            raise WireError("WEBSOCKET", "A frame has reserved bits, or is not masked as a client's must be")
        length = second & 0x7F
        mask_at = position + 2
        if length > _MAX_CONTROL:
            width = 2 if length == 126 else 8
            mask_at += width
            if have < 2 + width:
                return self._need_more(position, 2 + width)
            length = int.from_bytes(data[position + 2 : mask_at], "big")
        if length > room:
            raise WireError("MESSAGE_TOO_LONG", f"A frame of {length} bytes was announced, there is room for {room}")
        start = mask_at + _MASK_SIZE if self._masked else mask_at
        end = start + length
        if end > len(data):
            return self._need_more(position, end - position)
        self.first = first
        self._mask = data[mask_at:start]
        self.start = start
        self.end = self._position = end
        return True

    def payload(self) -> bytes:
        """The current frame's, unmasked."""
        payload = self.data[self.start : self.end]
        return exclusive_or(payload, self._mask) if self._masked else payload

    def _need_more(self, position: int, need: int) -> bool:
        self._keep(self.data, position, need)
        return False


def accept(head: bytes, path: str, admit: Admit | None = None) -> bytes:
    """The response that accepts a WebSocket request for this path; a WireError if it is not one."""
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or words[0] != "GET" or words[2] != "HTTP/1.1":
        raise WireError("HTTP", "not a WebSocket request: it has to be a GET of HTTP/1.1")
    fields = _fields(lines)
    if admit is not None:
        admit(fields.get("host", ""), fields.get("origin"))
    if words[1].partition("?")[0] != path:
        raise WireError("NOT_FOUND", f"a WebSocket was asked for at {words[1]!r}, it is at {path!r}")
    if fields.get("upgrade", "").lower() != "websocket" or "upgrade" not in fields.get("connection", "").lower():
        raise WireError("HTTP", "not a WebSocket request: it asks for no upgrade")
    if fields.get("sec-websocket-version") != "13":
        raise WireError("VERSION", "a WebSocket of another version than 13 was asked for")
    subprotocols = [word.strip() for word in fields.get("sec-websocket-protocol", "").split(",")]
    if SUBPROTOCOL not in subprotocols:
        raise WireError("HTTP", f"the subprotocol must be {SUBPROTOCOL}, not {', '.join(subprotocols)!r}")
    return _response(fields.get("sec-websocket-key", ""))


def _fields(lines: list[str]) -> dict[str, str]:
    """The header fields, by their names in lower case; the ones that access depends on must not be repeated."""
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        name = name.strip().lower()
        if name in _ONCE and name in fields:
            raise WireError("HTTP", f"a request has two fields {name}")
        fields[name] = value.strip()
    return fields


def token(key: str) -> str:
    """The server's answer to a client's key."""
    return base64.b64encode(hashlib.sha1(key.encode() + _GUID).digest()).decode()


def _response(key: str) -> bytes:
    try:
        decoded = base64.b64decode(key, validate=True)
    except (binascii.Error, ValueError):
        decoded = b""
    if len(decoded) != _KEY_SIZE:
        raise WireError("HTTP", "not a WebSocket request: its key is not 16 bytes in base 64")
    return (
        "HTTP/1.1 101 Switching Protocols\r\n"
        "Upgrade: websocket\r\n"
        "Connection: Upgrade\r\n"
        f"Sec-WebSocket-Accept: {token(key)}\r\n"
        f"Sec-WebSocket-Protocol: {SUBPROTOCOL}\r\n\r\n"
    ).encode()


_REFUSALS: Final = {
    "FORBIDDEN": "403 Forbidden\r\n",
    "MISDIRECTED": "421 Misdirected Request\r\n",
    "NOT_FOUND": "404 Not Found\r\n",
    "VERSION": "426 Upgrade Required\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
}


def _refusal(code: str) -> bytes:
    status = _REFUSALS.get(code, "400 Bad Request\r\n")
    return f"HTTP/1.1 {status}Content-Length: 0\r\n\r\n".encode()


def exclusive_or(data: bytes, mask: bytes) -> bytes:
    """Mask or unmask."""
    if mask == bytes(_MASK_SIZE):
        return data
    if len(data) <= _UNMASK_AT_ONCE:
        return _exclusive_or(data, mask)
    places = range(0, len(data), _UNMASK_AT_ONCE)
    return b"".join(_exclusive_or(data[at : at + _UNMASK_AT_ONCE], mask) for at in places)


def _exclusive_or(part: bytes, mask: bytes) -> bytes:
    """A part that begins at a multiple of four: one large number, since Python has no faster exclusive or."""
    size = len(part)
    row = (mask * (size // _MASK_SIZE + 1))[:size]
    return (int.from_bytes(part, "big") ^ int.from_bytes(row, "big")).to_bytes(size, "big")


def frame_head(first: int, size: int) -> bytes:
    """The head of a frame that is not masked, as a server's are."""
    if size <= _MAX_CONTROL:
        return bytes((first, size))
    if size < 1 << 16:
        return struct.pack(">BBH", first, 126, size)
    return struct.pack(">BBQ", first, 127, size)
