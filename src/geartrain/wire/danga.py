r"""The wire of Danga's draft of 2005: a header of nine bytes and a body, in both directions.

The header is four bytes of magic, one for the type and four for the size of the body. The draft leaves the magic
and the byte order open; here they are those of the protocol that came after it: `\0REQ` to a server, `\0RES` from
it, big-endian. That protocol's fifth byte is always 0, and the only draft packet with that type is never sent to
a server, so five bytes distinguish the two protocols.

The draft has no packet for errors: every WireError is fatal.

>>> reader = Reader()
>>> reader.feed(worker_connect([b"resize", b"mail"]) + job_assign_req())
>>> reader.next() == WORKER_CONNECT, job_names(reader.body)
(True, [b'resize', b'mail'])
>>> reader.next() == JOB_ASSIGN_REQ, reader.next() == MORE
(True, True)
"""

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from mypy_extensions import i64

from geartrain.errors import WireError
from geartrain.wire import foreign_protocol
from geartrain.wire.gearman import nul
from geartrain.wire.number_bytes import four_bytes
from geartrain.wire.packet_buffer import MORE as MORE
from geartrain.wire.packet_buffer import PacketBuffer

NOOP: Final = 0x00
WORKER_CONNECT: Final = 0x01
WORKER_DISCONNECT: Final = 0x02
WORKER_SLEEP: Final = 0x03
JOB_CREATE_REQ: Final = 0x04
JOB_CREATE_RES: Final = 0x05
JOB_ASSIGN_REQ: Final = 0x06
JOB_ASSIGN_RES: Final = 0x07
JOB_STATUS_ANNOUNCE: Final = 0x08
JOB_STATUS_REQ: Final = 0x09
JOB_STATUS_RES: Final = 0x0A
JOB_COMPLETE_ANNOUNCE: Final = 0x0B
JOB_COMPLETE_REQ: Final = 0x0C
JOB_COMPLETE_RES: Final = 0x0D

# The types of jobs.
SYNC_WAIT: Final = 0
ASYNC_HANDLE: Final = 1
ASYNC_THROW_AWAY: Final = 2
_LAST_JOB_TYPE: Final = ASYNC_THROW_AWAY

# A handle that no job has. A worker that asks for its status announces that it understands a noop while it has a job,
# which means that the job was taken from it, and that it will ask again while it has one. The answer's fraction is for
# how many seconds it may be silent; 0: for ever, or the server is an older one.
HEARTBEAT: Final = b"geartrain-worker"
SUCCESS: Final = 0  # result code
# Of a job whose result a Geartrain server has only in part; the data begins with the text.
RESULT_CUT: Final = 254
RESULT_CUT_TEXT: Final = b"the result was cut"
INCOMPLETE: Final = 0  # the time in job_complete_res of a job that is not finished, or unknown

REQUEST: Final = b"\0REQ"
RESPONSE: Final = b"\0RES"
MAX_PACKET: Final = 64 * 1024 * 1024
UINT32: Final = 0xFFFFFFFF

_HEADER: Final = struct.Struct(">4sBI")
_HEADER_SIZE: Final = 9
_STATUS: Final = struct.Struct(">III")
_COMPLETION: Final = struct.Struct(">IB")
_COMPLETION_SIZE: Final = 5
_ANY: Final = UINT32

# By type: name, magic, and the least and the most bytes of the body.
PACKETS: Final[dict[int, tuple[str, bytes, int, int]]] = {
    NOOP: ("noop", RESPONSE, 0, 0),
    WORKER_CONNECT: ("worker_connect", REQUEST, 0, _ANY),
    WORKER_DISCONNECT: ("worker_disconnect", REQUEST, 0, 0),
    WORKER_SLEEP: ("worker_sleep", REQUEST, 0, 0),
    JOB_CREATE_REQ: ("job_create_req", REQUEST, 5, _ANY),  # a name of one byte, two NULs, flags, type
    JOB_CREATE_RES: ("job_create_res", RESPONSE, 0, _ANY),
    JOB_ASSIGN_REQ: ("job_assign_req", REQUEST, 0, 0),
    JOB_ASSIGN_RES: ("job_assign_res", RESPONSE, 0, _ANY),
    JOB_STATUS_ANNOUNCE: ("job_status_announce", REQUEST, _STATUS.size, _STATUS.size),
    JOB_STATUS_REQ: ("job_status_req", REQUEST, 0, _ANY),
    JOB_STATUS_RES: ("job_status_res", RESPONSE, _STATUS.size, _STATUS.size),
    JOB_COMPLETE_ANNOUNCE: ("job_complete_announce", REQUEST, 1, _ANY),
    JOB_COMPLETE_REQ: ("job_complete_req", REQUEST, 0, _ANY),
    JOB_COMPLETE_RES: ("job_complete_res", RESPONSE, _COMPLETION.size, _ANY),
}


