"""Requests and replies over one NNG pipe, as a REQ socket has them: over TCP, a socket file or WebSocket.

A request waits until its reply comes. If that takes long it is sent again, word for word: a broker that still has it
takes no notice, and one that has dropped it in silence begins anew.
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

# Seconds until a request is sent again: NNG's own default. Looked for no more often than once a second, as NNG does.
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


class Request:
    """What was asked, so that it can be asked again."""

    __slots__ = ("due_at", "header", "patience", "payload", "reply")

    def __init__(self, header: bytes, payload: bytes, reply: Reply, patience: float) -> None:
        self.header = header
        self.payload = payload
        self.reply = reply
        self.patience = patience  # seconds until it is sent again
        self.due_at = 0.0


Requests = dict[bytes, Request]  # by request id, in the order of asking


class Pipe:
    """One connection. Requests may be made before it is open, and outlive it: the next pipe takes them over."""

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
        """Connect, greet and be greeted; then say what was asked meanwhile."""
        await self.connection.open(self._address, tls)
        self.connection.write(self._pipe.greeting)
        if not self._pipe.greeted:  # a broker may greet first
            await self.connection.answer()
        self._is_open = True
        for id, request in self.requests.items():
            self._send(id, request)

    def request(self, header: bytes, payload: bytes, reply: Reply, patience: float = RESEND_SECONDS) -> bytes:
        """Ask; `reply` is called once at most. Returns the request's id."""
        id = sp_client.request_id(self._next_id)
        while id in self.requests:
            self._next_id += 1
            id = sp_client.request_id(self._next_id)
        self._next_id += 1
        request = self.requests[id] = Request(header, payload, reply, patience)
        if self._is_open:
            self._send(id, request)
        return id

    async def close(self) -> None:
        """Hang up."""
        self._stop()
        await self.connection.close()

    def abandon(self) -> None:
        """Hang up at once."""
        self._stop()
        self.connection.abandon()

    def _send(self, id: bytes, request: Request) -> None:
        loop = asyncio.get_running_loop()
        request.due_at = loop.time() + request.patience
        for part in self._pipe.framed(id + request.header, request.payload):
            self.connection.write(part)
        if self._timer is None:
            self._timer = loop.call_at(request.due_at, self._look)

    def _look(self) -> None:
        """Send again what has waited for too long."""
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
        if request is not None:  # otherwise a second reply, or one that nobody waits for any more
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


def unspeakable(function: bytes) -> str:
    """Why this cannot be the name of a service; empty if it can."""
    try:
        return "" if function.decode() else "a service of memodb has a name"
    except UnicodeDecodeError:
        return f"the function {function!r} is not UTF-8, and names in memodb are text"
