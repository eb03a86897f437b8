"""The Gearman wire: binary packets, and the lines of the admin protocol on the same stream.

A packet is a header of three big-endian words (magic, type, size of the body) and a body of arguments separated
by NUL bytes. A first byte other than NUL starts a line of text. See the document's "Binary Packet" and
"Administrative Protocol".

The reader makes no object per packet: `next` returns the type and leaves the place of the body in `data`, `start` and
`end`, so that a handler slices its fields out of what was read.

>>> reader = Reader()
>>> reader.feed(request(CAN_DO, b"reverse") + b"version\\r\\n")
>>> reader.next() == CAN_DO, reader.data[reader.start:reader.end]
(True, b'reverse')
>>> reader.next() == TEXT, reader.data[reader.start:reader.end]
(True, b'version')
>>> reader.next() == MORE
True
"""

import re
import struct
from typing import Final

from mypy_extensions import i64

from geartrain.errors import LineError, WireError
from geartrain.wire import foreign_protocol
from geartrain.wire.packet_buffer import MORE as MORE
from geartrain.wire.packet_buffer import PacketBuffer

CAN_DO: Final = 1
CANT_DO: Final = 2
RESET_ABILITIES: Final = 3
PRE_SLEEP: Final = 4
NOOP: Final = 6
SUBMIT_JOB: Final = 7
JOB_CREATED: Final = 8
GRAB_JOB: Final = 9
NO_JOB: Final = 10
JOB_ASSIGN: Final = 11
WORK_STATUS: Final = 12
WORK_COMPLETE: Final = 13
WORK_FAIL: Final = 14
GET_STATUS: Final = 15
ECHO_REQ: Final = 16
ECHO_RES: Final = 17
SUBMIT_JOB_BG: Final = 18
ERROR: Final = 19
STATUS_RES: Final = 20
SUBMIT_JOB_HIGH: Final = 21
SET_CLIENT_ID: Final = 22
CAN_DO_TIMEOUT: Final = 23
ALL_YOURS: Final = 24
WORK_EXCEPTION: Final = 25
OPTION_REQ: Final = 26
OPTION_RES: Final = 27
WORK_DATA: Final = 28
WORK_WARNING: Final = 29
GRAB_JOB_UNIQ: Final = 30
JOB_ASSIGN_UNIQ: Final = 31
SUBMIT_JOB_HIGH_BG: Final = 32
SUBMIT_JOB_LOW: Final = 33
SUBMIT_JOB_LOW_BG: Final = 34
SUBMIT_JOB_SCHED: Final = 35
SUBMIT_JOB_EPOCH: Final = 36
SUBMIT_REDUCE_JOB: Final = 37
SUBMIT_REDUCE_JOB_BG: Final = 38
GRAB_JOB_ALL: Final = 39
JOB_ASSIGN_ALL: Final = 40
GET_STATUS_UNIQUE: Final = 41
STATUS_RES_UNIQUE: Final = 42

LAST_TYPE: Final = 42
TEXT: Final = 0  # what `next` returns for a line

# How many fields a body is cut into. The last one takes the rest of the body, NUL bytes included.
FIELDS: Final[dict[int, int]] = {
    WORK_STATUS: 3, WORK_COMPLETE: 2, WORK_DATA: 2, WORK_WARNING: 2, WORK_EXCEPTION: 2,
    CAN_DO_TIMEOUT: 2, SUBMIT_JOB: 3, SUBMIT_JOB_BG: 3, SUBMIT_JOB_HIGH: 3, SUBMIT_JOB_HIGH_BG: 3,
    SUBMIT_JOB_LOW: 3, SUBMIT_JOB_LOW_BG: 3, SUBMIT_JOB_SCHED: 8, SUBMIT_JOB_EPOCH: 4,
    SUBMIT_REDUCE_JOB: 5, SUBMIT_REDUCE_JOB_BG: 5, JOB_ASSIGN: 3, JOB_ASSIGN_UNIQ: 4, JOB_ASSIGN_ALL: 5,
    STATUS_RES: 5, STATUS_RES_UNIQUE: 6, ERROR: 2,
}  # fmt: skip

