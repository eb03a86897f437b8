"""What all doors share: listening sockets, the set of connections, and a check for connections that stall."""

import asyncio
import contextlib
import dataclasses
import errno
import functools
import math
import os
import socket
import ssl
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from mypy_extensions import mypyc_attr

from geartrain.address import PATH_SCHEMES, Address
from geartrain.doors.access import Access
from geartrain.doors.tls_listener import TlsListener
from geartrain.rights import Identity

if TYPE_CHECKING:
    from geartrain.doors.connection import Connection
    from geartrain.doors.connection_limit import ConnectionLimit
    from geartrain.runtime.tick import TickLoop
    from geartrain.runtime.timers import DelayedCall

_CHECKS_PER_TIMEOUT: Final = 2
_CREDENTIALS: Final = struct.Struct("3i")  # pid, uid, gid


@dataclasses.dataclass
class Limits:
    """What one connection may use, so that no peer can harm the others."""

    max_packet: int = 64 * 1024 * 1024  # bytes of one packet
    # Bytes that may wait for a peer that does not read; one packet may exceed it.
    write_limit: int = 256 * 1024 * 1024
    # Seconds after which a peer is disconnected that has output waiting and reads nothing of it.
    slow_reader_timeout: float = 60.0
    # Bytes of incomplete packets of all peers together.
    max_inflight_bytes: int = 1024 * 1024 * 1024
    # Seconds for which the packets of one connection are handled before others have their turn.
    turn: float = 0.002
    # Seconds after which a peer that began a packet and sends no more of it is disconnected.
    stall_timeout: float = 60.0
    # Seconds that a worker which sends heartbeats may be silent while it has jobs; 0: for ever.
    worker_lease: float = 60.0


@dataclasses.dataclass
class SocketOptions:
    """Options of listening sockets; accepted sockets inherit them."""

    backlog: int = 1024
    keepalive: bool = True
    keepalive_idle: int = -1  # seconds; -1: the system's default
    keepalive_interval: int = -1
    keepalive_count: int = -1
    tls: ssl.SSLContext | None = None  # of an address with TLS


_ANSWER_SECONDS: Final = 1.0  # until a caller that is no longer valid has read its last answer
_KEEPALIVE_OPTIONS = (
    ("keepalive_idle", "TCP_KEEPIDLE"),
    ("keepalive_interval", "TCP_KEEPINTVL"),
    ("keepalive_count", "TCP_KEEPCNT"),
)


