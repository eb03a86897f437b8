"""The Periodic wire: frames, jobs, and the two dialects that are spoken on one port.

A frame is a magic, the size of a payload, in today's dialect the CRC-32 of the payload, and the payload. The first
frame of a connection registers the peer, and its form tells the dialect. In all later ones the payload is a message id
of four bytes, which the answer repeats, a command, and its arguments.

>>> reader = Reader()
>>> reader.feed(bytes.fromhex("00524551 00000001 01") + frame(DOCUMENT, b"\\0REQ", b"abcd" + bytes([PING])))
>>> reader.next(), reader.data[reader.start:reader.end], reader.dialect.name
(0, b'\\x01', 'document')
>>> reader.next(), reader.data[reader.start:reader.end]
(0, b'abcd\\t')
"""

import struct
import zlib
from typing import Final

from mypy_extensions import i64

from geartrain.errors import WireError
from geartrain.wire import foreign_protocol
from geartrain.wire.number_bytes import four_bytes
from geartrain.wire.packet_buffer import MORE as MORE
from geartrain.wire.packet_buffer import PacketBuffer

NOOP: Final = 0
GRAB_JOB: Final = 1
SCHED_LATER: Final = 2
WORK_DONE: Final = 3
WORK_FAIL: Final = 4
JOB_ASSIGN: Final = 5
NO_JOB: Final = 6
CAN_DO: Final = 7
CANT_DO: Final = 8
PING: Final = 9
PONG: Final = 10
SLEEP: Final = 11
UNKNOWN: Final = 12
SUBMIT_JOB: Final = 13
STATUS: Final = 14
DROP_FUNC: Final = 15
SUCCESS: Final = 16
REMOVE_JOB: Final = 17
DUMP: Final = 18
LOAD: Final = 19
SHUTDOWN: Final = 20
BROADCAST: Final = 21
CONFIG_GET: Final = 22
CONFIG_SET: Final = 23
CONFIG: Final = 24
RUN_JOB: Final = 25
ACQUIRED: Final = 26
ACQUIRE: Final = 27
RELEASE: Final = 28
NO_WORKER: Final = 29
DATA: Final = 30
RECV_DATA: Final = 31
WORK_DATA: Final = 32
JOB_ASSIGNED: Final = 33
JOB_UNASSIGNED: Final = 34
LAST_COMMAND: Final = 34

CLIENT: Final = 1
WORKER: Final = 2
NAMED_CLIENT: Final = 3
NAMED_WORKER: Final = 4

REQUEST: Final = b"\0REQ"
RESPONSE: Final = b"\0RES"
MAX_PACKET: Final = 64 * 1024 * 1024
FRAME: Final = 0  # what `next` returns for a complete frame

_crc32: Final = zlib.crc32
_HEADER: Final = struct.Struct(">4sI")
_HEADER_CRC: Final = struct.Struct(">4sII")
_NUMBER: Final = struct.Struct(">I")
_LENGTH: Final = struct.Struct(">Q")
_COUNT: Final = struct.Struct(">i")
_LATER: Final = struct.Struct(">qh")
_LIMIT: Final = struct.Struct(">h")
_MESSAGE_ID: Final = 4
# A byte of each value: compiled, joining these is several times as fast as formatting with %c.
_BYTES: Final = [bytes((value,)) for value in range(256)]
_TIMES: Final = (-(2**63), 2**63 - 1)
_LARGE: Final = 2**60  # larger numbers are not compared as quickly
_COUNTS: Final = (-(2**31), 2**31 - 1)


class Dialect:
    """The differences between the dialects. A class: compiled, its attributes are read faster than those of a tuple."""

    __slots__ = ("commands", "confirmed", "crc", "data", "locked_column", "name", "opaque_handle", "says_no_worker")

    def __init__(
        self,
        name: str,
        crc: bool,
        data: bytes,
        opaque_handle: bool,
        locked_column: bool,
        commands: int,
        says_no_worker: bool,
        confirmed: frozenset[int],
    ) -> None:
        self.name = name
        self.crc = crc  # whether the CRC of the payload follows its size
        self.data = data  # precedes the bytes of an answer that is only data
        self.opaque_handle = opaque_handle  # JOB_ASSIGN brings a handle; otherwise function and name are the handle
        self.locked_column = locked_column  # STATUS has one
        self.commands: i64 = commands  # the highest that it knows
        self.says_no_worker = says_no_worker  # RUN_JOB is answered at once when no worker offers the function
        self.confirmed = [command in confirmed for command in range(LAST_COMMAND + 1)]  # by command: with SUCCESS


