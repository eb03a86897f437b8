"""MemoDB's messages: a header in CBOR, and behind it a payload of any bytes.

A header is an array of the version, the message type, an id and what the type adds to these (the document's
"Message format"). Its length is known only after parsing it. `header_end` does that without making values, bounds the
length and the depth, and refuses types that no header has; then cbor2 decodes exactly these bytes.

>>> message, at = parse(bytes.fromhex("85666d656d6f3031024068616c6976652e7476199c40") + b"payload")
>>> message.kind == JOB, message.service, message.timeout, at
(True, b'alive.tv', 40000, 22)
>>> heartbeat(b"\\xc3\\xa1\\xb2\\xd4").hex()
'83666d656d6f30310444c3a1b2d4'
"""

import functools
from collections.abc import Callable
from typing import Any, Final

import cbor2

from geartrain.errors import WireError

VERSION: Final = "memo01"
READY: Final = 1
JOB: Final = 2
RESULT: Final = 3
HEARTBEAT: Final = 4
DISCONNECT: Final = 5

MAX_HEADER: Final = 64 * 1024  # bytes
MAX_DEPTH: Final = 2  # arrays in arrays: READY's list in the header
SHORTEST: Final = 0.001  # seconds: a job must be assigned before its time is over
# Milliseconds; still exact as a float in seconds.
_LONGEST: Final = 2**50
# What the original's decoder could hold.
_LEAST: Final = -(2**63)
# Headers that are repeated are short; only those are cached.
_CACHED: Final = 4096
_CACHE_UP_TO: Final = 128

_INT, _NEGATIVE, _BYTES, _TEXT, _ARRAY, _MAP, _TAG, _SIMPLE = range(8)
_INDEFINITE: Final = 31
_BREAK: Final = 0xFF
_ENDLESS: Final = -1
# How many bytes follow the first one of an item, by its lowest five bits.
_ARGUMENT_SIZES: Final = {24: 1, 25: 2, 26: 4, 27: 8}

# Bytes of a worker's id. Random ids of this size cannot be guessed, and no worker of the last run of the server is
# taken for one of this run.
ID_SIZE: Final = 16
# How the headers of most JOBs of clients and RESULTs of workers begin.
_COMMON_JOB: Final = b"\x85\x66memo01\x02\x40"
_COMMON_RESULT: Final = b"\x83\x66memo01\x03" + bytes([0x40 | ID_SIZE])


class Message:
    """A valid header. Fields that its type does not have are empty. It is shared, and must not be changed."""

    __slots__ = ("disconnecting", "id", "kind", "seconds", "service", "services", "timeout")

    def __init__(
        self,
        kind: int,
        id: bytes,
        services: tuple[bytes, ...] = (),
        service: bytes = b"",
        timeout: int = 0,
        disconnecting: bool = False,
    ) -> None:
        self.kind = kind
        self.id = id
        self.services = services  # of READY
        self.service = service  # of JOB
        self.timeout = timeout  # of JOB, in milliseconds
        self.seconds = seconds(timeout)
        self.disconnecting = disconnecting  # of RESULT

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        return f"Message{self._fields()}"

    def _fields(self) -> tuple[int, bytes, tuple[bytes, ...], bytes, int, bool]:
        return self.kind, self.id, self.services, self.service, self.timeout, self.disconnecting


def parse(data: bytes, start: int = 0, end: int = -1) -> tuple[Message, int]:
    """The header of a message to a broker, and where its payload begins; a WireError if it is invalid."""
    end = len(data) if end < 0 else end
    at = _common_header_end(data, start, end) or header_end(data, start, end)
    header = data[start:at]
    message = _known.get(header)
    if message is None:
        message = _decoded(header)
        if len(header) <= _CACHE_UP_TO:
            if len(_known) >= _CACHED:
                _known.clear()
            _known[header] = message
    if at < end and message.kind in (READY, HEARTBEAT):
        raise _invalid("a message of this type has no payload")
    return message, at


def _common_header_end(data: bytes, start: int, end: int) -> int:
    """Where a header of the most frequent form ends, found without parsing CBOR; 0 if it has another form."""
    name_at = start + len(_COMMON_JOB)  # both are as long
    beginning = data[start:name_at]
    if beginning == _COMMON_RESULT:
        at = name_at + ID_SIZE
        return at if at <= end else 0
    if beginning != _COMMON_JOB or name_at >= end or data[name_at] >> 5 != _TEXT or data[name_at] & 0x1F > 23:
        return 0
    timeout_at = name_at + 1 + (data[name_at] & 0x1F)
    if timeout_at >= end or data[timeout_at] > 0x1B:
        return 0
    at = timeout_at + 1 + _ARGUMENT_SIZES.get(data[timeout_at], 0)
    return at if at <= end else 0


def seconds(timeout: int) -> float:
    """A JOB's timeout in seconds. 0 or less is the shortest, as in the original broker."""
    return max(min(timeout, _LONGEST) / 1000, SHORTEST)


