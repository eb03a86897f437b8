"""A raw-socket Periodic peer for tests: a client or a worker, in the document's dialect or in today's.

with Peer(port, Dialect.TODAY) as client:
    client.succeed(Command.SUBMIT_JOB, job(b"echo", b"name", b"payload"))
"""

import binascii
import enum
import itertools
from collections.abc import Callable
from typing import NamedTuple, Self

from tests.support.peer import PATIENCE, Location, RawPeer, connect


class Dialect(enum.Enum):
    DOCUMENT = "document"
    TODAY = "today"


class Command(enum.IntEnum):
    NOOP = 0
    GRAB_JOB = 1
    SCHED_LATER = 2
    WORK_DONE = 3
    WORK_FAIL = 4
    JOB_ASSIGN = 5
    NO_JOB = 6
    CAN_DO = 7
    CANT_DO = 8
    PING = 9
    PONG = 10
    SLEEP = 11
    UNKNOWN = 12
    SUBMIT_JOB = 13
    STATUS = 14
    DROP_FUNC = 15
    SUCCESS = 16
    REMOVE_JOB = 17
    DUMP = 18
    LOAD = 19
    SHUTDOWN = 20
    BROADCAST = 21
    CONFIG_GET = 22
    CONFIG_SET = 23
    CONFIG = 24
    RUN_JOB = 25
    ACQUIRED = 26
    ACQUIRE = 27
    RELEASE = 28
    NO_WORKER = 29
    DATA = 30
    RECV_DATA = 31
    WORK_DATA = 32
    JOB_ASSIGNED = 33
    JOB_UNASSIGNED = 34


CLIENT, WORKER, NAMED_CLIENT, NAMED_WORKER = 1, 2, 3, 4


class Job(NamedTuple):
    """A job as a worker receives it."""

    handle: bytes  # as it is sent back, with its lengths
    function: bytes
    name: bytes
    payload: bytes
    run_at: int
    count: int
    timeout: int
    message_id: bytes  # of the grab that got it


def text(data: bytes) -> bytes:
    """A name behind its length."""
    return len(data).to_bytes(1, "big") + data


def job(function: bytes, name: bytes, payload: bytes = b"", run_at: int = 0, count: int = 0, timeout: int = 0) -> bytes:
    """A job as an argument.

    >>> job(b"echo", b"n1", b"wl", 1534900000).hex(" ", 1)
    '04 65 63 68 6f 02 6e 31 00 00 00 02 77 6c 00 00 00 00 5b 7c b7 20 00'
    """
    fields = text(function) + text(name) + len(payload).to_bytes(4, "big") + payload
    fields += run_at.to_bytes(8, "big", signed=True)
    if count and timeout:
        return fields + b"\3" + _i32(count) + _i32(timeout)
    if timeout:
        return fields + b"\2" + _i32(timeout)
    return fields + (b"\1" + _i32(count) if count else b"\0")


def jobs(*entries: bytes) -> bytes:
    """A dump."""
    return len(entries).to_bytes(8, "big") + b"".join(entries)


def config(key: bytes, value: int | None = None) -> bytes:
    """The arguments of CONFIG_GET, or with a value those of CONFIG_SET."""
    return text(key) + (b"" if value is None else value.to_bytes(4, "big"))


def identity(name: bytes, token: bytes) -> bytes:
    return len(name).to_bytes(8, "big") + name + len(token).to_bytes(8, "big") + token


def frame(dialect: Dialect, payload: bytes, magic: bytes = b"\0REQ") -> bytes:
    """
    >>> frame(Dialect.TODAY, b"\\x01").hex(" ", 4)
    '00 52455100 000001a5 05df1b01'
    """
    crc = binascii.crc32(payload).to_bytes(4, "big") if dialect is Dialect.TODAY else b""
    return magic + len(payload).to_bytes(4, "big") + crc + payload


def read_jobs(data: bytes) -> list[Job]:
    """The jobs of a dump."""
    found = []
    at = 8
    for _ in range(int.from_bytes(data[:8], "big")):
        entry, at = _read_job(data, at)
        found.append(entry)
    assert at == len(data), "bytes after the last job of a dump"
    return found


