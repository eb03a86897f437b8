"""A byte stream to a server, for links over TCP and socket files: what gathers in one turn of the loop leaves at once.

A link has a `Line` and gives it two calls: one for bytes that arrived, one for the end of the connection.

    class Client(ClientLink):
        def __init__(self, address: Address, lost: Lost) -> None:
            super().__init__(address, lost)
            self.line = Line(self.received, self.broken)

        async def open(self) -> None:
            await self.line.open(self.address, self.tls)
            self.line.write(hello)
            await self.line.answer()                      # returns when `received` has called `self.line.answered()`

        def received(self, data: bytes) -> None: ...      # a WireError raised here ends the line, and is its reason
        def broken(self, error: Exception) -> None: ...   # tell every sink `gone`, then `self.lost(error)`

`broken` is called once at most: not while `open` or `answer` is waited for, since those raise then, and not after
`close` or `abandon`.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from typing import Final, cast

from geartrain.address import Address
from geartrain.errors import ServerGoneError, WireError

CONNECT_SECONDS: Final = 10.0
# Time for the last words to leave when a line is closed; a server that does not read gets no more.
FAREWELL_SECONDS: Final = 5.0
# Larger gatherings are handed over piece by piece instead of being copied into one.
_JOIN_UP_TO: Final = 256 * 1024
# When a vanished server is noticed on a silent connection: idle + interval * count seconds, as the server's own.
_KEEPALIVE: Final = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}

Received = Callable[[bytes], None]
Broken = Callable[[Exception], None]


class ServerConnection(asyncio.Protocol):
    """One connection. It is opened once, and of no use after its end."""

    def __init__(self, received: Received, broken: Broken) -> None:
        self._received = received
        self._broken: Broken | None = broken  # None: nobody is told any more
        self._loop: asyncio.AbstractEventLoop
        self._transport: asyncio.Transport | None = None
        self._out: list[bytes] = []
        self._opened = False
        self._answer: asyncio.Future[None] | None = None  # the server's first answer, while a link waits for it
        self._ended = False
        self._reason: Exception = ServerGoneError("the connection is closed")  # why it ended
        self._end: asyncio.Future[None] | None = None  # made by who waits for the end

    async def open(self, address: Address, tls: ssl.SSLContext | None = None) -> None:
        """Connect within a bounded time; OSError says why it cannot be done."""
        self._loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                if address.path and not address.host:
                    await self._loop.create_unix_connection(lambda: self, address.path, ssl=tls)
                else:
                    await self._loop.create_connection(lambda: self, address.host, address.port, ssl=tls)
        except TimeoutError:
            raise ConnectionError(f"{address} cannot be reached within {CONNECT_SECONDS:g} seconds") from None
        if self._ended:
            raise self._reason
        self._opened = True

    async def answer(self) -> None:
        """Wait for the server's first answer, within a bounded time; if none comes, the line is closed."""
        if self._ended:
            raise self._reason
        self._answer = self._loop.create_future()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._answer
        except TimeoutError:
            self.abandon()
            raise ConnectionError(f"the server said nothing for {CONNECT_SECONDS:g} seconds") from None
        except BaseException:
            self.abandon()
            raise
        finally:
            self._answer = None
        if self._ended:  # after the answer, and before we were told of it
            raise self._reason

    def answered(self) -> None:
        """The server has answered."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(None)

    def write(self, data: bytes) -> None:
        """Say something at the end of this turn of the loop."""
        out = self._out
        if not out:
            self._loop.call_soon(self.flush)
        out.append(data)

    def flush(self) -> None:
        """Say what has gathered, now."""
        out = self._out
        if not out:
            return
        self._out = []
        transport = self._transport
        if transport is None or self._ended:
            return
        if len(out) == 1:
            transport.write(out[0])
        elif sum(map(len, out)) <= _JOIN_UP_TO:
            transport.write(b"".join(out))
        else:
            transport.writelines(out)

    async def close(self) -> None:
        """Send what has gathered, hang up, and wait until the socket is closed; nobody is told."""
        self._broken = None
        if self._transport is None or self._ended:
            return
        self.flush()
        self._end = self._loop.create_future()
        self._transport.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL_SECONDS):
                await self._end
            return
        self._transport.abort()

    def fail(self, error: Exception) -> None:
        """The server makes no sense: hang up at once, and tell the link why."""
        if self._transport is not None:
            self._transport.abort()
        self._finish(error)

    def abandon(self) -> None:
        """Hang up at once; nobody is told."""
        self._broken = None
        if self._transport is not None:
            self._transport.abort()

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection stands."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are none by class, only by what they can
        self._keep_alive(transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        """Bytes arrived."""
        if self._ended:
            return
        try:
            self._received(data)
        except WireError as error:
            self.fail(error)

    def eof_received(self) -> bool:
        """The server says no more: what is under way will not be answered."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """The socket is closed."""
        if self._end is not None and not self._end.done():
            self._end.set_result(None)
        self._finish(error or ServerGoneError("the server closed the connection"))

    def _finish(self, error: Exception) -> None:
        if self._ended:
            return
        self._ended = True
        self._reason = error
        self._out.clear()
        if self._answer is not None:
            if not self._answer.done():
                self._answer.set_exception(error)
            return
        broken, self._broken = self._broken, None
        if broken is not None and self._opened:
            broken(error)

    @staticmethod
    def _keep_alive(plain: socket.socket | None) -> None:
        """Notice a server that vanishes without a word."""
        if plain is None or plain.family not in (socket.AF_INET, socket.AF_INET6):
            return
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE.items():
            option = getattr(socket, name, None)
            if option is not None:
                plain.setsockopt(socket.IPPROTO_TCP, option, value)
