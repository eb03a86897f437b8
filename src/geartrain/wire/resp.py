"""RESP, the protocol of Redis, from the server's side: commands come in, replies go out, in version 2 or 3.

A command is an array of bulk strings, or a line of words that somebody typed. It is read argument by argument, and no
argument is parsed twice, so a long command in many pieces costs no more than in one. The limits and the texts of the
errors are those of Redis.

>>> reader = Reader(1024)
>>> reader.feed(request(b"LPUSH", b"queue:reverse:normal", b"1") + b"PING" + CRLF)
>>> reader.next() == COMMAND, reader.arguments
(True, [b'LPUSH', b'queue:reverse:normal', b'1'])
>>> reader.next() == COMMAND, reader.arguments
(True, [b'PING'])
>>> encode({b"status": b"idle"}, 2), encode({b"status": b"idle"}, 3)
(b'*2\\r\\n$6\\r\\nstatus\\r\\n$4\\r\\nidle\\r\\n', b'%1\\r\\n$6\\r\\nstatus\\r\\n$4\\r\\nidle\\r\\n')
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from geartrain.errors import WireError
from geartrain.wire import foreign_protocol
from geartrain.wire.packet_buffer import MORE, PacketBuffer

CRLF: Final = b"\r\n"
COMMAND: Final = 0  # what `next` returns when `arguments` holds a command
_AGAIN: Final = 1

MOST_ARGUMENTS: Final = 1024 * 1024
LONGEST_LINE: Final = 64 * 1024
_LONGEST_NUMBER: Final = 20  # characters: a sign and 19 digits
_STAR: Final = 42
_DOLLAR: Final = 36
_ZERO: Final = 48
_CR: Final = 13
_LF: Final = 10


class SimpleString(NamedTuple):
    """A short text of the server's, such as OK."""

    text: bytes


class ErrorReply(NamedTuple):
    """A code in capitals and a text."""

    code: str
    text: str


class VerbatimText(NamedTuple):
    """A text for people."""

    text: bytes


class NullArray:
    """No array. In version 2 this is not the same as no string, which is None."""


Value = (
    bytes
    | int
    | float
    | None
    | SimpleString
    | ErrorReply
    | VerbatimText
    | NullArray
    | Sequence["Value"]
    | Mapping[bytes, "Value"]
)

OK: Final = SimpleString(b"OK")
_SHORT: Final = 256  # bytes of a string whose head is made already
_SHORT_HEADS: Final = [b"$%d\r\n" % size for size in range(_SHORT)]
NULL_ARRAY: Final = NullArray()