# Options of OPTION_REQ that only a Geartrain server knows; others answer UNKNOWN_OPTION.
GEARTRAIN: Final = b"geartrain"  # "are you one?"
# "I am a worker that understands WORK_FAIL for a job that it runs, and sends ECHO_REQ while it runs jobs." The answer
# has a second field, the seconds that it may be silent while it has jobs; 0: for ever.
GEARTRAIN_WORKER: Final = b"geartrain-worker"
# To such a worker, in an OPTION_RES: the number of the attempt that the next JOB_ASSIGN begins, if it is not the first.
GEARTRAIN_ATTEMPT: Final = b"geartrain-attempt"

MAX_PACKET: Final = 64 * 1024 * 1024
MAX_LINE: Final = 8192  # gearmand's receive buffer
MAX_HANDLE: Final = 63  # 64 with the NUL that ends it
MAX_UNIQUE: Final = 64
MAX_CLIENT_ID: Final = 127

_NUMBER: Final = re.compile(rb"[ \t\n\v\f\r]*([+-]?)0*([0-9]{1,20}|(?<=0))")
_HEADER: Final = struct.Struct(">III")
_HEADER_SIZE: Final = 12
_NEAR: Final = 64
_REQ: Final = 0x00524551
_RES: Final = 0x00524553
# The first eight bytes of a response of each type; the size of its body follows.
_BEGINNINGS: Final = [b"\0RES" + kind.to_bytes(4, "big") for kind in range(LAST_TYPE + 1)]
_PRECOMPUTED: Final = 1024
_LENGTHS: Final = [size.to_bytes(4, "big") for size in range(_PRECOMPUTED)]


class Reader(PacketBuffer):
    """Cuts a stream into packets and lines, however it arrives."""

    __slots__ = ("max_packet",)

    def __init__(self, max_packet: int = MAX_PACKET) -> None:
        super().__init__()
        self.max_packet: i64 = max_packet

    @property
    def in_line(self) -> bool:
        """Whether a line of text is incomplete, and not a packet."""
        return self.first_byte not in (b"", b"\0")

    def next(self) -> int:
        """The type of the next packet, TEXT for a line, or MORE."""
        data = self.data
        position = self._position
        size: i64 = len(data)
        if position + _HEADER_SIZE > size or data[position]:
            return self._other_input(data, position)
        # Byte by byte: compiled, these are a few instructions, while unpacking makes a tuple and three numbers.
        kind: i64 = data[position + 7]
        byte: i64 = data[position + 8]
        length = byte << 24
        byte = data[position + 9]
        length |= byte << 16
        byte = data[position + 10]
        length |= byte << 8
        byte = data[position + 11]
        length |= byte
        if (
            data[position + 1] != 0x52
            or data[position + 2] != 0x45
            or data[position + 3] != 0x51
            or data[position + 4]
            or data[position + 5]
            or data[position + 6]
            or kind > LAST_TYPE
            or not kind
            or length > self.max_packet
        ):
            return self._invalid_header(data, position)
        start = position + _HEADER_SIZE
        end = start + length
        if end > size:
            return self._keep(data, position, _HEADER_SIZE + length)
        self.start = start
        self.end = self._position = end
        return kind

    def _other_input(self, data: bytes, position: int) -> int:
        """The end of the data, a line, or less than a header."""
        if position == len(data):
            self.data = b""
            self._position = 0
            return MORE
        return self._line(data, position) if data[position] else self._keep_header(data, position)

    def _invalid_header(self, data: bytes, position: int) -> int:
        """A header that a server cannot receive. A response is skipped with an error, any other is fatal."""
        magic, kind, length = _HEADER.unpack_from(data, position)
        self._check_header(magic, kind, length)
        end = position + _HEADER_SIZE + length
        if end > len(data):
            return self._keep(data, position, _HEADER_SIZE + length)
        self._position = end
        raise WireError("INVALID_MAGIC", "Request magic expected", fatal=False)

    def _check_header(self, magic: int, kind: int, length: int) -> None:
        """Raise the error of an invalid header; return if it is a well-formed response."""
        if magic not in (_REQ, _RES):
            raise WireError("INVALID_MAGIC", "A packet starts with NUL and REQ")
        if not 0 < kind <= LAST_TYPE:
            raise WireError("INVALID_COMMAND", f"There is no packet type {kind}")
        if length > self.max_packet:
            limit = f"a packet may have {self.max_packet} bytes here"
            raise WireError("ARGUMENT_TOO_LARGE", f"A packet of {length} bytes was announced, {limit}")

    def _line(self, data: bytes, position: int) -> int:
        end = data.find(b"\n", position, position + MAX_LINE)
        if end < 0:
            if len(data) - position >= MAX_LINE:
                raise LineError("LINE_TOO_LONG", f"A line may have {MAX_LINE} bytes")
            return self._keep(data, position, len(data) - position + 1)
        foreign = foreign_protocol.name(data[position:end])
        if foreign:
            raise LineError("WRONG_PROTOCOL", f"This port does not speak {foreign}")
        self.start = position
        self._position = end + 1
        self.end = end - 1 if end > position and data[end - 1] == 0x0D else end
        return TEXT

    def _keep_header(self, data: bytes, position: int) -> int:
        begun = data[position : position + 4]
        if not (b"\0REQ".startswith(begun) or b"\0RES".startswith(begun)):
            raise WireError("INVALID_MAGIC", "A packet starts with NUL and REQ")
        return self._keep(data, position, _HEADER_SIZE if len(begun) == 4 else len(begun) + 1)