_CONFIRMED_ALWAYS: Final = frozenset({SUBMIT_JOB, DROP_FUNC, REMOVE_JOB, LOAD, CONFIG_SET})
# Confirmed only to today's workers; workers of the document misread a confirmation.
WORKERS_CONFIRMED: Final = frozenset(
    {CAN_DO, CANT_DO, BROADCAST, GRAB_JOB, WORK_DONE, WORK_FAIL, WORK_DATA, SCHED_LATER, RELEASE}
)
DOCUMENT: Final = Dialect("document", False, b"", True, False, RUN_JOB, False, _CONFIRMED_ALWAYS)
TODAY: Final = Dialect(
    "today", True, bytes([DATA]), False, True, JOB_UNASSIGNED, True, _CONFIRMED_ALWAYS | WORKERS_CONFIRMED
)


def is_hexadecimal(message_id: bytes) -> bool:
    """Whether a message id is four hexadecimal digits in lower case, as those of aio-periodic 0.2 are.

    Of other clients' ids one in 65,000 is (random bytes), or one in 200 (the letters and digits of Node clients).

    >>> is_hexadecimal(b"3f0c"), is_hexadecimal(b"3F0C"), is_hexadecimal(bytes(4))
    (True, False, False)
    """
    return not message_id.strip(b"0123456789abcdef")


class Reader(PacketBuffer):
    """Cuts a stream into frames; the first one tells the dialect."""

    __slots__ = ("dialect", "known", "max_packet")

    def __init__(self, max_packet: int = MAX_PACKET) -> None:
        super().__init__()
        self.max_packet = max_packet
        self.dialect = DOCUMENT
        self.known = False  # the first frame has been read

    def next(self) -> int:
        """FRAME, with the payload between `start` and `end`; or MORE."""
        data = self.data
        position = self._position
        whole: i64 = len(data)
        left = whole - position
        if not left:
            self.data = b""
            self._position = 0
            return MORE
        if left < _HEADER.size:
            if not REQUEST.startswith(data[position : position + 4]):
                raise _wrong_magic(data[position:])
            return self._keep(data, position, left + 1 if left < 4 else _HEADER.size)
        # Byte by byte: compiled, these are a few instructions, while unpacking makes a tuple and two objects.
        if data[position] or data[position + 1] != 0x52 or data[position + 2] != 0x45 or data[position + 3] != 0x51:
            raise _wrong_magic(data[position : position + 4])
        size = _number_at(data, position + 4)
        if size > self.max_packet:
            raise WireError("SIZE", f"a frame of {size} bytes was announced, {self.max_packet} are allowed")
        if not self.known and not self._detects_dialect(data, position, size):
            return self._keep(data, position, _HEADER.size + 5 if left > _HEADER.size else _HEADER.size + 1)
        crc = self.dialect.crc
        start = position + (12 if crc else 8)
        end = start + size
        if end > whole:
            return self._keep(data, position, end - position)
        if crc and _crc32(data[start:end]) != _number_at(data, start - 4):
            raise WireError("CRC", "the CRC of a frame does not match its payload")
        self.known = True
        self.start = start
        self.end = self._position = end
        return FRAME

    def _detects_dialect(self, data: bytes, position: int, size: int) -> bool:
        """Set the dialect of the first frame; whether enough of the frame has arrived to tell."""
        is_document = self._is_document(data, position, size)
        self.dialect = DOCUMENT if is_document else TODAY
        return is_document or len(data) - position >= _HEADER.size + 5

    @staticmethod
    def _is_document(data: bytes, position: int, size: int) -> bool:
        """Whether the first frame is the document's: a type byte and nothing else, right after the size.

        Today's dialect has the CRC of such a frame there, whose first byte is neither type.
        """
        at = position + _HEADER.size
        return size == 1 and len(data) > at and data[at] in (CLIENT, WORKER)


class PeriodicJob:
    """A job in a frame."""

    __slots__ = ("function", "name", "payload", "run_at", "steps", "timeout")

    def __init__(
        self, function: bytes, name: bytes, payload: bytes, run_at: int, steps: int = 0, timeout: int = 0
    ) -> None:
        self.function = function
        self.name = name
        self.payload = payload
        self.run_at = run_at  # epoch seconds; 0 means now
        self.steps = steps  # sum of the steps with which its workers rescheduled it
        self.timeout = timeout  # seconds; 0 means the server's default

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PeriodicJob) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        return f"PeriodicJob{self._fields()}"

    def _fields(self) -> tuple[bytes, bytes, bytes, int, int, int]:
        return self.function, self.name, self.payload, self.run_at, self.steps, self.timeout


