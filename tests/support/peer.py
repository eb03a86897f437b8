"""What the raw-socket peers of all protocols share: bytes to and from a server, with a deadline for every wait.

The peers share no code with the server's codecs, so that a fault in one cannot hide in the other. Nothing here sleeps:
each protocol's `silence` proves that nothing arrived by an answer that would have come after it.
"""

import socket
import time
from collections.abc import Callable
from typing import Self

PATIENCE = 60.0  # seconds until a missing answer is a failure; a passing test never waits this long

Location = int | str  # a port of this machine, or the path of a socket file


def connect(location: Location, host: str = "127.0.0.1") -> socket.socket:
    """A connection to a server on this machine."""
    if isinstance(location, str):
        connected = socket.socket(socket.AF_UNIX)
        connected.settimeout(PATIENCE)
        connected.connect(location)
    else:
        connected = socket.create_connection((host, location), timeout=PATIENCE)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connected


def until(condition: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
    """Ask again and again until it is so: for what the server tells nobody about."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"never happened: {what}"


class RawPeer:
    """One connection, byte by byte; protocols add their packets."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self._received = bytearray()  # read from the socket, not yet asked for

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def half_close(self) -> None:
        """End this side's stream, and go on reading."""
        self.socket.shutdown(socket.SHUT_WR)

    def raw(self, data: bytes) -> Self:
        self.socket.sendall(data)
        return self

    def receive(self, size: int, timeout: float = PATIENCE) -> bytes:
        """Exactly this many bytes."""
        return self._take(lambda: size if len(self._received) >= size else 0, timeout) if size else b""

    def line(self, timeout: float = PATIENCE) -> bytes:
        """One line, with its ending."""
        return self._take(lambda: self._received.find(b"\n") + 1, timeout)

    def rest(self, timeout: float = PATIENCE) -> bytes:
        """Everything until the server closes the connection."""
        deadline = time.monotonic() + timeout
        while self._fill(deadline):
            pass
        data = bytes(self._received)
        self._received.clear()
        return data

    def closed(self, timeout: float = PATIENCE) -> None:
        """The server closes the connection and sends nothing more."""
        rest = self.rest(timeout)
        assert rest == b"", f"before it closed, the server sent {_shown(rest)}"

    def _take(self, complete: Callable[[], int], timeout: float) -> bytes:
        """As many of the received bytes as `complete` says, once it says any."""
        deadline = time.monotonic() + timeout
        while not (size := complete()):
            assert self._fill(deadline), f"closed by the server after {_shown(self._received)}"
        data = bytes(self._received[:size])
        del self._received[:size]
        return data

    def _fill(self, deadline: float) -> bool:
        """Receive some more bytes; False at the end of the stream."""
        left = deadline - time.monotonic()
        try:
            if left <= 0:
                raise TimeoutError
            self.socket.settimeout(left)
            more = self.socket.recv(1 << 20)
        except TimeoutError:
            raise AssertionError(f"no answer in time; received so far: {_shown(self._received)}") from None
        except ConnectionResetError:
            return False
        self._received += more
        return bool(more)


def _shown(data: bytes | bytearray) -> str:
    return f"{bytes(data[:200])!r}" + ("..." if len(data) > 200 else "")