def _i32(number: int) -> bytes:
    return number.to_bytes(4, "big", signed=True)


def _read_job(data: bytes, at: int) -> tuple[Job, int]:
    begin = at
    names = []
    for _ in range(2):
        end = at + 1 + data[at]
        names.append(data[at + 1 : end])
        at = end
    handle = data[begin:at]
    end = at + 4 + int.from_bytes(data[at : at + 4], "big")
    payload, at = data[at + 4 : end], end
    run_at = int.from_bytes(data[at : at + 8], "big", signed=True)
    version, at = data[at + 8], at + 9
    numbers = {}
    for field, versions in (("count", (1, 3)), ("timeout", (2, 3))):
        if version in versions:
            numbers[field] = int.from_bytes(data[at : at + 4], "big", signed=True)
            at += 4
    count, timeout = numbers.get("count", 0), numbers.get("timeout", 0)
    return Job(handle, names[0], names[1], payload, run_at, count, timeout, b""), at


class Peer(RawPeer):
    """One connection. Answers are found by their message id; those of other messages are put by."""

    def __init__(
        self, location: Location, dialect: Dialect = Dialect.TODAY, kind: int | None = CLIENT, extra: bytes = b""
    ) -> None:
        super().__init__(connect(location))
        self.dialect = dialect
        self._put_by: list[tuple[bytes, bytes]] = []  # message ids and what came with them, in order
        self._serial = itertools.count(1)
        if kind is not None:
            self.register(kind, extra)

    # Frames

    def register(self, kind: int, extra: bytes = b"", quiet: bool = False) -> bytes:
        """Say who comes in; the connection id is the answer, and nothing else at a quiet address."""
        self.raw(frame(self.dialect, bytes([kind]) + extra))
        answer = self.payload()
        if self.dialect is Dialect.TODAY and not quiet:
            assert answer[0] == Command.DATA, answer
            answer = answer[1:]
        assert len(answer) == 4, "old clients fall over longer ids"
        return answer

    def send(self, command: int, arguments: bytes = b"", message_id: bytes = b"") -> bytes:
        """Returns the message id, which is a new one unless given."""
        message_id = message_id or next(self._serial).to_bytes(4, "big")
        self.raw(frame(self.dialect, message_id + bytes([command]) + arguments))
        return message_id

    def payload(self) -> bytes:
        """Of the next frame."""
        head = self.receive(12 if self.dialect is Dialect.TODAY else 8)
        assert head[:4] == b"\0RES", f"not a response: {head!r}"
        data = self.receive(int.from_bytes(head[4:8], "big"))
        if self.dialect is Dialect.TODAY:
            assert binascii.crc32(data) == int.from_bytes(head[8:], "big"), "a wrong CRC"
        return data

    def closed(self, timeout: float = PATIENCE) -> None:
        """The server closes the connection and sends nothing more."""
        super().closed(timeout)
        assert not self._put_by, self._put_by

    # Answers

    def answer(self, message_id: bytes) -> bytes:
        """What comes next on this message id."""
        for index, (other, data) in enumerate(self._put_by):
            if other == message_id:
                del self._put_by[index]
                return data
        while True:
            payload = self.payload()
            if payload[:4] == message_id:
                return payload[4:]
            self._put_by.append((payload[:4], payload[4:]))

    def expect(self, message_id: bytes, command: int, arguments: bytes = b"") -> None:
        answer = self.answer(message_id)
        assert answer == bytes([command]) + arguments, f"expected {Command(command).name}, got {answer[:200]!r}"

    def data(self, message_id: bytes) -> bytes:
        """The bytes that are the answer."""
        answer = self.answer(message_id)
        if self.dialect is Dialect.TODAY:
            assert answer[0] == Command.DATA, answer[:200]
            return answer[1:]
        return answer

    def silence(self) -> None:
        """Nothing has arrived: the answer to a PING is the next frame."""
        assert not self._put_by, self._put_by
        message_id = self.send(Command.PING)
        assert self.payload() == message_id + bytes([Command.PONG])

    # What clients say

    def succeed(self, command: int, arguments: bytes = b"") -> None:
        self.expect(self.send(command, arguments), Command.SUCCESS)

    def submit(self, function: bytes, name: bytes, payload: bytes = b"", run_at: int = 0, **more: int) -> None:
        self.succeed(Command.SUBMIT_JOB, job(function, name, payload, run_at, **more))

    def run(self, function: bytes, name: bytes, payload: bytes = b"", run_at: int = 0, **more: int) -> bytes:
        """The message id on which `data` will find the result."""
        return self.send(Command.RUN_JOB, job(function, name, payload, run_at, **more))

    def status(self) -> dict[bytes, list[int]]:
        """The numbers of each function."""
        lines = self.data(self.send(Command.STATUS)).split(b"\n")
        rows = [line.split(b",") for line in lines if line]
        return {name: [int(number) for number in numbers] for name, *numbers in rows}

    def dump(self) -> list[Job]:
        return read_jobs(self.data(self.send(Command.DUMP)))

    def get(self, key: bytes) -> int:
        answer = self.answer(self.send(Command.CONFIG_GET, config(key)))
        assert answer[0] == Command.CONFIG
        assert len(answer) == 5
        return int.from_bytes(answer[1:], "big")

    def set(self, key: bytes, value: int) -> None:
        self.succeed(Command.CONFIG_SET, config(key, value))

    # What workers say

    def confirmed(self, command: int, arguments: bytes = b"", message_id: bytes = b"") -> bytes:
        """Send what today's server confirms and that of the document does not."""
        message_id = self.send(command, arguments, message_id)
        if self.dialect is Dialect.TODAY:
            self.expect(message_id, Command.SUCCESS)
        return message_id

    def offer(self, *functions: bytes, command: int = Command.CAN_DO) -> Self:
        """Returns when the server knows."""
        for function in functions:
            self.confirmed(command, text(function))
        self.silence()
        return self

    def grab(self, message_id: bytes = b"") -> bytes:
        return self.confirmed(Command.GRAB_JOB, message_id=message_id)

    def assigned(self, message_id: bytes) -> Job:
        """The job that this grab got."""
        answer = self.answer(message_id)
        assert answer[0] == Command.JOB_ASSIGN, answer[:200]
        begin = 1 if self.dialect is Dialect.TODAY else 2 + answer[1]
        found, end = _read_job(answer, begin)
        assert end == len(answer)
        handle = found.handle if self.dialect is Dialect.TODAY else answer[1:begin]
        return found._replace(handle=handle, message_id=message_id)

    def take(self) -> Job:
        return self.assigned(self.grab())

    def done(self, job: Job, result: bytes = b"") -> None:
        self.confirmed(Command.WORK_DONE, job.handle + result)

    def fail(self, job: Job) -> None:
        self.confirmed(Command.WORK_FAIL, job.handle)

    def later(self, job: Job, delay: int, step: int = 0) -> None:
        arguments = delay.to_bytes(8, "big", signed=True) + step.to_bytes(2, "big", signed=True)
        self.confirmed(Command.SCHED_LATER, job.handle + arguments)

    def part(self, job: Job, data: bytes) -> None:
        self.confirmed(Command.WORK_DATA, job.handle + data)

    def acquire(self, job: Job, lock: bytes, limit: int = 1) -> bool:
        arguments = text(lock) + limit.to_bytes(2, "big", signed=True) + job.handle
        answer = self.answer(self.send(Command.ACQUIRE, arguments))
        assert answer[0] == Command.ACQUIRED, answer
        assert len(answer) == 2
        return bool(answer[1])

    def release(self, job: Job, lock: bytes) -> None:
        self.confirmed(Command.RELEASE, text(lock) + job.handle)


# What the fixtures of the Periodic tests hand to a test.
Dial = Callable[..., Peer]