class Arguments:
    """Reads the arguments of a command one by one; a WireError if there are too few."""

    __slots__ = ("_data", "_end", "at")

    def __init__(self, data: bytes, start: i64, end: i64) -> None:
        self._data = data
        self._end = end
        self.at = start

    def kind(self) -> int:
        """One byte."""
        at = self.at
        if at >= self._end:
            raise _truncated()
        self.at = at + 1
        return self._data[at]

    def short(self) -> bytes:
        """A name: one byte of length, then its bytes."""
        at = self.at
        if at >= self._end:
            raise _truncated()
        self.at = end = at + 1 + self._data[at]
        if end > self._end:
            raise _truncated()
        return self._data[at + 1 : end]

    def number(self, layout: struct.Struct) -> int:
        """A number of fixed size."""
        return int(self.numbers(layout)[0])

    def numbers(self, layout: struct.Struct) -> tuple[int, ...]:
        """Numbers of fixed size."""
        at = self.at
        self.at = at + layout.size
        if self.at > self._end:
            raise _truncated()
        return layout.unpack_from(self._data, at)

    def sized(self, layout: struct.Struct) -> bytes:
        """A length, then that many bytes."""
        length = self.number(layout)
        if length > self.left():  # both are ints: compiled, a length of 64 bits does not fit into what `at` is
            raise _truncated()
        at = self.at
        self.at = at + length
        return self._data[at : self.at]

    def rest(self) -> bytes:
        """The remaining bytes."""
        at, self.at = self.at, self._end
        return self._data[at : self._end]

    def left(self) -> int:
        """The number of remaining bytes."""
        return self._end - self.at

    def job(self, alone: bool = True) -> PeriodicJob:
        """A job of any version. A single job that ends four bytes after its time has the format without a version.

        Written out instead of argument by argument, since no other command is as frequent.
        """
        data, last = self._data, self._end
        at = self.at + 1
        if at > last:
            raise _truncated()
        size: i64 = data[at - 1]
        function_end = at + size
        if function_end >= last:
            raise _truncated()
        size = data[function_end]
        name_end = function_end + 1 + size
        payload_at = name_end + 4
        if payload_at > last:
            raise _truncated()
        payload_end = payload_at + _number_at(data, name_end)
        if payload_end + 8 > last:
            raise _truncated()
        self.at = payload_end + 8
        function, name = data[at:function_end], data[function_end + 1 : name_end]
        payload = data[payload_at:payload_end]
        half = _number_at(data, payload_end)
        if half >= 1 << 31:
            half -= 1 << 32
        run_at = half << 32 | _number_at(data, payload_end + 4)
        if alone and last - self.at == 4:
            return PeriodicJob(function, name, payload, run_at, self.number(_COUNT))
        version = self.kind()
        if not version:
            return PeriodicJob(function, name, payload, run_at)
        count = self.number(_COUNT) if version in (1, 3) else 0
        timeout = self.number(_COUNT) if version in (2, 3) else 0
        return PeriodicJob(function, name, payload, run_at, count, timeout)

    def jobs(self) -> list[PeriodicJob]:
        """A dump: the number of jobs, then the jobs."""
        return [self.job(alone=False) for _ in range(self.count())]

    def count(self) -> int:
        """The number of jobs that follow in a dump."""
        count = self.number(_LENGTH)
        if count > self.left():
            raise _truncated()
        return count

    def copy(self) -> "Arguments":
        """Another reader, at the same place."""
        return Arguments(self._data, self.at, self._end)

    def later(self) -> tuple[int, int]:
        """A delay in seconds and a step."""
        delay, step = self.numbers(_LATER)
        return delay, step

    def limit(self) -> int:
        """The number of jobs that may hold a lock."""
        return self.number(_LIMIT)

    def value(self) -> int:
        """The value of a configuration key."""
        return self.number(_NUMBER)

    def identity(self) -> tuple[bytes, bytes]:
        """Name and token of a named registration."""
        return self.sized(_LENGTH), self.sized(_LENGTH)


