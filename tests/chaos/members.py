"""The servers of a cluster as processes, each of which can be killed, stopped and cut off from PostgreSQL."""

import contextlib
import itertools
import random
import re
import signal
import sys
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import Self

import psycopg

from tests.support import serving
from tests.support.gearman_peer import Peer
from tests.support.link_relay import LinkRelay
from tests.support.postgres_proxy import CuttingProxy

LEASE = 2.0  # seconds: the shortest one
GRACE = 1.0  # seconds for which jobs stay with a server whose link is lost
MAX_ATTEMPTS = 1000  # workers leave with jobs all the time: with fewer, some would be dead
# What the log of a server says when others took it for dead, and what theirs say of it.
FENCED = "fenced: other servers have taken over"
FENCES = "server fenced, it has stood still  server={}"
SILENT = "no sign of life"
_JOINED = re.compile(r"joined the cluster .*\bnode=(\d+)")
_NODE_BITS = 32  # of an id: the number of the node that gave it out is above them
# What the database has of a job that no server has.
_ROWS = "SELECT handle, function, state, attempts, reason FROM geartrain.jobs WHERE handle = ANY(%s)"
_ENDS = "SELECT handle, state, attempts, worker_door, reason FROM geartrain.records WHERE handle = ANY(%s)"


class Member:
    """One server. Its name and its port stay the same over its lives."""

    def __init__(
        self, name: str, store: str, proxy: CuttingProxy | None = None, relay: LinkRelay | None = None
    ) -> None:
        self.name = name
        self.port = 0
        self._peer_port = 0  # of a server with a relay
        self.proxy = proxy  # between it and PostgreSQL
        self.relay = relay  # between it and the servers that dial it
        self.faults = 0  # that it had: a job that it has assigned before may run again
        self.store = store
        self._nodes: set[int] = set()  # that it was in earlier lives
        self._running: AbstractContextManager[serving.ServerProcess] | None = None
        self._server: serving.ServerProcess | None = None

    @property
    def alive(self) -> bool:
        return self._server is not None

    @property
    def times_fenced(self) -> int:
        """In this life."""
        return 0 if self._server is None else self._server.stderr.count(FENCED)

    @property
    def times_deaf(self) -> int:
        """How often it has dropped a link on which it heard nothing, in this life."""
        return 0 if self._server is None else self._server.stderr.count(SILENT)

    def times_fencing(self, name: str) -> int:
        """How often it has fenced the server of this name, in this life."""
        return 0 if self._server is None else self._server.stderr.count(FENCES.format(name))

    def start(self) -> None:
        assert self._server is None, f"{self.name} runs already"
        for port, peer_port in self._ports():
            flags = [
                "--listen", f"gearman://{serving.HOST}:{port}", "--node-name", self.name, "--lease", f"{LEASE:g}s",
                "--max-attempts", str(MAX_ATTEMPTS),
            ]  # fmt: skip
            running = serving.serve("--store", self.store, *flags, *self._peer_door(peer_port))
            try:
                self._server = running.__enter__()
            except AssertionError:
                if self.port:
                    raise
                continue  # somebody else has taken the port meanwhile
            self._running, self.port, self._peer_port = running, port, peer_port
            return
        raise AssertionError(f"{self.name} found no port")

    def _peer_door(self, port: int) -> tuple[str, ...]:
        if self.relay is None:
            return ()
        self.relay.target = port
        listen, advertise = f"peer://{serving.HOST}:{port}", f"{serving.HOST}:{self.relay.port}"
        return ("--listen", listen, "--advertise", advertise, "--link-grace", f"{GRACE:g}s")

    def _ports(self) -> list[tuple[int, int]]:
        """Of both doors: those that it has had, or some to choose from."""
        if self.port:
            return [(self.port, self._peer_port)]
        free = list(filter(serving.is_free, random.sample(serving.PORTS, 10)))
        return list(itertools.pairwise(free))[::2]

    def is_node(self, number: int) -> bool:
        """Whether it is the node of this number in the cluster, or was."""
        if number not in self._nodes and self._server is not None:
            self._nodes.update(map(int, _JOINED.findall(self._server.stderr)))
        return number in self._nodes

    def kill(self) -> None:
        self.faults += 1
        assert self._server is not None
        self._server.check_stderr()
        self._server.kill()
        self._leave()

    def stop(self) -> None:
        """As an operator does; it has to end cleanly."""
        self.faults += 1
        self._leave()

    def wait(self) -> None:
        """It stops because it was asked to drain; it has to end cleanly."""
        assert self._server is not None
        assert self._server.wait() == 0, self._server.account()
        self._server.check_stderr()
        self._leave()

    def freeze(self) -> None:
        """SIGSTOP: it answers nobody, and its connections stay open."""
        self.faults += 1
        assert self._server is not None
        self._server.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._server is not None
        self._server.signal(signal.SIGCONT)

    def jobs(self) -> list[bytes] | None:
        """The handles of the jobs that it has; None: it does not answer."""
        attempts = self.attempts()
        return None if attempts is None else list(attempts)

    def attempts(self) -> dict[bytes, int] | None:
        """How many attempts each of its jobs has had, by handle; None: it does not answer."""
        with contextlib.suppress(OSError, AssertionError), Peer(self.port) as peer:
            return {handle: int(attempts) for handle, attempts, *_ in peer.listing("show jobs")}
        return None

    def listing(self, handles: Collection[bytes]) -> list[list[bytes]]:
        """What `show jobs` says of these jobs."""
        with contextlib.suppress(OSError, AssertionError), Peer(self.port) as peer:
            return [line for line in peer.listing("show jobs") if line[0] in handles]
        return []

    def show(self) -> None:
        """What it said, for the person who reads of a failure."""
        if self._server is not None:
            print(f"--- {self.name}\n{self._server.account()}", file=sys.stderr)

    def _leave(self) -> None:
        if self._server is not None:
            self._nodes.update(map(int, _JOINED.findall(self._server.stderr)))
        running, self._running, self._server = self._running, None, None
        if running is not None:
            running.__exit__(None, None, None)


