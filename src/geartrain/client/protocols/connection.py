"""A byte stream to a server, over TCP or a Unix socket. What is written in one iteration of the loop leaves together.

A protocol has a ServerConnection and passes it two functions: one for bytes that arrive, one for the loss of the
connection.

    class Client(ClientProtocol):
        def __init__(self, address: Address, lost: Lost) -> None:
            super().__init__(address, lost)
            self._connection = ServerConnection(self._received, self._broken)

        async def open(self) -> None:
            await self._connection.open(self.address, self.tls)
            self._connection.write(hello)
            await self._connection.answer()  # returns when `_received` has called `self._connection.answered()`

        def _received(self, data: bytes) -> None: ...     # a WireError raised here closes the connection
        def _broken(self, error: Exception) -> None: ...  # call `gone` of every listener, then `self.lost(error)`

`broken` is called at most once: not while `open` or `answer` waits, since those raise the error, and not after `close`
or `abandon`.
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
# How long `close` waits until the last bytes have left, for a server that does not read.
CLOSE_SECONDS: Final = 5.0
# More bytes than this are handed over piece by piece instead of being copied into one.
_JOIN_UP_TO: Final = 256 * 1024
# A server that vanishes from a silent connection is noticed after idle + interval * count seconds; the server's
# own doors use the same numbers.
_KEEPALIVE: Final = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}

Received = Callable[[bytes], None]
Broken = Callable[[Exception], None]


class ServerConnection(asyncio.Protocol):
    """One connection. It can be opened once."""

    def __init__(self, received: Received, broken: Broken) -> None:
        self._received = received
        self._broken: Broken | None = broken  # None: closed by this side
        self._loop: asyncio.AbstractEventLoop
        self._transport: asyncio.Transport | None = None
        self._out: list[bytes] = []
        self._opened = False
        self._answer: asyncio.Future[None] | None = None  # set by the server's first answer, while `answer` waits
        self._ended = False
        self._reason: Exception = ServerGoneError("the connection is closed")  # why it ended
        self._end: asyncio.Future[None] | None = None  # set when the socket is closed, while `close` waits

    async def open(self, address: Address, tls: ssl.SSLContext | None = None) -> None:
        """Connect within CONNECT_SECONDS; an OSError says why it failed."""
        self._loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                if address.path and not address.host:
                    await self._loop.create_unix_connection(lambda: self, address.path, ssl=tls)
                else:
                    await self._loop.create_connection(lambda: self, address.host, address.port, ssl=tls)
        except TimeoutError:
            raise ConnectionError(f"{address} did not accept a connection within {CONNECT_SECONDS:g} seconds") from None
        if self._ended:
            raise self._reason
        self._opened = True

    async def answer(self) -> None:
        """Wait for the server's first answer; if none comes within CONNECT_SECONDS, close the connection and raise."""
        if self._ended:
            raise self._reason
        self._answer = self._loop.create_future()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._answer
        except TimeoutError:
            self.abandon()
            raise ConnectionError(f"the server did not answer within {CONNECT_SECONDS:g} seconds") from None
        except BaseException:
            self.abandon()
            raise
        finally:
            self._answer = None
        if self._ended:  # between the answer and this task's turn
            raise self._reason

    def answered(self) -> None:
        """Let `answer` return."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(None)

    def write(self, data: bytes) -> None:
        """Send at the end of this iteration of the loop."""
        out = self._out
        if not out:
            self._loop.call_soon(self.flush)
        out.append(data)

    def flush(self) -> None:
        """Send what is queued, now."""
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
        """Send what is queued, close, and wait until the socket is closed; `broken` is not called."""
        self._broken = None
        if self._transport is None or self._ended:
            return
        self.flush()
        self._end = self._loop.create_future()
        self._transport.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._end
            return
        self._transport.abort()

    def fail(self, error: Exception) -> None:
        """Close at once, and report this error to `broken`: the server violated the protocol or is unresponsive."""
        if self._transport is not None:
            self._transport.abort()
        self._finish(error)

    def abandon(self) -> None:
        """Close at once; `broken` is not called."""
        self._broken = None
        if self._transport is not None:
            self._transport.abort()

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport, and switch on keepalive."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's do not subclass it
        self._keep_alive(transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        """Pass bytes on; a WireError closes the connection."""
        if self._ended:
            return
        try:
            self._received(data)
        except WireError as error:
            self.fail(error)

    def eof_received(self) -> bool:
        """Close: the server will answer nothing more."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """Report the loss, unless this side closed the connection."""
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
    def _keep_alive(sock: socket.socket | None) -> None:
        """Have the kernel notice a server that vanishes without closing the connection."""
        if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
            return
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE.items():
            option = getattr(socket, name, None)
            if option is not None:
                sock.setsockopt(socket.IPPROTO_TCP, option, value)