class ProcessControl(Protocol):
    """What peers may ask of the server process; the server implements it."""

    @property
    def log_level_name(self) -> str:
        """gearmand's name of the log level."""

    def shutdown(self, graceful: bool) -> None:
        """Stop: at once, or when the running jobs are finished."""

    def not_ready(self) -> str:
        """Why the server is not ready for jobs; empty if it is."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Door:
    """The entrance for one protocol. A subclass makes its connections."""

    name = "door"

    def __init__(self, tick_loop: "TickLoop", limits: Limits) -> None:
        self.tick_loop = tick_loop
        self.limits = limits
        self.access = Access()
        self.connections: set[Connection] = set()
        self.handshakes: set[asyncio.Task[None]] = set()  # of peers with TLS that are no connections yet
        self.connection_limit: ConnectionLimit | None = None  # of all doors together; the server sets it
        self.is_closed = False  # the server stops: what a new connection would be told is not stored any more
        self._servers: list[asyncio.Server | TlsListener] = []
        self._paths: list[str] = []  # of socket files, which are removed at the end
        self._next_check: DelayedCall | None = None

    def use_access(self, access: Access) -> None:
        """Ask this about peers; called before the first address is opened."""
        self.access = access

    def end(
        self, identities: frozenset[Identity], is_revoked: Callable[[Any], bool], caller: Identity | None = None
    ) -> int:
        """Close the connections of identities that are no longer valid, and those whose certificate is revoked.

        `is_revoked` is asked about transports. Connections of the caller, who has asked for this, are closed when it
        has the answer. Returns how many there were.
        """
        callers = frozenset(() if caller is None else (caller,))
        ended = 0
        for connection in list(self.connections):
            if connection.belongs_to(identities):
                why = "its user was changed or revoked"
            elif is_revoked(connection.transport):
                why = "its certificate was revoked"
            else:
                continue
            ended += 1
            if connection.belongs_to(callers):
                self.tick_loop.timers.call_later(_ANSWER_SECONDS, functools.partial(self._drop, connection, why))
            else:
                connection.drop(why)
        return ended

    def _drop(self, connection: "Connection", why: str) -> None:
        if connection in self.connections:
            connection.drop(why)

    def connect(self, address: Address) -> "Connection":
        """A connection for a new peer at this address."""
        raise NotImplementedError

    async def open(self, address: Address, sockets: SocketOptions) -> Address:
        """Listen; returns the address with the port that was bound. An OSError if that fails."""
        loop = self.tick_loop.loop
        bound = address
        if address.scheme in PATH_SCHEMES:
            await self._listen(address, _path_listener(address.path), sockets)
        else:
            infos = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            for family, _, _, _, host in dict.fromkeys(infos):
                listener = _listener(family, (host[0], bound.port, *host[2:]), sockets)
                bound = bound._replace(port=listener.getsockname()[1])
                await self._listen(bound, listener, sockets)
        if self._next_check is None:
            self._check_later()
        return bound

    async def _listen(self, address: Address, listener: socket.socket, sockets: SocketOptions) -> None:
        factory: Any = functools.partial(self._accept, address, self.anonymous(address))
        if address.scheme in PATH_SCHEMES:
            self._paths.append(address.path)
        if sockets.tls is not None:
            tls_listener = TlsListener(self, listener, sockets.tls, factory)
            tls_listener.listen(sockets.backlog)
            self._servers.append(tls_listener)
            return
        make = (
            self.tick_loop.loop.create_unix_server
            if address.scheme in PATH_SCHEMES
            else self.tick_loop.loop.create_server
        )
        server = await make(factory, sock=listener, backlog=sockets.backlog)
        self._servers.append(server)

    def _accept(self, address: Address, anonymous: Identity | None) -> "Connection":
        connection = self.connect(address)
        connection.identity = anonymous
        return connection

    def anonymous(self, address: Address) -> Identity | None:
        """The identity of peers at this address that prove no other; None: they may do everything."""
        return self.access.anonymous(address)

    def identify(self, anonymous: Identity | None, transport: Any) -> Identity | None:
        """The identity that a new connection proves by itself, or else that of its address."""
        certificate = transport.get_extra_info("peercert")
        if certificate:
            return self.access.by_certificate(certificate) or anonymous
        connected = transport.get_extra_info("socket")
        if connected is not None and connected.family == socket.AF_UNIX:
            return self.access.by_account(_account_id(connected)) or anonymous
        name = transport.get_extra_info("peername")
        return self.access.at_host(anonymous, name[0]) if isinstance(name, tuple) else anonymous

    def stop_listening(self) -> None:
        """Accept no more connections; open ones stay."""
        for server in self._servers:
            server.close()
        self._servers.clear()
        for path in self._paths:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        self._paths.clear()

    def close(self) -> None:
        """Stop listening, and close every connection after what is left to write; no connection begins any more."""
        self.is_closed = True
        self.stop_listening()
        if self._next_check is not None:
            self._next_check.cancel()
            self._next_check = None
        for handshake in list(self.handshakes):
            handshake.cancel()
        for connection in list(self.connections):
            connection.close()

    def abort(self) -> None:
        """Close every connection at once; what is left to write, or waits for the store, is lost."""
        for connection in list(self.connections):
            connection.transport.abort()

    def _check_later(self) -> None:
        self._next_check = self.tick_loop.timers.call_later(self._check_interval(), self._check_progress)

    def _check_interval(self) -> float:
        return min(self.limits.stall_timeout, self.limits.slow_reader_timeout) / _CHECKS_PER_TIMEOUT

    def _check_progress(self) -> None:
        interval = self._check_interval()
        stall_checks = math.ceil(self.limits.stall_timeout / interval)
        reader_checks = math.ceil(self.limits.slow_reader_timeout / interval)
        for connection in list(self.connections):
            connection.check_reader(reader_checks)
            connection.check_progress(stall_checks)
        self._check_later()


def _listener(family: int, address: tuple[Any, ...], sockets: SocketOptions) -> socket.socket:
    """A bound socket with these options."""
    # With the protocol's name: asyncio's own loop sets TCP_NODELAY only then.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if sockets.keepalive:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for setting, option in _KEEPALIVE_OPTIONS:
            seconds = getattr(sockets, setting)
            if seconds >= 0 and hasattr(socket, option):
                listener.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), seconds)
        listener.bind(address)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def _path_listener(path: str) -> socket.socket:
    """A bound socket file. One that a dead server has left behind is replaced; one that answers is in use."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
            try:
                other.connect(path)
            except ConnectionRefusedError:
                os.unlink(path)
            except FileNotFoundError:
                pass
            else:
                raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        listener.bind(path)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def _account_id(connected: Any) -> int:
    """The id of the system's user at the other end of a socket file; -1 where the system does not tell."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return -1
    credentials = connected.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(credentials)[1])
