"""The scalability protocols' wire, as a REP server speaks it: NNG's requests and replies, without NNG.

A pipe (one connection) carries messages. Over TCP and over socket files both sides first send a greeting that
names their protocol; then each message has its length before it, over socket files with a byte 1 before that.
Over WebSocket (`websocket.py`) neither is needed.

A message to a REP server is a backtrace and a body. The backtrace is a row of big-endian words, of which only
the last has its highest bit set: devices on the way put theirs in front, and the last is the request's own id. The
reply carries the same backtrace, which leads it back to the sender.

>>> pipe = StreamPipe(TCP)
>>> pipe.feed(greeting(REQ) + bytes.fromhex("0000000000000009 87fc1697") + b"hello")
>>> pipe.next(), pipe.data[pipe.start:pipe.end]
(True, b'\\x87\\xfc\\x16\\x97hello')
>>> pipe.next()
False
>>> pipe.framed(b"\\x87\\xfc\\x16\\x97", b"hello")[0].hex()
'000000000000000987fc169768656c6c6f'
"""

import struct
from typing import Final, Protocol

from mypy_extensions import i64

from geartrain.errors import WireError
from geartrain.wire import foreign_protocol
from geartrain.wire.number_bytes import four_bytes
from geartrain.wire.packet_buffer import PacketBuffer

REQ: Final = 0x30
REP: Final = 0x31

# Precedes the length of each message.
TCP: Final = b""
IPC: Final = b"\x01"

MAX_MESSAGE: Final = 64 * 1024 * 1024
MAX_HOPS: Final = 8  # words in a backtrace: NNG's default
# A payload up to this size is copied behind its header; a larger one is handed on as it is.
COPY_UP_TO: Final = 16 * 1024

_GREETING: Final = struct.Struct(">4sHH")
_GREETING_SIZE: Final = 8
_MAGIC: Final = b"\0SP\0"
_LENGTH_SIZE: Final = 8
_WORD: Final = 4
_LAST_WORD: Final = 0x80


def greeting(protocol: int) -> bytes:
    """The first bytes from both sides of a TCP or IPC pipe."""
    return _GREETING.pack(_MAGIC, protocol, 0)


class MessagePipe(Protocol):
    """The codec of one pipe, over any transport. `next` raises a WireError for what the protocol forbids."""

    data: bytes  # the current message lies in it between start and end
    start: int
    end: int
    greeting: bytes  # to be sent before anything is received
    answers: list[bytes]  # to be sent because of what was received; whoever sends them clears the list

    @property
    def split_packets(self) -> int:
        """Tells one incomplete message from the next."""

    @property
    def greeted(self) -> bool:
        """Whether the peer's greeting has arrived."""

    @property
    def incomplete_size(self) -> int:
        """How many bytes of an incomplete message have arrived."""

    def feed(self, data: bytes) -> None:
        """Take what was read; `next` has returned False before."""

    def next(self) -> bool:
        """Whether there is another message."""

    def framed(self, head: bytes, payload: bytes) -> list[bytes]:
        """A message of these two, ready to be written."""


class StreamPipe(PacketBuffer):
    """A pipe over TCP or a socket file: a greeting, then messages with their lengths."""

    __slots__ = ("_header_size", "_prefix", "answers", "greeted", "greeting", "max_message")

    def __init__(self, prefix: bytes, max_message: int = MAX_MESSAGE) -> None:
        super().__init__()
        self.max_message = max_message
        self.greeting = greeting(REP)
        self.greeted = False
        self.answers: list[bytes] = []  # always empty: this transport has none
        self._prefix = prefix
        self._header_size = len(prefix) + _LENGTH_SIZE

    def next(self) -> bool:
        """Whether there is another message; it lies in `data` between `start` and `end`."""
        data = self.data
        position = self._position
        size = len(data)
        if not self.greeted:
            if size < _GREETING_SIZE:
                return self._keep_greeting(data)
            self._greet(data[:_GREETING_SIZE])
            position = self._position = _GREETING_SIZE
        if position == size:
            self.data = b""
            self._position = 0
            return False
        prefix = self._prefix
        if len(prefix) > 0 and data[position] != prefix[0]:
            raise WireError("PROTOCOL", f"A message over a socket file begins with 1, not {data[position]}")
        start = position + self._header_size
        if start > size:
            return self._need_more(position, self._header_size)
        length = _length_at(data, start - _LENGTH_SIZE)
        if length > self.max_message:
            limit = f"a message may have {self.max_message} bytes here"
            raise WireError("MESSAGE_TOO_LONG", f"A message of {length} bytes was announced, {limit}")
        end = start + length
        if end > size:
            return self._need_more(position, self._header_size + length)
        self.start = start
        self.end = self._position = end
        return True

    def framed(self, head: bytes, payload: bytes) -> list[bytes]:
        """A message of these two; a large payload is not copied."""
        if len(payload) <= COPY_UP_TO:
            return [self.packet(head, b"", payload)]
        size = (len(head) + len(payload)).to_bytes(_LENGTH_SIZE, "big")
        return [b"%b%b%b" % (self._prefix, size, head), payload]

    def packet(self, backtrace: bytes, header: bytes, payload: bytes) -> bytes:
        """A message in one piece."""
        size = len(backtrace) + len(header) + len(payload)
        return b"%b\0\0\0\0%b%b%b%b" % (self._prefix, four_bytes(size), backtrace, header, payload)

    def _need_more(self, position: int, need: int) -> bool:
        self._keep(self.data, position, need)
        return False

    def _greet(self, received: bytes) -> None:
        magic, protocol, reserved = _GREETING.unpack(received)
        if magic != _MAGIC or reserved:
            raise _wrong_greeting(received)
        if protocol != REQ:
            raise WireError("PROTOCOL", f"The peer speaks SP protocol {protocol:#x}, and must speak REQ (0x30)")
        self.greeted = True

    def _keep_greeting(self, received: bytes) -> bool:
        """Refuse what cannot become a greeting at once, and keep the beginning of one."""
        if received[: len(_MAGIC)] != _MAGIC[: len(received)]:
            raise _wrong_greeting(received)
        if received:
            self._keep(received, 0, len(received) + 1 if len(received) < len(_MAGIC) else _GREETING_SIZE)
        return False


def _length_at(data: bytes, at: i64) -> int:
    """Eight bytes as a number. Compiled, the usual four zeros and four bytes are a few instructions."""
    if data[at] or data[at + 1] or data[at + 2] or data[at + 3]:
        return int.from_bytes(data[at : at + _LENGTH_SIZE], "big")
    byte: i64 = data[at + 4]
    length = byte << 24
    byte = data[at + 5]
    length |= byte << 16
    byte = data[at + 6]
    length |= byte << 8
    byte = data[at + 7]
    return length | byte


def body(data: bytes, start: i64, end: i64) -> i64:
    """Where the body of a message begins: behind its backtrace.

    As in NNG, a backtrace without an end closes the pipe, and one that is too long only discards the message.
    """
    position = start
    for _ in range(MAX_HOPS):
        if end - position < _WORD:
            raise WireError("PROTOCOL", "A message ends inside its backtrace")
        position += _WORD
        if data[position - _WORD] & _LAST_WORD:
            return position
    raise WireError("TOO_MANY_HOPS", f"A request came over more than {MAX_HOPS} hops", fatal=False)


def _wrong_greeting(received: bytes) -> WireError:
    return WireError(
        "PROTOCOL", f"A pipe begins with an SP greeting, not {received!r}{foreign_protocol.hint(received)}"
    )
