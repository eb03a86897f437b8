"""Periodic's codecs: both dialects to a server, and today's to its peers."""

from collections.abc import Callable
from typing import Any

from campaigns.codecs.codec import Codec, Packet, Stream
from campaigns.mutation import LIMIT
from geartrain.wire import periodic as wire
from geartrain.wire import periodic_client

_ID = b"\0\0\0\1"
_JOB = wire.job(wire.PeriodicJob(b"reverse", b"one", b"payload", 0))
_HANDLE = periodic_client.handle(b"reverse", b"one")

Arguments = wire.Arguments
# How the door reads the arguments of each command.
_READERS: dict[int, Callable[[Arguments], Any]] = {
    **dict.fromkeys((wire.SUBMIT_JOB, wire.RUN_JOB, wire.RECV_DATA), lambda arguments: arguments.job()),
    **dict.fromkeys(
        (wire.CAN_DO, wire.CANT_DO, wire.BROADCAST, wire.DROP_FUNC, wire.CONFIG_GET),
        lambda arguments: arguments.short(),
    ),
    wire.REMOVE_JOB: lambda arguments: (arguments.short(), arguments.short()),
    wire.LOAD: lambda arguments: arguments.jobs(),
    wire.CONFIG_SET: lambda arguments: (arguments.short(), arguments.value()),
    **dict.fromkeys(
        (wire.WORK_DONE, wire.WORK_FAIL, wire.WORK_DATA, wire.JOB_ASSIGNED, wire.JOB_UNASSIGNED),
        lambda arguments: (arguments.short(), arguments.short(), arguments.rest()),
    ),
    wire.SCHED_LATER: lambda arguments: (arguments.short(), arguments.short(), arguments.later()),
    wire.ACQUIRE: lambda arguments: (arguments.short(), arguments.limit(), arguments.short(), arguments.short()),
    wire.RELEASE: lambda arguments: (arguments.short(), arguments.short(), arguments.short()),
    wire.JOB_ASSIGN: lambda arguments: arguments.job(),
    wire.CONFIG: lambda arguments: arguments.value(),
}


def _command(command: int, arguments: bytes = b"") -> bytes:
    return _ID + bytes((command,)) + arguments


# SHUTDOWN is not among them, since these are also sent to a server that has to stay.
REQUESTS = (
    *(_command(kind, _JOB) for kind in (wire.SUBMIT_JOB, wire.RUN_JOB, wire.RECV_DATA)),
    _command(wire.SUBMIT_JOB, wire.job(wire.PeriodicJob(b"reverse", b"later", b"payload", 4_000_000_000, 3, 60))),
    *(_command(kind) for kind in (wire.PING, wire.STATUS, wire.DUMP, wire.GRAB_JOB, wire.SLEEP)),
    *(_command(kind, wire.short(b"reverse")) for kind in (wire.CAN_DO, wire.CANT_DO, wire.BROADCAST, wire.DROP_FUNC)),
    _command(wire.CONFIG_GET, wire.short(b"timeout")),
    _command(wire.CONFIG_SET, wire.short(b"timeout") + wire.value(60)),
    _command(wire.REMOVE_JOB, _HANDLE),
    _command(wire.LOAD, wire.jobs([wire.PeriodicJob(b"reverse", b"%d" % number, b"", 0) for number in range(3)])),
    _command(wire.WORK_DONE, _HANDLE + b"result"),
    _command(wire.WORK_FAIL, _HANDLE),
    _command(wire.WORK_DATA, _HANDLE + b"data"),
    _command(wire.SCHED_LATER, periodic_client.put_off(b"reverse", b"one", 60)),
    _command(wire.ACQUIRE, wire.short(b"lock") + wire.limit(1) + _HANDLE),
    _command(wire.RELEASE, wire.short(b"lock") + _HANDLE),
    _command(wire.JOB_ASSIGNED, _HANDLE),
)
ANSWERS = (
    *(_command(kind) for kind in (wire.PONG, wire.SUCCESS, wire.NO_JOB, wire.NOOP, wire.UNKNOWN, wire.NO_WORKER)),
    _command(wire.JOB_ASSIGN, _JOB),
    _command(wire.DATA, b"result"),
    _command(wire.CONFIG, wire.value(60)),
)
REGISTRATIONS = (
    periodic_client.registration(wire.CLIENT),
    periodic_client.registration(wire.WORKER),
    periodic_client.registration(wire.NAMED_WORKER, b"worker 1", b"token"),
)
DOCUMENT_REGISTRATIONS = tuple(
    wire.frame(wire.DOCUMENT, wire.REQUEST, bytes((kind,))) for kind in (wire.CLIENT, wire.WORKER)
)


def request(body: bytes) -> bytes:
    """A frame of today's dialect."""
    return wire.frame(wire.TODAY, wire.REQUEST, body)


def document_request(body: bytes) -> bytes:
    """A frame of the document's dialect."""
    return wire.frame(wire.DOCUMENT, wire.REQUEST, body)


def _answer(body: bytes) -> bytes:
    return wire.frame(wire.TODAY, wire.RESPONSE, body)


def _open(reader: wire.Reader | periodic_client.AnswerReader) -> Stream:
    def packet() -> Packet | None:
        if reader.next() == wire.MORE:
            return None
        data, start, end = reader.data, reader.start, reader.end
        if end - start < 5:
            return (-1, data[start:end])
        command = data[start + 4]
        arguments = Arguments(data, start + 5, end)
        read = _READERS.get(command)
        return (command, read(arguments) if read else None, arguments.rest())

    return Stream(reader.feed, packet)


TOKENS = (b"\0REQ", b"\0RES", wire.short(b"reverse"), wire.short(b"one"), _JOB, _HANDLE)
CODECS = (
    Codec("periodic", REQUESTS, lambda: _open(wire.Reader(LIMIT)), request, TOKENS, REGISTRATIONS),
    Codec(
        "periodic-document",
        REQUESTS,
        lambda: _open(wire.Reader(LIMIT)),
        document_request,
        TOKENS,
        DOCUMENT_REGISTRATIONS,
    ),
    Codec("periodic-client", ANSWERS, lambda: _open(periodic_client.AnswerReader(LIMIT)), _answer, TOKENS),
)