# By type, for types that exist: the last byte of the magic, and the least and the most bytes of the body.
_LAST_BYTES: Final = [PACKETS[kind][1][3] for kind in range(len(PACKETS))]
_LEAST: Final = [PACKETS[kind][2] for kind in range(len(PACKETS))]
_MOST: Final = [PACKETS[kind][3] for kind in range(len(PACKETS))]


# The body of job_create_req: name, duplicate key (empty: none), flags, type and args. A plain tuple: compiled, it costs
# nothing, while making a NamedTuple is Python code.
Creation = tuple[bytes, bytes, int, int, bytes]


class AssignedJob(NamedTuple):
    """The body of job_assign_res with a job."""

    name: bytes
    args: bytes


class JobStatus(NamedTuple):
    """The body of job_status_announce and job_status_res."""

    numerator: int
    denominator: int
    seconds_left: int  # 0: unknown


class Completion(NamedTuple):
    """The body of job_complete_res."""

    seconds: int  # 0: not finished, or unknown
    code: int
    result: bytes


class Reader(PacketBuffer):
    """Cuts a stream into packets, however it arrives. A server expects requests, its peers expect responses."""

    __slots__ = ("_last_byte", "body", "magic", "max_packet")

    def __init__(self, max_packet: int = MAX_PACKET, magic: bytes = REQUEST) -> None:
        super().__init__()
        self.max_packet: i64 = max_packet
        self.magic = magic
        self._last_byte: i64 = magic[3]
        self.body = b""  # of the packet whose type `next` has returned

    def next(self) -> int:
        """The type of the next packet, or MORE."""
        data = self.data
        position = self._position
        size: i64 = len(data)
        if position == size:
            self.data = b""
            self._position = 0
            return MORE
        if size - position < _HEADER_SIZE:
            return self._keep_header(data, position)
        # Byte by byte: compiled, these are a few instructions, while unpacking makes a tuple and three objects.
        last: i64 = data[position + 3]
        kind: i64 = data[position + 4]
        byte: i64 = data[position + 5]
        length = byte << 24
        byte = data[position + 6]
        length |= byte << 16
        byte = data[position + 7]
        length |= byte << 8
        byte = data[position + 8]
        length |= byte
        if (
            data[position]
            or data[position + 1] != 0x52
            or data[position + 2] != 0x45
            or last != self._last_byte
            or kind >= len(_LAST_BYTES)
            or _LAST_BYTES[kind] != last
            or length < _LEAST[kind]
            or length > _MOST[kind]
            or length > self.max_packet
        ):
            self._refuse(data, position)
        start = position + _HEADER_SIZE
        end = start + length
        if end > size:
            return self._keep(data, position, _HEADER_SIZE + length)
        self.body = data[start:end]
        self._position = end
        return kind

    def _refuse(self, data: bytes, position: int) -> None:
        """Raise the error of a header that cannot be received."""
        magic, kind, length = _HEADER.unpack_from(data, position)
        if magic != self.magic:
            raise self._wrong_magic(magic)
        packet = PACKETS.get(kind)
        if packet is None:
            raise WireError("INVALID_TYPE", f"there is no packet type 0x{kind:02X}")
        name, direction, least, most = packet
        if direction != self.magic:
            whom = "workers and applications" if direction == RESPONSE else "job servers"
            raise WireError("INVALID_TYPE", f"{name} is for {whom}")
        if not least <= length <= most:
            wanted = f"exactly {least}" if least == most else f"at least {least}"
            raise WireError("INVALID_LENGTH", f"{name} has {length} bytes, and needs {wanted}")
        if length > self.max_packet:
            raise WireError(
                "TOO_LARGE", f"{name} announces {length} bytes, and a packet may have {self.max_packet} here"
            )

    def _wrong_magic(self, magic: bytes) -> WireError:
        return WireError(
            "INVALID_MAGIC", f"a packet begins with {self.magic!r}, not {magic!r}{foreign_protocol.hint(magic)}"
        )

    def _keep_header(self, data: bytes, position: int) -> int:
        begun = data[position : position + 4]
        if not self.magic.startswith(begun):
            raise self._wrong_magic(begun)
        return self._keep(data, position, _HEADER_SIZE if len(begun) == 4 else len(begun) + 1)


def job_names(body: bytes) -> list[bytes]:
    """The names in worker_connect; one NUL at the end is ignored."""
    if not body:
        return []
    names = body.removesuffix(b"\0").split(b"\0")
    if b"" in names:
        raise WireError("INVALID_BODY", "worker_connect has an empty job name")
    return names


def creation(body: bytes) -> Creation:
    """The job in job_create_req."""
    size: i64 = len(body)
    first = nul(body, 0, size)
    second = nul(body, first + 1, size)
    if first < 0 or second < 0 or size < second + 3:
        raise WireError(
            "INVALID_BODY", "job_create_req needs a name and a key that each end with NUL, flags and a type"
        )
    if not first:
        raise WireError("INVALID_BODY", "job_create_req has an empty job name")
    type = body[second + 2]
    if type > _LAST_JOB_TYPE:
        raise WireError("INVALID_BODY", f"job_create_req has job type {type}, and there are 0, 1 and 2")
    return body[:first], body[first + 1 : second], body[second + 1], type, body[second + 3 :]