class Fleet:
    """All servers of a cluster."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = list(members)

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.push(self.__exit__)
            for member in self.members:
                member.start()
            stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with contextlib.ExitStack() as stack:
            for member in self.members:
                if member.alive:
                    stack.callback(member.stop if kind is None else member.kill)
                if member.alive and kind is not None:
                    member.thaw()
                    member.show()

    def stored(self) -> set[bytes]:
        """The handles of all jobs in the database."""
        with psycopg.connect(self.members[0].store, autocommit=True) as connection:
            return {handle for (handle,) in connection.execute("SELECT handle FROM geartrain.jobs")}

    def whereabouts(self, handles: Collection[bytes]) -> str:
        """What the database has of some of these jobs, and which nodes own the ranges of ids, in words."""
        some = sorted(handles)[:3]
        try:
            with psycopg.connect(self.members[0].store, autocommit=True) as connection:
                rows = connection.execute(_ROWS, (some,)).fetchall()
                ends = connection.execute(_ENDS, (some,)).fetchall()
                ranges = connection.execute("SELECT low, high, node FROM geartrain.ranges ORDER BY low").fetchall()
                nodes = connection.execute("SELECT id, name, state FROM geartrain.nodes ORDER BY id").fetchall()
        except psycopg.Error as error:  # it may be restarting
            return f"such as {some}; {error}"
        return f"such as {some}; rows {rows}; records {ends}; ranges {ranges}; nodes {nodes}"

    @property
    def alive(self) -> list[Member]:
        return [member for member in self.members if member.alive]

    def ports(self) -> list[int]:
        """Of all servers, those that are down included: they come back."""
        return [member.port for member in self.members]

    def of(self, port: int) -> Member:
        return next(member for member in self.members if member.port == port)

    def home(self, handle: bytes) -> Member | None:
        """The server that gave out a handle; None if it is not known yet as the node that it is."""
        node = int(handle.rpartition(b":")[2]) >> _NODE_BITS
        return next((member for member in self.members if member.is_node(node)), None)
