"""Clients and workers that move to another server when theirs is gone, and remember what they were told.

Their books are those of tests/crash, for jobs without a key, and `keys.py`, for jobs with one.
"""

import contextlib
import random
import socket
import threading
from collections.abc import Iterator

from tests.chaos.crossings import Crossings
from tests.chaos.keys import Attempt, KeyBook
from tests.chaos.members import Fleet, Member
from tests.crash import load
from tests.crash.load import PATIENCE, Account, Job, Peer
from tests.support.gearman_peer import Kind, assignment, request

KEYED = b"keyed"
KEYS = [b"key-%d" % number for number in range(3)]
HOLD = 0.1  # seconds that a worker has a job with a key: most of the time, another one with its key could run
RETRY = 0.05  # seconds until the next server is tried
_GRAB = request(Kind.GRAB_JOB_UNIQ)
WORKERS = 2  # of each kind, for each server


class Ledger:
    """What all peers of a run write into."""

    def __init__(self) -> None:
        self.account = Account()
        self.keys = KeyBook()
        self.crossings = Crossings()
        self.unread = 0  # requests for a job whose answers a worker has not read: each may have been assigned one


class Roamer(Peer):
    """A peer that finds another server when its own closes the connection, until it is told to end.

    One that is `settled` waits for its own server.
    """

    def __init__(self, fleet: Fleet, ledger: Ledger, seed: int, port: int, settled: bool = False) -> None:
        self.fleet = fleet
        self.ledger = ledger
        self.settled = settled
        self.ending = threading.Event()
        Peer.__init__(self, port, ledger.account, seed)  # not what a second base would do: that has a server of its own

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
        """To the server that it had, or else to any that accepts, unless it is settled."""
        while True:
            try:
                return super()._connect()
            except OSError:
                if self.ending.wait(RETRY):
                    raise
                if not self.settled:
                    self._port = self.random.choice(self.fleet.ports())


class Submitter(Roamer):
    """A client: each of its submissions is answered, or its connection ends."""

    def unanswered(self) -> None:
        name = self.fleet.of(self.port).name
        self.account.problem(f"{name} did not answer a submission, and did not close the connection")


class Client(Submitter, load.Client):
    """Submits background jobs of every kind without a shared key."""

    def __init__(self, fleet: Fleet, ledger: Ledger, seed: int, port: int, name: str) -> None:
        Roamer.__init__(self, fleet, ledger, seed, port)
        self._names = (b"%b.%06d" % (name.encode(), number) for number in range(10**6))

    def _submit(self) -> tuple[Job, bytes]:
        job, packet = super()._submit()
        self.ledger.crossings.submit(job.payload, self.port)
        return job, packet


class Taker(Roamer):
    """A worker. If its connection ends before it has read an answer, it may have been given a job without knowing."""

    _asks = False  # for a job, and has no answer yet

    def send(self, *packets: bytes) -> None:
        self._asks = packets == (_GRAB,)
        super().send(*packets)

    def packet(self) -> tuple[int, bytes]:
        kind, body = super().packet()
        self._asks = self._asks and kind == Kind.NOOP
        return kind, body

    def lost(self) -> None:
        with self.account.lock:
            self.ledger.unread += self._asks
        self._asks = False


class Worker(Taker, load.Worker):
    """Takes those jobs: ends most, keeps some until its connection ends, and now and then vanishes with one."""

    def __init__(self, fleet: Fleet, ledger: Ledger, seed: int, port: int, settled: bool) -> None:
        Roamer.__init__(self, fleet, ledger, seed, port, settled)

    def arrived(self) -> None:
        self.send(request(Kind.CAN_DO, load.FUNCTION))

    def _finish(self, job: Job, handle: bytes) -> None:
        self.ledger.crossings.assign(job.payload, self.port)
        super()._finish(job, handle)