def _number_at(data: bytes, at: i64) -> i64:
    """Four bytes as a number."""
    byte: i64 = data[at]
    number = byte << 24
    byte = data[at + 1]
    number |= byte << 16
    byte = data[at + 2]
    number |= byte << 8
    byte = data[at + 3]
    return number | byte


def _truncated() -> WireError:
    return WireError("TRUNCATED", "the arguments of a command are cut off")


def frame(dialect: Dialect, magic: bytes, payload: bytes) -> bytes:
    """A frame with this payload."""
    size = four_bytes(len(payload))
    if not dialect.crc:
        return b"%b%b%b" % (magic, size, payload)
    crc: i64 = _crc32(payload)
    return b"%b%b%b%b%b%b%b" % (
        magic, size, _BYTES[crc >> 24], _BYTES[crc >> 16 & 0xFF], _BYTES[crc >> 8 & 0xFF], _BYTES[crc & 0xFF], payload,
    )  # fmt: skip


def answer(dialect: Dialect, message_id: bytes, command: int, arguments: bytes = b"") -> bytes:
    """The frame of an answer: the id of the message, a command and its arguments."""
    return frame(dialect, RESPONSE, b"%b%b%b" % (message_id, _BYTES[command], arguments))


def frame_header(dialect: Dialect, magic: bytes, size: int, checksum: int) -> bytes:
    """What comes before a payload of this size; dialects without a checksum leave it out."""
    if dialect.crc:
        return _HEADER_CRC.pack(magic, size, checksum)
    return _HEADER.pack(magic, size)


def short(name: bytes) -> bytes:
    """A name as an argument."""
    return _BYTES[len(name)] + name


def job(work: PeriodicJob) -> bytes:
    """A job as an argument."""
    return job_argument(work.function, work.name, work.payload, work.run_at, work.steps, work.timeout)


def job_argument(function: bytes, name: bytes, payload: bytes, run_at: int, steps: int, timeout: int) -> bytes:
    """The same, in the smallest version that holds the job; numbers out of range become the nearest ones."""
    version = (1 if steps else 0) + (2 if timeout else 0)
    if not 0 <= run_at < _LARGE:
        run_at = _within(run_at, _TIMES)
    return b"%b%b%b%b%b%b%b%b%b%b" % (
        _BYTES[len(function)],
        function,
        _BYTES[len(name)],
        name,
        four_bytes(len(payload)),
        payload,
        _run_at.of(run_at),
        _BYTES[version],
        _within(steps, _COUNTS).to_bytes(4, "big", signed=True) if steps else b"",
        _timeout.of(_within(timeout, _COUNTS)) if timeout else b"",
    )


class NumberBytes:
    """A signed number as bytes. The last one is remembered: the jobs of a second and a function share theirs."""

    __slots__ = ("_bytes", "_number", "_size")

    def __init__(self, size: int) -> None:
        self._size = size
        self._number = 0
        self._bytes = bytes(size)

    def of(self, number: int) -> bytes:
        """The bytes of this number."""
        if number != self._number:
            self._bytes = number.to_bytes(self._size, "big", signed=True)
            self._number = number
        return self._bytes


_run_at: Final = NumberBytes(8)
_timeout: Final = NumberBytes(4)


def _within(number: int, bounds: tuple[int, int]) -> int:
    lowest, highest = bounds
    if number < lowest:
        return lowest
    return highest if number > highest else number


def jobs(jobs: list[PeriodicJob]) -> bytes:
    """A dump."""
    return count(len(jobs)) + b"".join([job(each) for each in jobs])


def count(number: int) -> bytes:
    """The number of jobs, which comes before them in a list."""
    return _LENGTH.pack(number)


def value(number: int) -> bytes:
    """The value of a configuration key as an argument."""
    return _NUMBER.pack(number)


def identity(name: bytes, token: bytes) -> bytes:
    """Name and token of a named registration as arguments."""
    return _LENGTH.pack(len(name)) + name + _LENGTH.pack(len(token)) + token


def later(delay: int, step: int) -> bytes:
    """A delay in seconds and a step as arguments."""
    return _LATER.pack(delay, step)


def limit(number: int) -> bytes:
    """The number of jobs that may hold a lock, as an argument."""
    return _LIMIT.pack(number)


def _wrong_magic(received: bytes) -> WireError:
    return WireError("MAGIC", f"a frame starts with NUL and REQ{foreign_protocol.hint(received)}")
