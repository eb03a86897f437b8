"""Send a server mutated frames through a socket, on several connections at once, while another peer looks on.

The server runs in a process of its own. It has to stay up, answer the other peer after every burst, and log no
exception: an exception while a packet is handled disconnects only the peer that sent it, but is always a bug.
"""

import contextlib
import dataclasses
import random
import re
import select
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from campaigns.doors import HANDLE_PREFIX, FuzzedDoor, Probe
from campaigns.mutation import Mutator
from geartrain import address
from tests.support import serving

FAULTS = ("packet handling failed", "Traceback (most recent call last)")
PATIENCE = 60.0  # seconds until a missing answer is a fault
_STOP_SECONDS = 10.0  # that a stop may take
_MOST_CONNECTIONS = 4
_MOST_FRAMES = 12  # in a burst
_REMEMBERED = 4  # bursts, to show what led to a fault
_MOST_TOKENS = 100  # that were learnt from answers
_HANDLE = re.compile(HANDLE_PREFIX.encode() + rb":[0-9]+")
_DIGITS = re.compile(rb"[0-9]+")
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class DoorFaultError(Exception):
    """A door broke one of the rules."""


@dataclasses.dataclass
class DoorFigures:
    """What a campaign tried."""

    door: str
    seed: int
    connections: int = 0
    bursts: int = 0
    frames: int = 0
    sent: int = 0  # bytes
    received: int = 0
    answers: int = 0  # distinct ones, by how they begin
    restarts: int = 0  # of the server, because a frame told it to stop
    seconds: float = 0.0
    memory: list[int] = dataclasses.field(default_factory=list)  # KiB of the server: at the start, at the end


class Server:
    """A server with one door, started again if a frame tells it to stop."""

    def __init__(self, door: FuzzedDoor, home: Path) -> None:
        self._stack = contextlib.ExitStack()
        self._read = 0
        self._process = self._stack.enter_context(
            serving.serve(
                *("--store", "memory", "--handle-prefix", HANDLE_PREFIX, "--listen", door.url.format(home=home))
            )
        )
        self.address = address.parse(self._process.url)

    @property
    def memory(self) -> int:
        """Resident, in KiB."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])

    @property
    def exit_code(self) -> int | None:
        return self._process.process.poll()

    def ends(self) -> bool:
        """Whether the server ends by itself: a frame may have told it to stop."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.process.wait(_STOP_SECONDS)
        return self.exit_code is not None

    def check(self) -> None:
        """A DoorFaultError if the server has ended with an error, or has logged an exception."""
        if self.exit_code:
            raise DoorFaultError(f"the server ended with exit code {self.exit_code}\n{self._process.account()}")
        log = self._process.stderr[self._read :]
        self._read += len(log)
        for fault in FAULTS:
            if fault in log:
                raise DoorFaultError(f"the server logged {fault!r}\n{log[-4000:]}")

    def connect(self) -> socket.socket:
        place = self.address
        if place.path and not place.port:
            connected = socket.socket(socket.AF_UNIX)
            connected.settimeout(PATIENCE)
            connected.connect(place.path)
            return connected
        return socket.create_connection((place.host, place.port), timeout=PATIENCE)

    def stop(self) -> None:
        self._stack.close()

    def kill(self) -> None:
        """After a fault: what the server says at its end is not looked at."""
        self._process.kill()
        with contextlib.suppress(AssertionError):
            self._stack.close()


class Bystander:
    """A peer that behaves, and wants an answer each time."""

    def __init__(self, server: Server, probe: Probe) -> None:
        self._server = server
        self._probe = probe
        self._socket: socket.socket | None = None

    def check(self) -> None:
        """Ask the door once; a DoorFaultError if the answer is wrong or does not come."""
        try:
            if self._socket is None:
                self._socket = self._server.connect()
                self._socket.sendall(self._probe.opening)
                self._receive(self._probe.opening_answer)
            self._socket.sendall(self._probe.request)
            answer = self._receive(len(self._probe.answer))
        except OSError as error:
            raise DoorFaultError(f"another peer got no answer: {error!r}") from error
        if answer != self._probe.answer:
            raise DoorFaultError(f"another peer was answered {answer!r} instead of {self._probe.answer!r}")
        if not self._probe.keeps_connection:
            self.close()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _receive(self, size: int) -> bytes:
        assert self._socket is not None
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise ConnectionError("the server closed the connection")
            data += part
        return data


