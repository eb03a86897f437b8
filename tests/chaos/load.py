"""Clients and workers that move to another server when theirs is gone, and remember what they were told.

Their books are those of tests/crash, for jobs without a key, and `keys.py`, for jobs with one.
"""

import contextlib
import socket
import threading
from collections.abc import Iterator

from tests.chaos.keys import Attempt, KeyBook
from tests.chaos.members import Fleet
from tests.crash import load
from tests.crash.load import PATIENCE, Account, Peer
from tests.support.gearman_peer import Kind, assignment, request

KEYED = b"keyed"
KEYS = [b"key-%d" % number for number in range(3)]
HOLD = 0.1  # seconds that a worker has a job with a key: most of the time, another one with its key could run
RETRY = 0.05  # seconds until the next server is tried


class Roamer(Peer):
    """A peer that finds another server when its own closes the connection, until it is told to end."""

    def __init__(self, fleet: Fleet, account: Account, seed: int, port: int) -> None:
        self.fleet = fleet
        self.ending = threading.Event()
        Peer.__init__(self, port, account, seed)  # not what a second base would do: that has a server of its own

    @property
    def port(self) -> int:
        return self._port

    def run(self) -> None:
        with contextlib.suppress(OSError):  # of a new connection, when it is told to end
            while not self.ending.is_set():
                try:
                    self.arrived()
                    while not self.ending.is_set():
                        self.work()
                except (OSError, EOFError) as error:
                    if isinstance(error, TimeoutError):
                        self.unanswered()
                    self.lost()
                    self.reconnect()
        self.socket.close()

    def arrived(self) -> None:
        """There is a new connection."""

    def lost(self) -> None:
        """The connection is gone."""

    def unanswered(self) -> None:
        """The server has said nothing for a long time, and has not closed the connection."""

    def end(self) -> None:
        """Close the connection, whatever it waits for."""
        self.ending.set()
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def _connect(self) -> socket.socket:
        """To the server that it had, or else to any that accepts."""
        while True:
            try:
                return super()._connect()
            except OSError:
                if self.ending.wait(RETRY):
                    raise
                self._port = self.random.choice(self.fleet.ports())


class Submitter(Roamer):
    """A client: each of its submissions is answered, or its connection ends."""

    def unanswered(self) -> None:
        name = self.fleet.of(self.port).name
        self.account.problem(f"{name} did not answer a submission, and did not close the connection")


class Client(Submitter, load.Client):
    """Submits background jobs of every kind without a shared key."""

    def __init__(self, fleet: Fleet, account: Account, seed: int, port: int, name: str) -> None:
        Roamer.__init__(self, fleet, account, seed, port)
        self._names = (b"%b.%06d" % (name.encode(), number) for number in range(10**6))


class Worker(Roamer, load.Worker):
    """Takes those jobs: ends most, keeps some until its connection ends, and now and then vanishes with one."""

    def __init__(self, fleet: Fleet, account: Account, seed: int, port: int) -> None:
        Roamer.__init__(self, fleet, account, seed, port)

    def arrived(self) -> None:
        self.send(request(Kind.CAN_DO, load.FUNCTION))


class KeyClient(Submitter):
    """Submits jobs with one of a few keys, so that most find a twin, here or on another server."""

    def __init__(self, fleet: Fleet, account: Account, seed: int, port: int, name: str, book: KeyBook) -> None:
        super().__init__(fleet, account, seed, port)
        self.book = book
        self._names = (b"%b.%06d" % (name.encode(), number) for number in range(10**6))

    def work(self) -> None:
        key, payload = self.random.choice(KEYS), next(self._names)
        self.book.submit(payload)
        self.send(request(Kind.SUBMIT_JOB_BG, KEYED, key, payload))
        kind, body = self.packet()
        if kind == Kind.JOB_CREATED:
            self.book.acknowledge(body)
            self.account.first_answer.set()
        else:
            self.account.problem(f"{payload!r} with {key!r} was answered with {kind} {body!r}")


class KeyWorker(Roamer):
    """Takes jobs with keys, one at a time, and ends each."""

    def __init__(self, fleet: Fleet, account: Account, seed: int, port: int, book: KeyBook) -> None:
        super().__init__(fleet, account, seed, port)
        self.book = book
        self._held: tuple[bytes, Attempt] | None = None

    def arrived(self) -> None:
        self.send(request(Kind.CAN_DO, KEYED))

    def lost(self) -> None:
        if self._held is not None:
            self.book.drop(*self._held)
            self._held = None

    def work(self) -> None:
        self.send(request(Kind.GRAB_JOB_UNIQ))
        kind, body = self.packet()
        while kind == Kind.NOOP:
            kind, body = self.packet()
        if kind == Kind.NO_JOB:
            self.send(request(Kind.PRE_SLEEP))
            self.packet()
            return
        given = assignment(kind, body)
        member = self.fleet.of(self.port)
        attempt = Attempt(member, member.faults, given.handle)
        self.book.begin(given.unique, given.data, attempt)
        self._held = (given.unique, attempt)
        self.ending.wait(HOLD)
        self.book.end(given.unique, attempt)
        self._held = None
        self.send(request(Kind.WORK_COMPLETE, given.handle, b""))


@contextlib.contextmanager
def under_load(fleet: Fleet, account: Account, book: KeyBook, seed: int, name: str) -> Iterator[None]:
    """Clients and workers of both kinds on every server, from the first answer on until the end of the block."""
    account.first_answer.clear()
    peers: list[Roamer] = []
    for place, member in enumerate(fleet.alive):
        own = seed + 100 * place
        peers += [Client(fleet, account, own + number, member.port, f"{name}.{place}{number}") for number in range(2)]
        peers += [Worker(fleet, account, own + 10 + number, member.port) for number in range(2)]
        peers.append(KeyClient(fleet, account, own + 20, member.port, f"{name}.{place}k", book))
        peers += [KeyWorker(fleet, account, own + 30 + number, member.port, book) for number in range(2)]
    for peer in peers:
        peer.start()
    try:
        assert account.first_answer.wait(PATIENCE), "no job was ever acknowledged"
        yield
    finally:
        for peer in peers:
            peer.end()
        for peer in peers:
            peer.join(2 * PATIENCE)
    assert not any(peer.is_alive() for peer in peers), "a peer has not ended"
