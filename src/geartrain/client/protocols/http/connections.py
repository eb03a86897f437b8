"""Requests and answers over HTTP/1.1, on connections that are kept for the next request.

A server closes idle connections, which is no failure: only an unanswered request is one.
"""

import asyncio
import ssl
import urllib.parse
from collections.abc import AsyncIterator
from typing import Any, Final, NamedTuple

import msgspec

from geartrain.address import Address
from geartrain.client.protocols.base import RESULT_ERRORS, authentication_error
from geartrain.client.protocols.connection import ServerConnection
from geartrain.errors import AuthenticationError, ClientError, RefusedError, ServerGoneError, WireError
from geartrain.wire.http_client import AnswerReader

API: Final = "/api/v1"
# Requests at the same time, each on a connection of its own; more have to wait.
MOST_CONNECTIONS: Final = 256
# Servers close idle connections (Geartrain after 75 seconds); one that was idle for this long is not used again.
_IDLE_SECONDS: Final = 45.0
_FIRST_ERROR: Final = 400  # statuses from here on are errors
_UNAUTHORIZED: Final = 401


class HttpAnswer(NamedTuple):
    """A server's answer."""

    status: int
    body: bytes

    def json(self) -> Any:
        """The decoded body; a ClientError if it is not JSON."""
        try:
            return msgspec.json.decode(self.body)
        except msgspec.DecodeError:
            raise ClientError(f"the answer {self.status} is not JSON: is this a Geartrain server?") from None

    def problem(self) -> str:
        """The error text in the body."""
        try:
            return str(msgspec.json.decode(self.body)["detail"])
        except (msgspec.DecodeError, KeyError, TypeError):
            return f"the server answered {self.status}"

    def checked(self) -> "HttpAnswer":
        """This answer; an error if its status is one: about a result or a token, or else a RefusedError."""
        if self.status >= _FIRST_ERROR:
            raise self.error()
        return self

    def error(self) -> ClientError:
        """The error that this answer is."""
        kind = AuthenticationError if self.status == _UNAUTHORIZED else RefusedError
        return RESULT_ERRORS.get(self._kind(), kind)(self.problem())

    def _kind(self) -> str:
        try:
            return str(msgspec.json.decode(self.body)["kind"])
        except (msgspec.DecodeError, KeyError, TypeError):
            return ""


