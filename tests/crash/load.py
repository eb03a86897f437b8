"""Clients and workers that keep a server busy until it is gone, and remember what they were told.

Every job has a payload of its own, by which it is known even if its acknowledgement never arrived.
"""

import contextlib
import random
import socket
import threading
import time
from collections.abc import Iterator

from tests.support.gearman_peer import Kind, assignment, request

FUNCTION = b"load"
NEVER_SOON = 4_000_000_000  # epoch seconds: no test lives to see it
PATIENCE = 60.0

_KINDS = (Kind.SUBMIT_JOB_HIGH_BG, Kind.SUBMIT_JOB_BG, Kind.SUBMIT_JOB_BG, Kind.SUBMIT_JOB_LOW_BG)
_PRIORITIES = {
    Kind.SUBMIT_JOB_HIGH_BG: 0,
    Kind.SUBMIT_JOB_BG: 1,
    Kind.SUBMIT_JOB_LOW_BG: 2,
    Kind.SUBMIT_JOB_EPOCH: 1,
}


class Job:
    """One job, as the tests know it."""

    def __init__(self, payload: bytes, kind: int, unique: bytes) -> None:
        self.payload = payload
        self.priority = _PRIORITIES[Kind(kind)]
        self.unique = unique
        self.scheduled = kind == Kind.SUBMIT_JOB_EPOCH
        self.handle = b""  # empty: never acknowledged
        self.ended = False  # a worker has sent its end; the server may or may not have heard
        self.given = 0  # how many times a worker was given it

    @property
    def promised(self) -> bool:
        """It was acknowledged and nobody ended it: it must be there."""
        return bool(self.handle) and not self.ended


class Account:
    """All jobs that were ever submitted, over many lives of a server. Threads share it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.jobs: dict[bytes, Job] = {}  # by payload
        self.handles: dict[bytes, Job] = {}  # of acknowledged ones, and of those that a worker was given
        self.problems: list[str] = []
        self.first_answer = threading.Event()  # of this life

    def add(self, job: Job) -> None:
        with self.lock:
            self.jobs[job.payload] = job

    def acknowledge(self, job: Job, handle: bytes) -> None:
        with self.lock:
            self._name(job, handle)
            job.handle = handle
        self.first_answer.set()

    def give(self, payload: bytes, handle: bytes) -> Job | None:
        """A worker was given this; None if no such job was ever submitted."""
        with self.lock:
            job = self.jobs.get(payload)
            if job is None:
                self.problems.append(f"a worker was given {payload!r}, which nobody submitted")
                return None
            self._name(job, handle)
            job.given += 1
            return job

    def problem(self, text: str) -> None:
        with self.lock:
            self.problems.append(text)

    def forget_ended(self) -> None:
        """Those that were ended and are gone now must not come back: let them be strangers if they do."""
        for payload in [payload for payload, job in self.jobs.items() if job.ended]:
            del self.jobs[payload]

    def _name(self, job: Job, handle: bytes) -> None:
        known = self.handles.setdefault(handle, job)
        if known is not job:
            self.problems.append(f"{handle!r} names {job.payload!r} and {known.payload!r}")
        if job.handle and job.handle != handle:
            self.problems.append(f"{job.payload!r} was {job.handle!r} and is {handle!r}")


class Peer(threading.Thread):
    """A connection with a thread of its own, which ends with the connection."""

    def __init__(self, port: int, account: Account, seed: int) -> None:
        super().__init__(daemon=True)
        self.account = account
        self.random = random.Random(seed)
        self._port = port
        self._received = b""
        self.socket = self._connect()

    def run(self) -> None:
        with contextlib.suppress(OSError, EOFError):
            while True:
                self.work()
        self.socket.close()

    def work(self) -> None:
        """One exchange with the server; an OSError or EOFError ends it all."""
        raise NotImplementedError

    def reconnect(self) -> None:
        """Leave without a word, and come back."""
        self.socket.close()
        self._received = b""
        self.socket = self._connect()

    def send(self, *packets: bytes) -> None:
        self.socket.sendall(b"".join(packets))

    def packet(self) -> tuple[int, bytes]:
        while len(self._received) < 12 or len(self._received) < 12 + self._size():
            more = self.socket.recv(65536)
            if not more:
                raise EOFError
            self._received += more
        kind, end = int.from_bytes(self._received[4:8], "big"), 12 + self._size()
        body, self._received = self._received[12:end], self._received[end:]
        return kind, body

    def _size(self) -> int:
        return int.from_bytes(self._received[8:12], "big")

    def _connect(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self._port), timeout=PATIENCE)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


class Client(Peer):
    """Submits background jobs of every kind, some at a time, and waits for the answers."""

    def __init__(self, port: int, account: Account, seed: int, name: str) -> None:
        super().__init__(port, account, seed)
        self._names = (b"%b.%06d" % (name.encode(), number) for number in range(10**6))

    def work(self) -> None:
        jobs = [self._submit() for _ in range(self.random.choice((1, 1, 2, 5, 20)))]
        self.send(*(packet for _, packet in jobs))
        for job, _ in jobs:
            kind, body = self.packet()
            if kind == Kind.JOB_CREATED:
                self.account.acknowledge(job, body)
            else:
                self.account.problem(f"{job.payload!r} was answered with {kind} {body!r}")

    def _submit(self) -> tuple[Job, bytes]:
        payload = next(self._names)
        unique = self.random.choice((b"", b"", b"-", b"u-" + payload))
        if self.random.random() < 0.02:
            kind, when = Kind.SUBMIT_JOB_EPOCH, [b"%d" % NEVER_SOON]
        else:
            kind, when = self.random.choice(_KINDS), []
        if self.random.random() < 0.02:
            payload += b"." + self.random.randbytes(self.random.randrange(100_000))
        job = Job(payload, kind, unique)
        self.account.add(job)
        return job, request(kind, FUNCTION, unique, *when, payload)


class Worker(Peer):
    """Takes jobs: ends most of them, keeps some until the server is gone, and now and then vanishes with one."""

    def __init__(self, port: int, account: Account, seed: int) -> None:
        super().__init__(port, account, seed)
        self.send(request(Kind.CAN_DO, FUNCTION))

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
        job = self.account.give(given.data, given.handle)
        if job is not None:
            self._finish(job, given.handle)

    def _finish(self, job: Job, handle: bytes) -> None:
        what = self.random.random()
        if what < 0.7:
            job.ended = True
            self.send(request(Kind.WORK_COMPLETE, handle, b"result of " + handle))
        elif what < 0.75:
            job.ended = True
            self.send(request(Kind.WORK_FAIL, handle))
        elif what < 0.78:
            self.reconnect()
            self.send(request(Kind.CAN_DO, FUNCTION))


@contextlib.contextmanager
def load(port: int, account: Account, seed: int, name: str) -> Iterator[None]:
    """Three clients and two workers, from the first answer on; at the end the server has to be gone."""
    account.first_answer.clear()
    clients = [Client(port, account, seed + number, f"{name}.{number}") for number in range(3)]
    peers = [*clients, *(Worker(port, account, seed + 10 + number) for number in range(2))]
    for peer in peers:
        peer.start()
    assert account.first_answer.wait(PATIENCE), "no job was ever acknowledged"
    yield
    deadline = time.monotonic() + PATIENCE
    for peer in peers:
        peer.join(max(deadline - time.monotonic(), 0.0))
        assert not peer.is_alive(), "a peer still talks to a server that was killed"