def handle(body: bytes) -> bytes:
    """The handle in job_status_req and job_complete_req; a NUL at the end is ignored."""
    return body.removesuffix(b"\0")


def assignment(body: bytes) -> AssignedJob | None:
    """The job in job_assign_res; None if there was no job."""
    if not body:
        return None
    name, separator, args = body.partition(b"\0")
    if not separator:
        raise WireError("INVALID_BODY", "job_assign_res needs a name that ends with NUL")
    return AssignedJob(name, args)


def status(body: bytes) -> JobStatus:
    """The body of job_status_announce or job_status_res."""
    return JobStatus._make(_STATUS.unpack(body))


def outcome(body: bytes) -> tuple[int, bytes]:
    """The code and the result in job_complete_announce."""
    return body[0], body[1:]


def completion(body: bytes) -> Completion:
    """The body of job_complete_res."""
    seconds, code = _COMPLETION.unpack_from(body)
    return Completion(seconds, code, body[_COMPLETION.size :])


def packet(kind: int, body: bytes = b"") -> bytes:
    """A packet with this body and the magic of its direction."""
    return _HEADER.pack(PACKETS[kind][1], kind, len(body)) + body


def noop() -> bytes:
    """Wake a worker."""
    return packet(NOOP)


def worker_connect(names: Iterable[bytes]) -> bytes:
    """The names of the jobs that a worker can do."""
    return packet(WORKER_CONNECT, b"\0".join(names))


def worker_disconnect() -> bytes:
    """A worker disconnects."""
    return packet(WORKER_DISCONNECT)


def worker_sleep() -> bytes:
    """A worker goes to sleep."""
    return packet(WORKER_SLEEP)


def job_create_req(name: bytes, key: bytes, type: int, args: bytes = b"", flags: int = 0) -> bytes:
    """Create a job."""
    return packet(JOB_CREATE_REQ, b"%b\0%b\0%c%c%b" % (name, key, flags, type, args))


def job_create_res(handle: bytes) -> bytes:
    """The handle of a created job."""
    if len(handle) < len(_CREATED_HEADERS):
        return _CREATED_HEADERS[len(handle)] + handle
    return packet(JOB_CREATE_RES, handle)


def job_assign_req() -> bytes:
    """A worker asks for a job."""
    return packet(JOB_ASSIGN_REQ)


def job_assign_res(name: bytes, args: bytes) -> bytes:
    """A job for a worker."""
    size = len(name) + 1 + len(args)
    return b"%b%b%b\0%b" % (_ASSIGNED, four_bytes(size), name, args)


def job_status_announce(numerator: int, denominator: int, seconds_left: int = 0) -> bytes:
    """A worker reports progress."""
    return packet(JOB_STATUS_ANNOUNCE, _status_body(numerator, denominator, seconds_left))


def job_status_req(handle: bytes) -> bytes:
    """Ask for the progress of a job."""
    return packet(JOB_STATUS_REQ, handle)


def job_status_res(numerator: int, denominator: int, seconds_left: int = 0) -> bytes:
    """The progress of a job."""
    return packet(JOB_STATUS_RES, _status_body(numerator, denominator, seconds_left))


def job_complete_announce(code: int, result: bytes = b"") -> bytes:
    """A worker has completed its job."""
    return packet(JOB_COMPLETE_ANNOUNCE, b"%c%b" % (code, result))


def job_complete_req(handle: bytes) -> bytes:
    """Ask for the result of a job."""
    return packet(JOB_COMPLETE_REQ, handle)


def job_complete_res(seconds: int, code: int, result: bytes = b"") -> bytes:
    """The result of a job."""
    size = _COMPLETION_SIZE + len(result)
    return b"%b%b%b%b%b" % (
        _COMPLETED, four_bytes(size), four_bytes(_uint32(seconds)), _BYTES[code], result,
    )  # fmt: skip


def _status_body(numerator: int, denominator: int, seconds_left: int) -> bytes:
    return _STATUS.pack(_uint32(numerator), _uint32(denominator), _uint32(seconds_left))


def _uint32(number: int) -> int:
    """The nearest number that fits: jobs of other doors may have any."""
    return min(max(number, 0), UINT32)


# The first five bytes of answers that every job gets; the size of the body follows.
_ASSIGNED: Final = RESPONSE + bytes([JOB_ASSIGN_RES])
_COMPLETED: Final = RESPONSE + bytes([JOB_COMPLETE_RES])
_BYTES: Final = [bytes((value,)) for value in range(256)]
# Of job_create_res, by the size of its handle.
_CREATED_HEADERS: Final = [_HEADER.pack(RESPONSE, JOB_CREATE_RES, size) for size in range(64)]
NOOP_PACKET: Final = noop()
NO_JOB_PACKET: Final = packet(JOB_ASSIGN_RES)
REFUSED_PACKET: Final = job_create_res(b"")
INCOMPLETE_PACKET: Final = job_complete_res(INCOMPLETE, SUCCESS)