class HttpClientConnection:
    """One connection, with one request at a time."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._connection = ServerConnection(self._received, self._broken)
        self._reader = AnswerReader()
        self._body: list[bytes] = []
        self._answer: asyncio.Future[HttpAnswer] | None = None  # while `ask` waits
        self._parts: asyncio.Queue[bytes] | None = None  # receives the parts of a streamed body
        self.usable = False  # for another request
        self.used_at = 0.0

    async def open(self, tls: ssl.SSLContext | None) -> None:
        """Connect."""
        await self._connection.open(self._address, tls)
        self.usable = True

    async def ask(self, request: bytes) -> HttpAnswer:
        """Send a request, and wait for its answer. Cancelling closes the connection."""
        loop = asyncio.get_running_loop()
        self._answer = loop.create_future()
        self._connection.write(request)
        try:
            answer = await self._answer
        except BaseException:
            self.abandon()
            raise
        finally:
            self._answer = None
        self.used_at = loop.time()
        return answer

    async def stream(self, request: bytes) -> AsyncIterator[bytes]:
        """Send a request, yield the parts of the body as they arrive, then close the connection."""
        parts = self._parts = asyncio.Queue()
        answer = asyncio.ensure_future(self.ask(request))
        answer.add_done_callback(lambda _: parts.put_nowait(b""))
        try:
            while part := await parts.get():
                yield part
            (await answer).checked()
        finally:
            answer.cancel()
            await asyncio.gather(answer, return_exceptions=True)
            self.abandon()

    def abandon(self) -> None:
        """Close at once; an unanswered request fails."""
        self._connection.abandon()
        self._fail(ServerGoneError("this side closed the connection"))

    async def close(self) -> None:
        """Close the connection."""
        self.usable = False
        await self._connection.close()

    def _received(self, data: bytes) -> None:
        self._reader.feed(data)
        self._read()

    def _read(self) -> None:
        """Keep or pass on what has arrived of the answer; at its end, let `ask` return it."""
        while (part := self._reader.next_part()) is not None:
            if not part:
                self._complete()
            elif self._parts is not None and self._reader.status < _FIRST_ERROR:
                self._parts.put_nowait(part)
            else:
                self._body.append(part)

    def _complete(self) -> None:
        if not self._reader.keeps_connection:
            self.usable = False
        body, self._body = b"".join(self._body), []
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(HttpAnswer(self._reader.status, body))

    def _broken(self, error: Exception) -> None:
        if isinstance(error, ServerGoneError):  # the server has closed it, which may be the end of a body
            self._reader.end_input()
            self._read()
        self._fail(error)

    def _fail(self, error: Exception) -> None:
        self.usable = False
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)


class HttpClientPool:
    """All HTTP connections to one server."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._tls: ssl.SSLContext | None = None
        self._idle: list[HttpClientConnection] = []
        self._busy: set[HttpClientConnection] = set()
        self._limit = asyncio.Semaphore(MOST_CONNECTIONS)
        self._closed = False
        host = f"[{address.host}]" if ":" in address.host else address.host
        self._head = f" HTTP/1.1\r\nHost: {host}:{address.port}\r\n".encode()

    async def open(self, tls: ssl.SSLContext | None, token: str) -> None:
        """Check that a Geartrain server answers, and accepts the token."""
        self._tls = tls
        if token:
            self._head += f"Authorization: Bearer {token}\r\n".encode()
        answer = await self._ask(self._request("GET", f"{API}/session", None, None))
        if answer.status == _UNAUTHORIZED:
            raise authentication_error(self._address, token, answer.problem())
        if not isinstance(answer.checked().json(), dict):
            raise ClientError(f"{self._address} is no Geartrain server")

    async def ask(self, method: str, path: str, body: Any = None, raw: bytes | None = None) -> HttpAnswer:
        """Send a request with a JSON body or plain bytes; a ServerGoneError if it is not answered."""
        request = self._request(method, path, body, raw)
        async with self._limit:
            try:
                return await self._ask(request)
            except (OSError, WireError) as error:
                raise ServerGoneError(f"{self._address} does not answer: {error}") from error

    async def stream(self, path: str) -> AsyncIterator[bytes]:
        """GET a long-lived stream, on a connection of its own; a ServerGoneError if that breaks."""
        connection = HttpClientConnection(self._address)
        try:
            await connection.open(self._tls)
            self._busy.add(connection)
            async for part in connection.stream(self._request("GET", path, None, None)):
                yield part
        except (OSError, WireError, ServerGoneError) as error:
            raise ServerGoneError(f"the connection to {self._address} was lost") from error
        finally:
            self._busy.discard(connection)

    async def close(self) -> None:
        """Close every connection; unanswered and later requests fail."""
        idle, self._idle = self._idle, []
        self.abandon()
        await asyncio.gather(*(connection.close() for connection in idle))

    def abandon(self) -> None:
        """Close every connection at once."""
        self._closed = True
        for connection in (*self._busy, *self._idle):
            connection.abandon()
        self._idle.clear()

    async def _ask(self, request: bytes) -> HttpAnswer:
        connection = await self._connection()
        self._busy.add(connection)
        try:
            return await connection.ask(request)
        finally:
            self._busy.discard(connection)
            if connection.usable:
                self._idle.append(connection)

    async def _connection(self) -> HttpClientConnection:
        connection = await self._idle_or_new_connection()
        if self._closed:
            connection.abandon()
            raise ServerGoneError(f"the connection to {self._address} is closed")
        return connection

    async def _idle_or_new_connection(self) -> HttpClientConnection:
        too_old = asyncio.get_running_loop().time() - _IDLE_SECONDS
        while self._idle:
            connection = self._idle.pop()
            if connection.usable and connection.used_at > too_old:
                return connection
            connection.abandon()
        connection = HttpClientConnection(self._address)
        await connection.open(self._tls)
        return connection

    def _request(self, method: str, path: str, body: Any, raw: bytes | None) -> bytes:
        kind = b"application/octet-stream" if raw is not None else b"application/json"
        content = raw if raw is not None else b"" if body is None else msgspec.json.encode(body)
        head = b"%b%bContent-Type: %b\r\nContent-Length: %d\r\n\r\n"
        return head % (f"{method} {path}".encode(), self._head, kind, len(content)) + content


def quoted(name: bytes) -> str:
    """Bytes as a segment of a path."""
    return urllib.parse.quote(name, safe="")