def fields(kind: int, data: bytes, start: int, end: int) -> list[bytes]:
    """A body's fields, as many as its type has; a WireError if it has fewer."""
    count = FIELDS[kind]
    found = data[start:end].split(b"\0", count - 1)
    if len(found) < count:
        raise too_few_fields(kind)
    return found


def too_few_fields(kind: int) -> WireError:
    """The error for a body that lacks NUL bytes."""
    text = f"A packet of type {kind} has {FIELDS[kind]} fields separated by NUL"
    return WireError("INVALID_PACKET", text, fatal=False)


def number(text: bytes) -> int:
    """A decimal number as C's atoi reads it: leading blanks and a sign, then digits; anything else is 0.

    Only the first 20 digits are read: more are beyond every limit, and converting them would take long.
    """
    found = _NUMBER.match(text)
    return int(found[1] + found[2]) if found is not None and found[2] else 0


def only_argument(data: bytes, start: int, end: int) -> bytes:
    """The argument of a packet that has just one; as in gearmand, a NUL after it is ignored."""
    return data[start:end].removesuffix(b"\0")


def request(kind: int, *arguments: bytes) -> bytes:
    """A packet to a server."""
    body = b"\0".join(arguments)
    return _HEADER.pack(_REQ, kind, len(body)) + body


def response(kind: int, body: bytes = b"") -> bytes:
    """A packet from a server with this body."""
    return _HEADER.pack(_RES, kind, len(body)) + body


def about_job(kind: int, handle: bytes, data: bytes) -> bytes:
    """A packet from a server whose body is a handle and data."""
    size = len(handle) + 1 + len(data)
    return b"%b%b%b\0%b" % (_BEGINNINGS[kind], _length(size), handle, data)


def assignment(kind: int, handle: bytes, names: bytes, payload: bytes) -> bytes:
    """A packet that assigns a job; `names` are the fields between handle and payload, separated by NUL."""
    size = len(handle) + len(names) + len(payload) + 2
    return b"%b%b%b\0%b\0%b" % (_BEGINNINGS[kind], _length(size), handle, names, payload)


def _length(size: int) -> bytes:
    """The last field of a header."""
    return _LENGTHS[size] if size < _PRECOMPUTED else size.to_bytes(4, "big")


def nul(data: bytes, start: i64, end: i64) -> i64:
    """The position of the next NUL; -1 if there is none. Names are short, so the first bytes are tried one by one."""
    near = start + _NEAR
    if near > end:
        near = end
    while start < near:
        if not data[start]:
            return start
        start += 1
    return data.find(b"\0", start, end)


NOOP_PACKET: Final = response(NOOP)
NO_JOB_PACKET: Final = response(NO_JOB)
# The header of JOB_CREATED by the length of the handle that follows.
CREATED_HEADERS: Final = [_HEADER.pack(_RES, JOB_CREATED, length) for length in range(MAX_HANDLE + 1)]