class DoorCampaign:
    """The bursts of one seed."""

    def __init__(self, door: FuzzedDoor, seed: int, home: Path) -> None:
        self._door = door
        self._home = home
        self._chance = random.Random(f"door {door.name} {seed}")
        self._mutator = Mutator(self._chance, door.bodies, door.wrap, door.tokens)
        self._first_learnt = len(self._mutator.tokens)
        self._openings = Mutator(self._chance, door.openings, tokens=door.tokens)
        self._connections: dict[int, socket.socket] = {}  # by a number, for the list of bursts
        self._opened: set[int] = set()  # connections that have sent their opening
        self._answers: set[bytes] = set()
        self.figures = DoorFigures(door.name, seed)
        self.recent: deque[tuple[int, bytes]] = deque(maxlen=_REMEMBERED)  # connection and bytes of the last bursts

    def run(self, seconds: float = float("inf"), bursts: int = sys.maxsize) -> DoorFigures:
        """Until either bound is reached; a DoorFaultError ends it before."""
        figures = self.figures
        while figures.seconds < seconds and figures.bursts < bursts:
            with self._server() as server:
                self._until_it_stops(server, seconds, bursts)
        figures.answers = len(self._answers)
        return figures

    def _until_it_stops(self, server: Server, seconds: float, bursts: int) -> None:
        """Send bursts until a bound is reached or a frame stops the server. Its start does not count."""
        figures = self.figures
        figures.memory = figures.memory or [server.memory]
        before, began = figures.seconds, time.monotonic()
        with contextlib.closing(Bystander(server, self._door.probe)) as bystander:
            try:
                while figures.seconds < seconds and figures.bursts < bursts and server.exit_code is None:
                    self._one_burst(server)
                    self._check(server, bystander)
                    figures.seconds = before + time.monotonic() - began
                if server.exit_code is None:
                    figures.memory[1:] = [server.memory]
            finally:
                self._close_all()

    @contextlib.contextmanager
    def _server(self) -> Iterator[Server]:
        server = Server(self._door, self._home)
        try:
            yield server
            server.check()
        except BaseException:
            server.kill()
            raise
        server.stop()

    def _check(self, server: Server, bystander: Bystander) -> None:
        try:
            bystander.check()
        except DoorFaultError as fault:
            server.check()  # says more, if the server has logged an exception
            if not isinstance(fault.__cause__, OSError) or not server.ends():
                raise
        server.check()
        if server.exit_code == 0:
            self.figures.restarts += 1

    def _one_burst(self, server: Server) -> None:
        try:
            number = self._choose(server)
        except OSError as error:
            if server.ends():
                return
            raise DoorFaultError(f"the server accepts no connection: {error!r}") from error
        connection = self._connections[number]
        frames = self._mutator.stream(_MOST_FRAMES)
        data = b"".join(frames)
        if number not in self._opened:
            self._opened.add(number)
            data = self._opening() + data
        self.recent.append((number, data))
        self.figures.bursts += 1
        self.figures.frames += len(frames)
        self.figures.sent += len(data)
        is_open = all(self._send(connection, chunk) for chunk in self._mutator.chunks(data))
        if not is_open or self._chance.random() < 0.3:
            self._end(number)

    def _choose(self, server: Server) -> int:
        """An open connection or a new one."""
        if self._connections and (len(self._connections) >= _MOST_CONNECTIONS or self._chance.random() < 0.6):
            return self._mutator.pick(list(self._connections))
        self.figures.connections += 1
        connection = server.connect()
        connection.setblocking(False)
        self._connections[self.figures.connections] = connection
        return self.figures.connections

    def _opening(self) -> bytes:
        opening = self._openings.pick(self._door.openings)
        return self._openings.mutated(opening, in_header=0.2) if self._chance.random() < 0.1 else opening

    def _send(self, connection: socket.socket, data: bytes) -> bool:
        """Write, and read meanwhile, so that neither side waits for the other; False if the server closed it."""
        deadline = time.monotonic() + PATIENCE
        poll = select.poll()
        poll.register(connection, select.POLLIN | select.POLLOUT)
        while data:
            if not poll.poll(PATIENCE * 1000) or time.monotonic() > deadline:
                raise DoorFaultError("the server stopped reading")
            try:
                if self._receive(connection) == b"":
                    return False
                data = data[connection.send(data) :]
            except BlockingIOError:
                continue
            except OSError:
                return False
        return True

    def _receive(self, connection: socket.socket) -> bytes | None:
        """What has arrived; None if nothing has, and nothing if the server closed the connection."""
        try:
            data = connection.recv(1 << 16)
        except BlockingIOError:
            return None
        self.figures.received += len(data)
        self._answers.add(_DIGITS.sub(b"0", data[:12]))
        for handle in _HANDLE.findall(data):
            self._learn(handle)
        return data

    def _learn(self, token: bytes) -> None:
        """Use a handle of the server in later frames."""
        tokens = self._mutator.tokens
        if len(tokens) < self._first_learnt + _MOST_TOKENS:
            tokens.append(token)
        else:
            tokens[self._first_learnt + self._mutator.below(_MOST_TOKENS)] = token

    def _end(self, number: int) -> None:
        """Close a connection: with or without reading what is left, or with a reset."""
        connection = self._connections.pop(number)
        self._opened.discard(number)
        style = self._chance.random()
        with connection, contextlib.suppress(OSError):
            if style < 0.2:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            elif style < 0.6:
                connection.shutdown(socket.SHUT_WR)
                self._read_to_end(connection)

    def _read_to_end(self, connection: socket.socket) -> None:
        deadline = time.monotonic() + PATIENCE
        poll = select.poll()
        poll.register(connection, select.POLLIN)
        while True:
            if not poll.poll(PATIENCE * 1000) or time.monotonic() > deadline:
                raise DoorFaultError("the server did not close a connection whose peer had ended it")
            if self._receive(connection) == b"":
                return

    def _close_all(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
