"""The servers of a client: which one to use, and which one when that cannot be reached.

A client of several servers uses one of them, chosen at random so that many clients spread, as long as it is connected.
Jobs with a unique key go to the server that the key belongs to: every client computes the same order of servers for a
key, so that equal keys meet on one server and coalesce. Connections are opened when they are first needed.
"""

import asyncio
import hashlib
import os
import random
import ssl
from collections.abc import Sequence

from geartrain import backoff
from geartrain.address import Address
from geartrain.backoff import ReconnectDelay
from geartrain.client.credentials import Credentials
from geartrain.client.protocols.base import ClientProtocol
from geartrain.errors import AuthenticationError, ClientError, ServerGoneError, UnsupportedError, WireError

# What opening or using a connection may raise.
CONNECTION_ERRORS = (OSError, ClientError, WireError)


class PooledServer:
    """One server, and the open connection to it if there is one."""

    def __init__(self, address: Address, protocol: type[ClientProtocol], credentials: Credentials) -> None:
        self.address = address
        self.protocol: ClientProtocol | None = None  # while connected
        self.retry_at = 0.0  # the loop's time before which no connection is attempted
        self.last_error: Exception | None = None
        self._class = protocol
        self._credentials = credentials
        self._delay = ReconnectDelay()
        self._opened_at = 0.0
        self._opening: asyncio.Task[ClientProtocol] | None = None
        self._lost_early: Exception | None = None  # why the connection was lost while it was being opened

    async def open(self) -> ClientProtocol:
        """Connect, unless connected already; concurrent callers share one attempt."""
        if self.protocol is not None:
            return self.protocol
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
        return await asyncio.shield(self._opening)

    async def close(self) -> None:
        """Close the connection."""
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        protocol, self.protocol = self.protocol, None
        if protocol is not None:
            await protocol.close()

    async def _open(self) -> ClientProtocol:
        protocol = self._class(self.address, self._lost)
        protocol.tls, protocol.token = self._credentials.tls, self._credentials.token
        self._lost_early = None
        try:
            await protocol.open()
            if self._lost_early is not None:
                raise ServerGoneError(f"the connection broke while it was being opened: {self._lost_early}")
        except CONNECTION_ERRORS as error:
            self._failed(error)
            raise
        except asyncio.CancelledError:
            await protocol.close()
            raise
        finally:
            self._opening = None
        self.protocol = protocol
        self._opened_at = asyncio.get_running_loop().time()
        return protocol

    def _lost(self, error: Exception) -> None:
        if self.protocol is None:
            self._lost_early = error
            return
        self.protocol = None
        if asyncio.get_running_loop().time() - self._opened_at > backoff.GOOD_CONNECTION:
            self._delay.reset()
        self._failed(error)

    def _failed(self, error: Exception) -> None:
        self.last_error = error
        self.retry_at = asyncio.get_running_loop().time() + self._delay.next()


class ServerPool:
    """All servers of a client."""

    def __init__(self, servers: Sequence[PooledServer], first: int | None = None) -> None:
        self._servers = list(servers)
        # For jobs without a unique key.
        self._current = random.randrange(len(self._servers)) if first is None else first

    @property
    def servers(self) -> Sequence[PooledServer]:
        return self._servers

    def ready(self, unique: bytes) -> PooledServer | None:
        """The server for a job with this unique key, if it is connected."""
        servers = self._servers
        server = servers[self._current] if not unique or len(servers) == 1 else self._by_key(unique)[0]
        return server if server.protocol is not None else None

    async def reach(self, unique: bytes, patience: float) -> PooledServer:
        """Connect to a server within `patience` seconds, or raise a ServerGoneError that says what was tried."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience
        while True:
            server = await self._try_all(unique)
            if server is not None:
                return server
            next_attempt = min(server.retry_at for server in self._servers)
            if next_attempt > deadline:
                raise self._unreachable(patience)
            await asyncio.sleep(max(next_attempt - loop.time(), 0.0))

    def beginning_with(self, server: PooledServer) -> "ServerPool":
        """The same servers, of which this one is the first to be used."""
        return ServerPool(self._servers, self._servers.index(server))

    def after(self, server: PooledServer) -> PooledServer:
        """The next one in turn."""
        return self._servers[(self._servers.index(server) + 1) % len(self._servers)]

    async def close(self) -> None:
        """Close every connection."""
        for server in self._servers:
            await server.close()

    async def _try_all(self, unique: bytes) -> PooledServer | None:
        now = asyncio.get_running_loop().time()
        for server in self._preferred(unique):
            if server.protocol is None and server.retry_at <= now:
                try:
                    await server.open()
                except (UnsupportedError, AuthenticationError):
                    raise
                except CONNECTION_ERRORS:
                    continue
            if server.protocol is not None:
                if not unique:
                    self._current = self._servers.index(server)
                return server
        return None

    def _preferred(self, unique: bytes) -> list[PooledServer]:
        if unique:
            return self._by_key(unique)
        return self._servers[self._current :] + self._servers[: self._current]

    def _by_key(self, unique: bytes) -> list[PooledServer]:
        """Rendezvous hashing: the same order for the same key in every program, however it lists its servers."""
        return sorted(self._servers, key=lambda server: _weight(unique, server.address))

    def _unreachable(self, patience: float) -> ServerGoneError:
        tried = "; ".join(f"{server.address}: {_text(server.last_error)}" for server in self._servers)
        waited = f" within {patience:g} seconds" if patience else ""
        return ServerGoneError(f"no server could be reached{waited} ({tried})")


def _weight(unique: bytes, address: Address) -> bytes:
    return hashlib.blake2b(unique + b"\0" + str(address).encode(), digest_size=8).digest()


def _text(error: Exception | None) -> str:
    if isinstance(error, ssl.SSLError):  # its errno is OpenSSL's, not the system's
        return f"TLS failed: {getattr(error, 'verify_message', '') or error.reason or error}"
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)  # asyncio's own text only names the call
    return str(error) or type(error).__name__