class KeyClient(Submitter):
    """Submits jobs with one of a few keys, so that most find a twin, here or on another server."""

    def __init__(self, fleet: Fleet, ledger: Ledger, seed: int, port: int, name: str) -> None:
        super().__init__(fleet, ledger, seed, port)
        self.book = ledger.keys
        self._names = (b"%b.%06d" % (name.encode(), number) for number in range(10**6))

    def work(self) -> None:
        key, payload = self.random.choice(KEYS), next(self._names)
        self.book.submit(payload)
        self.ledger.crossings.submit(payload, self.port)
        self.send(request(Kind.SUBMIT_JOB_BG, KEYED, key, payload))
        kind, body = self.packet()
        if kind == Kind.JOB_CREATED:
            self.book.acknowledge(body)
            self.account.first_answer.set()
        else:
            self.account.problem(f"{payload!r} with {key!r} was answered with {kind} {body!r}")


class KeyWorker(Taker):
    """Takes jobs with keys, one at a time, and ends each."""

    def __init__(self, fleet: Fleet, ledger: Ledger, seed: int, port: int, settled: bool) -> None:
        super().__init__(fleet, ledger, seed, port, settled)
        self.book = ledger.keys
        self._held: tuple[bytes, Attempt] | None = None

    def arrived(self) -> None:
        self.send(request(Kind.CAN_DO, KEYED))

    def lost(self) -> None:
        super().lost()
        if self._held is not None:
            self.book.drop(*self._held)
            self._held = None

    def work(self) -> None:
        self.send(_GRAB)
        kind, body = self.packet()
        while kind == Kind.NOOP:
            kind, body = self.packet()
        if kind == Kind.NO_JOB:
            self.send(request(Kind.PRE_SLEEP))
            self.packet()
            return
        given = assignment(kind, body)
        member = self.fleet.of(self.port)
        attempt = Attempt.at(given.handle, member, self.fleet.home(given.handle))
        self.book.begin(given.unique, given.data, attempt)
        self.ledger.crossings.assign(given.data, self.port)
        self._held = (given.unique, attempt)
        self.ending.wait(HOLD)
        self.book.end(given.unique, attempt)
        self._held = None
        self.send(request(Kind.WORK_COMPLETE, given.handle, b""))


@contextlib.contextmanager
def under_load(fleet: Fleet, ledger: Ledger, seed: int, name: str) -> Iterator[None]:
    """Clients of both kinds on every server and workers on most, until the end of the block.

    It begins when a job was acknowledged, and with several servers when a job was run by a worker of another one.
    """
    ledger.account.first_answer.clear()
    ledger.crossings.begin()
    peers = [*_clients(fleet, ledger, seed, name), *_workers(fleet, ledger, seed)]
    for peer in peers:
        peer.start()
    try:
        assert ledger.account.first_answer.wait(PATIENCE), "no job was ever acknowledged"
        if len(fleet.alive) > 1:
            assert ledger.crossings.first.wait(PATIENCE), "no job was ever run by a worker of another server"
        yield
    finally:
        for peer in peers:
            peer.end()
        for peer in peers:
            peer.join(2 * PATIENCE)
    assert not any(peer.is_alive() for peer in peers), "a peer has not ended"


def _clients(fleet: Fleet, ledger: Ledger, seed: int, name: str) -> Iterator[Roamer]:
    for place, member in enumerate(fleet.alive):
        own = seed + 100 * place
        for number in range(2):
            yield Client(fleet, ledger, own + number, member.port, f"{name}.{place}{number}")
        yield KeyClient(fleet, ledger, own + 20, member.port, f"{name}.{place}k")


def _workers(fleet: Fleet, ledger: Ledger, seed: int) -> Iterator[Roamer]:
    chance = random.Random(seed)
    for kind, offset in ((Worker, 10), (KeyWorker, 30)):
        for number, (member, settled) in enumerate(_places(fleet.alive, chance)):
            yield kind(fleet, ledger, seed + 1000 * number + offset, member.port, settled)


def _places(members: list[Member], chance: random.Random) -> Iterator[tuple[Member, bool]]:
    """Where workers are, and whether they stay. One of several servers has none: its jobs run elsewhere."""
    without = chance.choice(members) if len(members) > 1 else None
    others = [member for member in members if member is not without]
    for member in members:
        for _ in range(WORKERS):
            yield (chance.choice(others), True) if member is without else (member, False)
