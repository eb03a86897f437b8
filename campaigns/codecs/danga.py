"""The codec of Danga's draft, in both directions."""

from collections.abc import Callable
from typing import Any

from campaigns.codecs.codec import Codec, Packet, Stream
from campaigns.mutation import LIMIT
from geartrain.wire import danga as wire

_HANDLE = b"H:fuzz:1"
_READERS: dict[int, Callable[[bytes], Any]] = {
    wire.WORKER_CONNECT: wire.job_names,
    wire.JOB_CREATE_REQ: wire.creation,
    wire.JOB_CREATE_RES: wire.handle,
    wire.JOB_ASSIGN_RES: wire.assignment,
    wire.JOB_STATUS_ANNOUNCE: wire.status,
    wire.JOB_STATUS_REQ: wire.handle,
    wire.JOB_STATUS_RES: wire.status,
    wire.JOB_COMPLETE_ANNOUNCE: wire.outcome,
    wire.JOB_COMPLETE_REQ: wire.handle,
    wire.JOB_COMPLETE_RES: wire.completion,
}


def _body(packet: bytes) -> bytes:
    """A packet's type and body."""
    return packet[4:5] + packet[9:]


REQUESTS = tuple(
    _body(packet)
    for packet in (
        wire.worker_connect([b"reverse", b"sum"]),
        wire.worker_disconnect(),
        wire.worker_sleep(),
        *(wire.job_create_req(b"reverse", b"key", kind, b"args") for kind in (0, 1, 2)),
        wire.job_create_req(b"reverse", b"", wire.ASYNC_HANDLE, b"args", flags=1),
        wire.job_assign_req(),
        wire.job_status_announce(1, 2, 3),
        wire.job_status_req(_HANDLE),
        wire.job_complete_announce(0, b"result"),
        wire.job_complete_announce(7),
        wire.job_complete_req(_HANDLE),
    )
)
RESPONSES = tuple(
    _body(packet)
    for packet in (
        wire.noop(),
        wire.job_create_res(_HANDLE),
        wire.NO_JOB_PACKET,
        wire.job_assign_res(b"reverse", b"args"),
        wire.job_status_res(1, 2, 3),
        wire.job_complete_res(5, 0, b"result"),
    )
)


def request(body: bytes) -> bytes:
    """A packet to a server."""
    return _packet(wire.REQUEST, body)


def _response(body: bytes) -> bytes:
    return _packet(wire.RESPONSE, body)


def _packet(magic: bytes, body: bytes) -> bytes:
    rest = body[1:]
    return magic + (body[:1] or b"\0") + len(rest).to_bytes(4, "big") + rest


def _open(magic: bytes) -> Stream:
    reader = wire.Reader(LIMIT, magic)

    def packet() -> Packet | None:
        kind = reader.next()
        if kind == wire.MORE:
            return None
        read = _READERS.get(kind)
        return (kind, read(reader.body)) if read else (kind,)

    return Stream(reader.feed, packet)


TOKENS = (b"\0REQ", b"\0RES", b"\0", b"reverse", b"key", _HANDLE)
CODECS = (
    Codec("danga", REQUESTS, lambda: _open(wire.REQUEST), request, TOKENS),
    Codec("danga-client", RESPONSES, lambda: _open(wire.RESPONSE), _response, TOKENS),
)