class Reader(PacketBuffer):
    """Cuts commands out of a stream. `next` leaves the words of a command in `arguments`."""

    __slots__ = ("_head_size", "_left", "_max_request", "_size", "arguments", "commands_begun")

    def __init__(self, max_request: int) -> None:
        super().__init__()
        self.arguments: list[bytes] = []
        self.commands_begun = 0  # tells a new command from one that stalls
        self._max_request = max_request  # bytes of all arguments of a command
        self._left = 0  # arguments that are still to come
        self._head_size = 0  # of the line with the number of arguments
        self._size = 0  # of the arguments of the command that is being read

    @property
    def incomplete_command(self) -> int:
        """A number that changes with each command that arrives in parts. The parts of one do not change it."""
        return -self.commands_begun if self._left else self.split_packets

    @property
    def incomplete_command_size(self) -> int:
        """The number of bytes of an incomplete command that have arrived."""
        return (self._head_size + self._size + self.incomplete_size) if self._left else self.incomplete_size

    @property
    def has_more(self) -> bool:
        """Whether there may be another command in what was fed already."""
        return self._position < len(self.data)

    def next(self) -> int:
        """COMMAND, or MORE; a WireError ends the stream."""
        while True:
            result = self._read_arguments() if self._left else self._head()
            if result != _AGAIN:
                return result

    def _head(self) -> int:
        """The number of arguments, or a whole command in a line."""
        data, position = self.data, self._position
        if position >= len(data):
            return self._drained()
        if data[position] == _STAR and position + 3 < len(data):
            digit = data[position + 1] - _ZERO
            if 0 < digit <= 9 and data[position + 2] == _CR and data[position + 3] == _LF:
                self._begin(digit, 4)  # nearly every command has so few arguments
                return _AGAIN
        counted = data[position] == _STAR
        end = data.find(b"\n", position)
        limit = _LONGEST_NUMBER if counted else LONGEST_LINE
        if (end if end >= 0 else len(data)) - position > limit + 2:
            raise _error("too big mbulk count string" if counted else "too big inline request")
        if end < 0:
            return self._keep(data, position, len(data) - position + 1)
        self._position = end + 1
        line = data[position:end].removesuffix(b"\r")
        if not counted:
            foreign = foreign_protocol.name(line)
            if foreign:
                raise _error(f"this port does not speak {foreign}")
            self.arguments = words(line)
            return COMMAND if self.arguments else _AGAIN
        count = _number(line[1:])
        if count is None or count > MOST_ARGUMENTS:
            raise _error("invalid multibulk length")
        if count > 0:
            self._position = position
            self._begin(count, end + 1 - position)
        return _AGAIN

    def _begin(self, count: int, head_size: int) -> None:
        """A command with this number of arguments begins."""
        self.arguments = []
        self.commands_begun += 1
        self._left = count
        self._head_size = head_size
        self._size = 0
        self._position += head_size

    def _read_arguments(self) -> int:
        """The arguments that are left of a command."""
        data, arguments, most = self.data, self.arguments, self._max_request
        length, position, left, total = len(data), self._position, self._left, self._size
        # Nearly every argument is shorter than 100 bytes, and is whole. Anything else is left to `_argument`.
        while left and position + 4 < length and data[position] == _DOLLAR:
            size = data[position + 1] - _ZERO
            if not 0 <= size <= 9:
                break
            start = position + 4
            if data[position + 2] != _CR:
                digit = data[position + 2] - _ZERO
                if not (0 <= digit <= 9 and data[position + 3] == _CR):
                    break
                size = 10 * size + digit
                start = position + 5
            end = start + size
            if data[start - 1] != _LF or end + 2 > length or total + size > most:
                break
            arguments.append(data[start:end])
            total += end - position
            position = end + 2
            left -= 1
        self._position, self._left, self._size = position, left, total
        return self._argument() if left else COMMAND

    def _argument(self) -> int:
        """The next argument of a command whose number of arguments is known."""
        data, position = self.data, self._position
        if position >= len(data):
            return self._drained()
        if data[position] != _DOLLAR:
            raise _error(f"expected '$', got '{_shown(data[position])}'")
        end = data.find(b"\r\n", position, position + _LONGEST_NUMBER + 3)
        if end < 0:
            if len(data) - position > _LONGEST_NUMBER + 2:
                raise _error("invalid bulk length")
            return self._keep(data, position, len(data) - position + 1)
        size = _number(data[position + 1 : end])
        if size is None or size < 0 or size > self._max_request:
            raise _error("invalid bulk length")
        if self._size + size > self._max_request:
            raise _error(f"a command has at most {self._max_request} bytes")
        start = end + 2
        if len(data) < start + size + 2:
            return self._keep(data, position, start + size + 2 - position)
        self.arguments.append(data[start : start + size])
        self._size += start - position + size
        self._position = start + size + 2
        self._left -= 1
        return _AGAIN if self._left else COMMAND

    def _drained(self) -> int:
        self.data = b""
        self._position = 0
        return MORE


def words(line: bytes) -> list[bytes]:
    """The words of a line that somebody typed, with the quotes and escapes of Redis.

    >>> words(rb'SET greeting "hello\\x20world\\n"')
    [b'SET', b'greeting', b'hello world\\n']
    """
    found: list[bytes] = []
    at = 0
    while True:
        while at < len(line) and line[at : at + 1].isspace():
            at += 1
        if at >= len(line):
            return found
        word, at = _word(line, at)
        found.append(word)


_ESCAPES: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"a": b"\a"}


def _word(line: bytes, at: int) -> tuple[bytes, int]:
    """One word, and the position after it."""
    parts: list[bytes] = []
    while at < len(line) and not line[at : at + 1].isspace():
        mark = line[at : at + 1]
        if mark in (b'"', b"'"):
            part, at = _quoted(line, at + 1, mark)
            parts.append(part)
            if at < len(line) and not line[at : at + 1].isspace():
                raise _error("unbalanced quotes in request")
        else:
            parts.append(mark)
            at += 1
    return b"".join(parts), at


