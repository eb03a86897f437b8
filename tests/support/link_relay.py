"""Stands between the servers of a cluster, and cuts their links or passes them on in one direction only.

    with LinkRelays(["one", "two"]) as relays:
        ...                             # servers that advertise relays["one"].port and relays["two"].port
        relays.cut("one")               # all links of that server; new ones end at once
        relays.restore()

One of two servers dials the other, so a server's links go through its own relay and through those of others: who has
dialled is read from the first frame. What is held back in one direction arrives after `restore`, if both ends are still
open then.
"""

import contextlib
import enum
import socket
import threading
from collections.abc import Callable, Iterable
from typing import Self

from geartrain.wire import peer as wire
from tests.support import process, serving

PATIENCE = process.PATIENCE
_CHUNK = 65536
_HELLO_LIMIT = 4096  # bytes


class Direction(enum.Enum):
    """As seen from the server whose links are held."""

    IN = "in"
    OUT = "out"


class _Connection:
    """One link: the socket of the server that dialled, and the one to the other server, by their names."""

    def __init__(self, dialler: str, near: socket.socket, accepter: str, far: socket.socket) -> None:
        self.sockets = {dialler: near, accepter: far}
        self.is_open = True

    def other(self, name: str) -> str:
        return next(other for other in self.sockets if other != name)

    def cut(self) -> None:
        self.is_open = False
        for end in self.sockets.values():
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class LinkRelay:
    """In front of the peer door of one server."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.target = 0  # the port of the peer door
        self.dials = 0  # connections that were passed on to it
        self.listener = socket.create_server((serving.HOST, 0))

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])


class LinkRelays:
    """The relays of all servers of a cluster."""

    def __init__(self, names: Iterable[str]) -> None:
        self._relays = {name: LinkRelay(name) for name in names}
        self._changed = threading.Condition()
        self._cut: set[str] = set()  # servers
        self._held: set[tuple[str, Direction]] = set()
        self._connections: list[_Connection] = []
        self._threads: list[threading.Thread] = []

    def __getitem__(self, name: str) -> LinkRelay:
        return self._relays[name]

    def cut(self, name: str) -> None:
        """Cut all links of a server, and every new one, until `restore`."""
        with self._changed:
            self._cut.add(name)
            for connection in self._connections:
                if name in connection.sockets:
                    connection.cut()

    def hold(self, name: str, direction: Direction) -> None:
        """Pass on nothing more to or from a server until `restore`. Connections stay open."""
        with self._changed:
            self._held.add((name, direction))

    def restore(self) -> None:
        with self._changed:
            self._cut.clear()
            self._held.clear()
            self._changed.notify_all()

    def linked(self, name: str) -> set[str]:
        """The servers to which this one has a connection."""
        with self._changed:
            links = [connection for connection in self._connections if connection.is_open]
            return {link.other(name) for link in links if name in link.sockets}

    def __enter__(self) -> Self:
        for relay in self._relays.values():
            self._start(self._accept, relay)
        return self

    def __exit__(self, *_: object) -> None:
        for relay in self._relays.values():
            with contextlib.suppress(OSError):
                relay.listener.shutdown(socket.SHUT_RDWR)
        self.restore()
        for name in self._relays:
            self.cut(name)
        for thread in self._threads:
            thread.join(PATIENCE)
        for relay in self._relays.values():
            relay.listener.close()

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, relay: LinkRelay) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = relay.listener.accept()
                self._start(self._connect, relay, near)

    def _connect(self, relay: LinkRelay, near: socket.socket) -> None:
        with near, contextlib.suppress(OSError):
            near.settimeout(PATIENCE)
            hello, name = _read_hello(near)
            if name is None:
                return
            with socket.create_connection((serving.HOST, relay.target), PATIENCE) as far:
                connection = _Connection(name, near, relay.name, far)
                if not self._admit(relay, connection):
                    return
                for end in (near, far):
                    end.settimeout(None)
                answers = threading.Thread(target=self._pass_on, args=(connection, relay.name), daemon=True)
                answers.start()
                self._pass_on(connection, name, hello)
                answers.join()

    def _admit(self, relay: LinkRelay, connection: _Connection) -> bool:
        with self._changed:
            if self._cut & connection.sockets.keys():
                return False
            self._connections = [other for other in self._connections if other.is_open]
            self._connections.append(connection)
            relay.dials += 1
            return True

    def _pass_on(self, connection: _Connection, sender: str, data: bytes = b"") -> None:
        """Pass on what one end says, beginning with `data`, until either is closed."""
        receiver = connection.other(sender)
        with contextlib.suppress(OSError):
            while True:
                self._wait_until_open(sender, receiver)
                connection.sockets[receiver].sendall(data)
                data = connection.sockets[sender].recv(_CHUNK)
                if not data:
                    break
            self._wait_until_open(sender, receiver)  # the other end does not hear of the end either
        connection.cut()

    def _wait_until_open(self, sender: str, receiver: str) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._held & {(sender, Direction.OUT), (receiver, Direction.IN)})


def _read_hello(near: socket.socket) -> tuple[bytes, str | None]:
    """What a server says first, and its name; no name if it closes the connection before."""
    reader = wire.Reader(_HELLO_LIMIT)
    read = b""
    while data := near.recv(_CHUNK):
        read += data
        reader.feed(data)
        if reader.next():
            frame = reader.frame()
            assert isinstance(frame, wire.Hello), frame
            return read, frame.name
    return read, None