def header_end(data: bytes, start: int, end: int) -> int:
    """Where the item that begins at `start` ends: it is an array, and neither too long nor too deep."""
    if start == end or data[start] >> 5 != _ARRAY:
        raise _invalid("a message begins with an array")
    limit = min(end, start + MAX_HEADER)
    left = [1]  # items that have yet to come, for each array that is open; the outermost is the header itself
    position = start
    while left:
        if not left[-1]:
            left.pop()
            continue
        if position >= limit:
            break
        if data[position] == _BREAK and left[-1] < 0:
            left[-1] = 0
            position += 1
            continue
        left[-1] -= left[-1] > 0
        kind, argument, position = _item(data, position, limit)
        if kind == _ARRAY:
            if len(left) > MAX_DEPTH:
                raise _invalid("the header is nested too deeply")
            left.append(argument)
        elif kind in (_BYTES, _TEXT):
            position = position + argument if argument >= 0 else _chunks_end(kind, data, position, limit)
        elif kind in (_MAP, _TAG):
            raise _invalid("a header has neither maps nor tags")
    if left or position > limit:
        raise _invalid("the header is cut off" if limit == end else f"the header exceeds {MAX_HEADER} bytes")
    return position


def _item(data: bytes, position: int, limit: int) -> tuple[int, int, int]:
    """An item's major type, its argument (ENDLESS if it has no definite length) and what comes behind these."""
    first = data[position]
    kind, low = first >> 5, first & 0x1F
    position += 1
    if low < 24:
        return kind, low, position
    size = _ARGUMENT_SIZES.get(low, 0)
    if size and position + size <= limit:
        return kind, int.from_bytes(data[position : position + size], "big"), position + size
    if low == _INDEFINITE and kind in (_BYTES, _TEXT, _ARRAY, _MAP):
        return kind, _ENDLESS, position
    raise _invalid("it is not well-formed CBOR")


def _chunks_end(kind: int, data: bytes, position: int, limit: int) -> int:
    """Where a string without a definite length ends: its parts are strings of the same type."""
    while position < limit:
        if data[position] == _BREAK:
            return position + 1
        part, size, position = _item(data, position, limit)
        if part != kind or size < 0:
            break
        position += size
    raise _invalid("it is not well-formed CBOR")


def _decoded(header: bytes) -> Message:
    """Decode a header."""
    try:
        items: list[Any] = cbor2.loads(header)
    except (cbor2.CBORDecodeError, ValueError) as error:
        raise _invalid(f"it is not valid CBOR: {error}") from None
    if len(items) < 3 or items[0] != VERSION or not isinstance(items[0], str):
        raise _invalid(f"the header is not that of {VERSION}")
    kind, id = items[1], items[2]
    if not _is_integer(kind) or not isinstance(id, bytes):
        raise _invalid("the header's type is not a number, or its id not a byte string")
    read = _READERS.get(kind)
    if read is None:
        raise _invalid(f"a broker understands no message of type {kind}")
    return read(id, items)


_known: Final[dict[bytes, Message]] = {}  # by header; both sides repeat theirs


def _ready(id: bytes, items: list[Any]) -> Message:
    _check(len(items) == 4 and not id, "READY has a list of services and no id")
    names = items[3]
    _check(isinstance(names, list) and all(isinstance(name, str) for name in names), "services are a list of texts")
    _check("" not in names and len(set(names)) == len(names), "each service has a name, and is named once")
    return Message(READY, id, services=tuple(name.encode() for name in names))


def _job(id: bytes, items: list[Any]) -> Message:
    _check(len(items) == 5 and not id, "JOB has a service and a timeout, and no id")
    service, timeout = items[3:]
    _check(isinstance(service, str), "a service is a text")
    _check(_is_integer(timeout) and timeout >= _LEAST, "a timeout is a number of milliseconds")
    return Message(JOB, id, service=service.encode(), timeout=timeout)


def _result(id: bytes, items: list[Any]) -> Message:
    _check(len(items) <= 4 and bool(id), "RESULT has an id and perhaps a flag")
    _check(all(isinstance(item, bool) for item in items[3:]), "RESULT's flag is true or false")
    return Message(RESULT, id, disconnecting=True in items[3:])


def _heartbeat(id: bytes, items: list[Any]) -> Message:
    _check(len(items) == 3 and bool(id), "HEARTBEAT has an id and no more")
    return Message(HEARTBEAT, id)


_READERS: Final[dict[int, Callable[[bytes, list[Any]], Message]]] = {
    READY: _ready,
    JOB: _job,
    RESULT: _result,
    HEARTBEAT: _heartbeat,
}


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check(fine: bool, rule: str) -> None:
    if not fine:
        raise _invalid(rule)


def _invalid(why: str) -> WireError:
    """An error that does not close the pipe: the next message may be valid."""
    return WireError("INVALID", why, fatal=False)


# Messages from a broker. The encoding is deterministic: the shortest heads, definite lengths.

RESULT_TO_CLIENT: Final = cbor2.dumps([VERSION, RESULT, b""], canonical=True)


@functools.lru_cache(_CACHED)
def _job_tail(service: bytes, timeout: int) -> bytes:
    return cbor2.dumps(service.decode(), canonical=True) + cbor2.dumps(timeout, canonical=True)


def job(id: bytes, service: bytes, timeout: int) -> bytes:
    """JOB, to a worker; `service` is UTF-8, and the id short."""
    return _JOB_HEAD + bytes([0x40 | len(id)]) + id + _job_tail(service, timeout)


def heartbeat(id: bytes) -> bytes:
    """HEARTBEAT, to a worker."""
    return cbor2.dumps([VERSION, HEARTBEAT, id], canonical=True)


def disconnect(id: bytes) -> bytes:
    """DISCONNECT, to a worker that the broker does not know or has removed."""
    return cbor2.dumps([VERSION, DISCONNECT, id], canonical=True)


# An array of five, the version and the type; `job` adds the other three.
_JOB_HEAD: Final = b"\x85" + cbor2.dumps(VERSION) + bytes([JOB])
