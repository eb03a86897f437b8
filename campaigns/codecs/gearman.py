"""Gearman's codecs: requests and lines to a server, responses to its peers."""

from campaigns.codecs.codec import Codec, Packet, Stream
from campaigns.mutation import LIMIT
from geartrain.wire import gearman as wire
from geartrain.wire import gearman_client

_HANDLE = b"H:fuzz:1"
_TYPE_SIZE = 4


def _body(kind: int, *arguments: bytes) -> bytes:
    return kind.to_bytes(_TYPE_SIZE, "big") + b"\0".join(arguments)


REQUESTS = (
    _body(wire.CAN_DO, b"reverse"),
    _body(wire.CANT_DO, b"reverse"),
    _body(wire.CAN_DO_TIMEOUT, b"reverse", b"60"),
    _body(wire.RESET_ABILITIES),
    _body(wire.PRE_SLEEP),
    _body(wire.ALL_YOURS),
    _body(wire.SET_CLIENT_ID, b"worker 1"),
    _body(wire.OPTION_REQ, b"exceptions"),
    _body(wire.ECHO_REQ, b"hello"),
    *(
        _body(kind, b"reverse", b"key", b"payload")
        for kind in (wire.SUBMIT_JOB, wire.SUBMIT_JOB_BG, wire.SUBMIT_JOB_HIGH, wire.SUBMIT_JOB_LOW_BG)
    ),
    _body(wire.SUBMIT_JOB_EPOCH, b"reverse", b"later", b"4000000000", b"payload"),
    _body(wire.SUBMIT_JOB_SCHED, b"reverse", b"", b"30", b"2", b"1", b"1", b"0", b"payload"),
    _body(wire.SUBMIT_REDUCE_JOB, b"reverse", b"key", b"sum", b"1", b"payload"),
    *(_body(kind) for kind in (wire.GRAB_JOB, wire.GRAB_JOB_UNIQ, wire.GRAB_JOB_ALL)),
    _body(wire.GET_STATUS, _HANDLE),
    _body(wire.GET_STATUS_UNIQUE, b"key"),
    _body(wire.WORK_STATUS, _HANDLE, b"1", b"2"),
    *(
        _body(kind, _HANDLE, b"result")
        for kind in (wire.WORK_COMPLETE, wire.WORK_DATA, wire.WORK_WARNING, wire.WORK_EXCEPTION)
    ),
    _body(wire.WORK_FAIL, _HANDLE),
)
# A body whose first byte is not NUL is a line: its frame is the body itself.
LINES = (
    b"status\n", b"workers\r\n", b"version\n", b"getpid\n", b"show jobs\n", b"show unique jobs\n", b"verbose\n",
    b"create function reverse\n", b"drop function sum\n", b"cancel job H:fuzz:1\n", b"maxqueue reverse 10\n",
    b"maxqueue reverse 1 2 3\n", b"prioritystatus\n",
)  # fmt: skip
RESPONSES = (
    _body(wire.NOOP),
    _body(wire.NO_JOB),
    _body(wire.JOB_CREATED, _HANDLE),
    _body(wire.JOB_ASSIGN, _HANDLE, b"reverse", b"payload"),
    _body(wire.JOB_ASSIGN_UNIQ, _HANDLE, b"reverse", b"key", b"payload"),
    _body(wire.JOB_ASSIGN_ALL, _HANDLE, b"reverse", b"key", b"sum", b"payload"),
    _body(wire.STATUS_RES, _HANDLE, b"1", b"1", b"50", b"100"),
    _body(wire.STATUS_RES_UNIQUE, b"key", b"1", b"1", b"50", b"100", b"3"),
    _body(wire.WORK_STATUS, _HANDLE, b"1", b"2"),
    _body(wire.WORK_COMPLETE, _HANDLE, b"result"),
    _body(wire.WORK_FAIL, _HANDLE),
    _body(wire.ECHO_RES, b"hello"),
    _body(wire.OPTION_RES, b"exceptions"),
    _body(wire.ERROR, b"QUEUE_FULL", b"the queue is full"),
)


def request(body: bytes) -> bytes:
    """A packet to a server, or a line."""
    return body if body[:1] not in (b"", b"\0") else _packet(b"\0REQ", body)


def _response(body: bytes) -> bytes:
    return body if body[:1] not in (b"", b"\0") else _packet(b"\0RES", body)


def _packet(magic: bytes, body: bytes) -> bytes:
    kind, rest = body[:_TYPE_SIZE].rjust(_TYPE_SIZE, b"\0"), body[_TYPE_SIZE:]
    return magic + kind + len(rest).to_bytes(4, "big") + rest


def _open(reader: wire.Reader | gearman_client.AnswerReader) -> Stream:
    def packet() -> Packet | None:
        kind = reader.next()
        if kind == wire.MORE:
            return None
        data, start, end = reader.data, reader.start, reader.end
        if kind in wire.FIELDS:
            fields = wire.fields(kind, data, start, end)
            return (kind, *fields, wire.number(fields[-1]), wire.nul(data, start, end) - start)
        return (kind, wire.only_argument(data, start, end))

    return Stream(reader.feed, packet)


TOKENS = (b"\0REQ", b"\0RES", b"\0", b"\n", b"\r\n", b"reverse", b"key", _HANDLE)
CODECS = (
    Codec("gearman", (*REQUESTS, *LINES), lambda: _open(wire.Reader(LIMIT)), request, TOKENS),
    Codec(
        "gearman-client",
        (*RESPONSES, b"OK\n", b"reverse\t0\t0\t0\n", b".\n"),
        lambda: _open(gearman_client.AnswerReader()),
        _response,
        TOKENS,
    ),
)
