"""Requests and replies over one NNG pipe, as a REQ socket has them: over TCP, a socket file or WebSocket.

A request waits until its reply arrives. If that takes long it is sent again: a broker that still has it ignores the
second one, and one that has dropped it starts the job again.
"""

import asyncio
import secrets
import ssl
from collections.abc import Callable, Mapping
from typing import Final

from geartrain.address import Address
from geartrain.client.protocols.connection import ServerConnection
from geartrain.wire import memodb_client, sp, sp_client, websocket_client
from geartrain.wire.memodb import Message

# Seconds until a request is sent again, and between two checks for such requests: NNG's own defaults.
RESEND_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 1.0

Reply = Callable[[Message, bytes], None]


def _tcp(address: Address) -> sp.MessagePipe:
    return sp_client.StreamPipe(sp.TCP)


def _ipc(address: Address) -> sp.MessagePipe:
    return sp_client.StreamPipe(sp.IPC)


def _websocket(address: Address) -> sp.MessagePipe:
    return websocket_client.ClientPipe(address.host, address.port, address.path)


_PIPES: Final[Mapping[str, Callable[[Address], sp.MessagePipe]]] = {
    "memodb+tcp": _tcp,
    "memodb+ipc": _ipc,
    "memodb+ws": _websocket,
}


class PipeRequest:
    """A request, kept so that it can be sent again."""

    __slots__ = ("due_at", "header", "payload", "reply", "resend_after")

    def __init__(self, header: bytes, payload: bytes, reply: Reply, resend_after: float) -> None:
        self.header = header
        self.payload = payload
        self.reply = reply
        self.resend_after = resend_after  # seconds
        self.due_at = 0.0


Requests = dict[bytes, PipeRequest]  # by request id, in the order of sending


class RequestPipe:
    """One connection. Requests can be made before it is open, and outlive it: the next pipe takes them over."""

    def __init__(self, address: Address, broken: Callable[[Exception], None], requests: Requests | None = None) -> None:
        self._address = address
        self._broken = broken
        self.requests: Requests = requests if requests is not None else {}
        self.connection = ServerConnection(self._received, self._ended)
        self._pipe = _PIPES[address.scheme](address)
        self._is_open = False
        self._next_id = secrets.randbits(31)
        self._timer: asyncio.TimerHandle | None = None

    async def open(self, tls: ssl.SSLContext | None) -> None:
        """Connect, exchange greetings, then send the requests that were made meanwhile."""
        await self.connection.open(self._address, tls)
        self.connection.write(self._pipe.greeting)
        if not self._pipe.greeted:  # a broker may greet first
            await self.connection.answer()
        self._is_open = True
        for id, request in self.requests.items():
            self._send(id, request)

    def request(self, header: bytes, payload: bytes, reply: Reply, resend_after: float = RESEND_SECONDS) -> bytes:
        """Send a request and return its id; `reply` is called at most once."""
        id = sp_client.request_id(self._next_id)
        while id in self.requests:
            self._next_id += 1
            id = sp_client.request_id(self._next_id)
        self._next_id += 1
        request = self.requests[id] = PipeRequest(header, payload, reply, resend_after)
        if self._is_open:
            self._send(id, request)
        return id

    async def close(self) -> None:
        """Close the connection."""
        self._stop()
        await self.connection.close()

    def abandon(self) -> None:
        """Close the connection at once."""
        self._stop()
        self.connection.abandon()

    def _send(self, id: bytes, request: PipeRequest) -> None:
        loop = asyncio.get_running_loop()
        request.due_at = loop.time() + request.resend_after
        for part in self._pipe.framed(id + request.header, request.payload):
            self.connection.write(part)
        if self._timer is None:
            self._timer = loop.call_at(request.due_at, self._look)

    def _look(self) -> None:
        """Send requests again that have waited for too long."""
        self._timer = None
        loop = asyncio.get_running_loop()
        now = loop.time()
        for id, request in self.requests.items():
            if request.due_at <= now:
                self._send(id, request)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        soonest = min((request.due_at for request in self.requests.values()), default=None)
        if soonest is not None:
            self._timer = loop.call_at(max(soonest, now + _LOOK_SECONDS), self._look)

    def _received(self, data: bytes) -> None:
        pipe = self._pipe
        pipe.feed(data)
        try:
            while pipe.next():
                self._reply(pipe.data, pipe.start, pipe.end)
        finally:
            for answer in pipe.answers:
                self.connection.write(answer)
            pipe.answers.clear()
        if pipe.greeted:
            self.connection.answered()

    def _reply(self, data: bytes, start: int, end: int) -> None:
        at = sp.body(data, start, end)
        request = self.requests.pop(data[start:at], None)
        if request is not None:  # otherwise a second reply, or one to a request that was forgotten
            message, payload = memodb_client.parse(data, at, end)
            request.reply(message, data[payload:end])

    def _ended(self, error: Exception) -> None:
        self._stop()
        self._broken(error)

    def _stop(self) -> None:
        self._is_open = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def unsupported_name(function: bytes) -> str:
    """Why the protocol cannot express the name of this function; empty if it can."""
    try:
        return "" if function.decode() else "the name of a function of memodb is not empty"
    except UnicodeDecodeError:
        return f"names in memodb are UTF-8 text, and {function!r} is not"