def _quoted(line: bytes, at: int, mark: bytes) -> tuple[bytes, int]:
    """The text up to the closing quote, and the position after it."""
    parts: list[bytes] = []
    while at < len(line):
        here = line[at : at + 1]
        if here == mark:
            return b"".join(parts), at + 1
        if here == b"\\" and at + 1 < len(line):
            part, at = _escaped(line, at + 1, mark)
            parts.append(part)
        else:
            parts.append(here)
            at += 1
    raise _error("unbalanced quotes in request")


def _escaped(line: bytes, at: int, mark: bytes) -> tuple[bytes, int]:
    """The meaning of an escape, and the position after it; in single quotes only the quote can be escaped."""
    here = line[at : at + 1]
    if mark == b"'":
        return (here, at + 1) if here == mark else (b"\\", at)
    digits = line[at + 1 : at + 3]
    if here == b"x" and len(digits) == 2 and all(digit in b"0123456789abcdefABCDEF" for digit in digits):
        return bytes((int(digits, 16),)), at + 3
    return _ESCAPES.get(here, here), at + 1


def request(*arguments: bytes) -> bytes:
    """A command as clients send it."""
    return b"*%d\r\n" % len(arguments) + b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in arguments])


def encode(value: Value, version: int) -> bytes:
    """A reply in RESP 2 or 3."""
    if isinstance(value, bytes):
        size = len(value)
        if size < _SHORT:
            return _SHORT_HEADS[size] + value + CRLF
        return b"$%d\r\n%b\r\n" % (size, value)
    if isinstance(value, int):
        return b":%d\r\n" % value
    if value is OK:
        return b"+OK\r\n"
    if isinstance(value, SimpleString):
        return b"+%b\r\n" % value.text
    if value is None:
        return b"$-1\r\n" if version == 2 else b"_\r\n"
    if isinstance(value, list):
        return b"*%d\r\n" % len(value) + b"".join([encode(part, version) for part in value])
    if isinstance(value, dict):
        return _encode_pairs(value, version)
    return _encode_other(value, version)


def _encode_pairs(pairs: dict[bytes, Value], version: int) -> bytes:
    parts = [b"*%d\r\n" % (2 * len(pairs)) if version == 2 else b"%%%d\r\n" % len(pairs)]
    for name, value in pairs.items():
        parts.append(encode(name, version))
        parts.append(encode(value, version))
    return b"".join(parts)


def _encode_other(
    value: float | ErrorReply | VerbatimText | NullArray | Sequence[Value] | Mapping[bytes, Value], version: int
) -> bytes:
    if isinstance(value, float):
        digits = b"%.17g" % value
        return b"$%d\r\n%b\r\n" % (len(digits), digits) if version == 2 else b",%b\r\n" % digits
    if isinstance(value, ErrorReply):
        return error_reply(value.code, value.text)
    if isinstance(value, VerbatimText):
        text = value.text if version == 2 else b"txt:" + value.text
        return b"%c%d\r\n%b\r\n" % (b"$" if version == 2 else b"=", len(text), text)
    if isinstance(value, NullArray):
        return b"*-1\r\n" if version == 2 else b"_\r\n"
    if isinstance(value, Mapping):
        return _encode_pairs(dict(value), version)
    return b"*%d\r\n" % len(value) + b"".join([encode(part, version) for part in value])


def push(values: Sequence[Value], version: int) -> bytes:
    """A message to a subscriber; version 3 distinguishes it from a reply."""
    head = b"*%d\r\n" if version == 2 else b">%d\r\n"
    return head % len(values) + b"".join([encode(part, version) for part in values])


def error_reply(code: str, text: str) -> bytes:
    """An error reply on one line; line ends in the text become spaces."""
    line = f"{code} {text}".replace("\r", " ").replace("\n", " ")
    return b"-%b\r\n" % line.encode("utf-8", "backslashreplace")


def number(text: bytes) -> int | None:
    """A 64-bit integer in Redis' strict form, or None: no spaces, no plus, no leading zeros."""
    found = _number(text)
    if found is None or b"%d" % found != text or not -(2**63) <= found < 2**63:
        return None
    return found


def _number(text: bytes) -> int | None:
    digits = text.removeprefix(b"-")
    return int(text) if digits.isdigit() and len(text) <= _LONGEST_NUMBER else None


def _shown(byte: int) -> str:
    return chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}"


def _error(text: str) -> WireError:
    return WireError("ERR", f"Protocol error: {text}")
