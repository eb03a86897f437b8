"""The doors that a campaign sends mutated frames to, and how another peer sees that a door still answers."""

from collections.abc import Sequence
from typing import NamedTuple

from campaigns.codecs import danga, gearman, memodb, periodic, resp
from campaigns.mutation import Wrap
from geartrain.wire import danga as danga_wire
from geartrain.wire import gearman as gearman_wire
from geartrain.wire import periodic as periodic_wire
from geartrain.wire import periodic_client, sp

HANDLE_PREFIX = "H:fuzz"
_API = b"/api/v1"
_COMMAND_AT = 4  # in the payload of a Periodic frame


class Probe(NamedTuple):
    """What a peer that behaves sends, and how the answer begins."""

    request: bytes
    answer: bytes
    opening: bytes = b""  # sent once, when it connects
    opening_answer: int = 0  # bytes
    keeps_connection: bool = True


class FuzzedDoor(NamedTuple):
    """One address of a server."""

    name: str
    url: str  # `{home}` is a folder for socket files
    bodies: Sequence[bytes]
    wrap: Wrap
    tokens: Sequence[bytes]
    probe: Probe
    openings: Sequence[bytes] = (b"",)


def _without_shutdown(body: bytes) -> bytes:
    """Periodic has a command that stops the server, and a mutation finds it soon."""
    if body[_COMMAND_AT : _COMMAND_AT + 1] == bytes((periodic_wire.SHUTDOWN,)):
        body = body[:_COMMAND_AT] + bytes((periodic_wire.PING,)) + body[_COMMAND_AT + 1 :]
    return body


def _periodic(body: bytes) -> bytes:
    return periodic.request(_without_shutdown(body))


def _periodic_document(body: bytes) -> bytes:
    return periodic.document_request(_without_shutdown(body))


# The first line of a body is a method and a path; what follows is the request's body.
_HTTP_REQUESTS = (
    b"GET /healthz\n",
    b"GET /metrics\n",
    b"GET /\n",
    b"GET " + _API + b"/overview\n",
    b"GET " + _API + b"/functions\n",
    b"GET " + _API + b"/jobs?state=queued&limit=10\n",
    b"GET " + _API + b"/jobs/H%3Afuzz%3A1\n",
    b"GET " + _API + b"/workers\n",
    b"GET " + _API + b"/schedules\n",
    b"GET " + _API + b"/openapi.json\n",
    b"POST " + _API + b'/jobs\n{"function":"reverse","payload":"x","background":true,"unique":"key"}',
    b"POST " + _API + b'/jobs\n{"function":"reverse","payload":{"base64":"AAE="},"delay":60,"background":true}',
    b"POST " + _API + b"/jobs/H%3Afuzz%3A1/cancel\n{}",
    b"POST " + _API + b'/workers\n{"functions":["reverse"],"name":"w","lease":10}',
    b"POST " + _API + b"/workers/1/claim?wait=0\n",
    b"POST " + _API + b"/workers/1/jobs/H%3Afuzz%3A1/complete\nresult",
    b"POST " + _API + b"/functions/reverse/pause\n{}",
    b"PUT " + _API + b'/schedules/s\n{"expression":"* * * * *","function":"reverse"}',
    b"DELETE " + _API + b"/schedules/s\n",
    b"POST " + _API + b'/login\n{"token":"x"}',
)


def _http(body: bytes) -> bytes:
    line, _, content = body.partition(b"\n")
    head = line + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return head + b"Content-Length: %d\r\n\r\n" % len(content) + content


_HTTP_TOKENS = (
    b"\r\n", b"\r\n\r\n", b": ", b"?", b"&", b"%00", b"%ff", b"/..", b'"', b"{", b"[", b"null", b"1e400", b"\\ud800",
    b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n", b"Upgrade: websocket\r\n",
)  # fmt: skip
_PING = periodic_client.request(1, periodic_wire.PING)
_PONG = periodic_wire.frame(periodic_wire.TODAY, periodic_wire.RESPONSE, b"\0\0\0\1" + bytes((periodic_wire.PONG,)))
_PERIODIC_PROBE = Probe(_PING, _PONG, periodic_client.registration(periodic_wire.CLIENT), 17)
_SP_PROBE = Probe(sp.greeting(sp.REQ), sp.greeting(sp.REP), keeps_connection=False)

DOORS: dict[str, FuzzedDoor] = {
    door.name: door
    for door in (
        FuzzedDoor(
            "gearman",
            "gearman://127.0.0.1:0",
            (*gearman.REQUESTS, *gearman.LINES),
            gearman.request,
            gearman.TOKENS,
            Probe(
                gearman_wire.request(gearman_wire.ECHO_REQ, b"probe"),
                gearman_wire.response(gearman_wire.ECHO_RES, b"probe"),
            ),
        ),
        FuzzedDoor(
            "danga",
            "danga://127.0.0.1:0",
            danga.REQUESTS,
            danga.request,
            danga.TOKENS,
            Probe(danga_wire.job_complete_req(b"H:none:1"), danga_wire.INCOMPLETE_PACKET),
        ),
        FuzzedDoor(
            "periodic",
            "periodic://127.0.0.1:0",
            periodic.REQUESTS,
            _periodic,
            periodic.TOKENS,
            _PERIODIC_PROBE,
            periodic.REGISTRATIONS,
        ),
        FuzzedDoor(
            "periodic-document",
            "periodic+unix://{home}/periodic",
            periodic.REQUESTS,
            _periodic_document,
            periodic.TOKENS,
            _PERIODIC_PROBE,
            periodic.DOCUMENT_REGISTRATIONS,
        ),
        FuzzedDoor(
            "memodb",
            "memodb+tcp://127.0.0.1:0",
            memodb.MESSAGES,
            memodb.over_tcp,
            memodb.TOKENS,
            _SP_PROBE,
            (sp.greeting(sp.REQ),),
        ),
        FuzzedDoor(
            "memodb-ipc",
            "memodb+ipc://{home}/memodb",
            memodb.MESSAGES,
            memodb.over_ipc,
            memodb.TOKENS,
            _SP_PROBE,
            (sp.greeting(sp.REQ),),
        ),
        FuzzedDoor(
            "memodb-ws",
            "memodb+ws://127.0.0.1:0",
            memodb.FRAMES,
            memodb.masked_frame,
            memodb.TOKENS,
            Probe(memodb.UPGRADE, b"HTTP/1.1 101", keeps_connection=False),
            (memodb.UPGRADE,),
        ),
        FuzzedDoor(
            "gearmonkey",
            "gearmonkey://127.0.0.1:0",
            (*resp.COMMANDS, *resp.RAW),
            resp.request,
            resp.TOKENS,
            Probe(b"PING\r\n", b"+PONG\r\n"),
        ),
        FuzzedDoor(
            "http",
            "http://127.0.0.1:0",
            _HTTP_REQUESTS,
            _http,
            _HTTP_TOKENS,
            Probe(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"HTTP/1.1 200", keeps_connection=False),
        ),
    )
}
