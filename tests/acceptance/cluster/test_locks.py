"""Locks of Periodic's jobs hold for the workers of all servers of a cluster."""

import contextlib
import threading
from collections.abc import Callable, Iterator

import pytest

from tests.acceptance.cluster.conftest import POSTGRESQL
from tests.support import postgres, postgres_programs, serving
from tests.support.periodic_peer import WORKER, Command, Dialect, Job, Peer, text
from tests.support.postgres_fixtures import Clusters

pytestmark = POSTGRESQL

PERIODIC = f"periodic://{serving.HOST}:0"


class Server:
    """A server with a worker. Its function is its own, so that no other server borrows its jobs."""

    def __init__(self, process: serving.ServerProcess, function: bytes) -> None:
        self.process = process
        self.function = function
        self.worker = Peer(process.port, Dialect.TODAY, WORKER).offer(function)

    def submit(self, *names: bytes) -> None:
        for name in names:
            self.worker.submit(self.function, name)

    def take(self, *names: bytes) -> list[Job]:
        """Submit jobs, and assign them to the worker."""
        self.submit(*names)
        return [self.worker.take() for _ in names]

    def locked(self) -> int:
        return self.worker.status()[self.function][3]


@contextlib.contextmanager
def started(url: str, *names: str, lease: str) -> Iterator[list[serving.ServerProcess]]:
    with contextlib.ExitStack() as stack:
        words = ("--store", url, "--lease", lease, "--listen", PERIODIC)
        yield [stack.enter_context(serving.serve(*words, "--node-name", name)) for name in names]


@contextlib.contextmanager
def with_workers(processes: list[serving.ServerProcess], test: str) -> Iterator[list[Server]]:
    with contextlib.ExitStack() as stack:
        servers = [Server(process, b"%d %s" % (i, test.encode())) for i, process in enumerate(processes)]
        for server in servers:
            stack.callback(server.worker.close)
        yield servers


@pytest.fixture(scope="module")
def processes(clusters: Clusters) -> Iterator[list[serving.ServerProcess]]:
    """Three servers that the tests share, each with locks and functions of its own."""
    shared = clusters(postgres_programs.NEWEST)
    with (
        postgres.fresh_schema(shared) as name,
        started(shared.url(schema=name), "one", "two", "three", lease="60s") as processes,
    ):
        yield processes


@pytest.fixture
def servers(processes: list[serving.ServerProcess], request: pytest.FixtureRequest) -> Iterator[list[Server]]:
    with with_workers(processes, request.node.name) as servers:
        yield servers


@pytest.fixture
def lock(request: pytest.FixtureRequest) -> bytes:
    return b"lock of %s" % request.node.name.encode()


def test_two_at_a_time_at_three_servers(servers: list[Server], lock: bytes) -> None:
    jobs = [(server, job) for server in servers for job in server.take(b"1", b"2")]
    granted = [server.worker.acquire(job, lock, 2) for server, job in jobs]
    assert granted == [True, True, False, False, False, False]
    assert [server.locked() for server in servers] == [0, 2, 2]


ENDS: dict[str, Callable[[Peer, Job, bytes], None]] = {
    "release": lambda worker, job, lock: worker.release(job, lock),
    "done": lambda worker, job, lock: worker.done(job),
    "lost worker": lambda worker, job, lock: worker.close(),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_what_one_server_releases_another_one_gets(
    servers: list[Server], lock: bytes, end: Callable[[Peer, Job, bytes], None]
) -> None:
    one, two, _ = servers
    [held], [job] = one.take(b"holder"), two.take(b"waiter")
    assert one.worker.acquire(held, lock)
    assert not two.worker.acquire(job, lock)
    grab = two.worker.grab()
    two.worker.silence()
    end(one.worker, held, lock)
    again = two.worker.assigned(grab)
    assert (again.name, two.locked()) == (b"waiter", 0)
    assert two.worker.acquire(again, lock)


def test_a_server_that_is_killed_frees_its_locks(schema_url: str, lock: bytes) -> None:
    with (
        started(schema_url, "holder", "waiter", lease="2s") as processes,
        with_workers(processes, "killed") as (holder, waiter),
    ):
        [held], [job] = holder.take(b"job"), waiter.take(b"job")
        assert holder.worker.acquire(held, lock)
        assert not waiter.worker.acquire(job, lock)
        grab = waiter.worker.grab()
        holder.process.kill()
        again = waiter.worker.assigned(grab)
        assert again.name == b"job"
        assert waiter.worker.acquire(again, lock)


def test_a_job_that_ends_before_the_answer_leaves_no_lock(servers: list[Server], lock: bytes) -> None:
    one, two, _ = servers
    [job], [other] = one.take(b"job"), two.take(b"other")
    request = one.worker.send(Command.ACQUIRE, text(lock) + b"\0\1" + job.handle)
    one.worker.done(job)
    one.worker.expect(request, Command.ACQUIRED, b"\1")
    assert two.worker.acquire(other, lock) or two.worker.acquire(two.worker.take(), lock)


def test_never_more_than_the_limit(servers: list[Server], lock: bytes) -> None:
    """Every server runs thirty jobs, of which two may hold the lock at once, until all are done."""
    guard = threading.Lock()
    holders: set[bytes] = set()
    most = 0

    def run(server: Server) -> None:
        nonlocal most
        left = 30
        while left:
            job = server.worker.take()
            if not server.worker.acquire(job, lock, 2):
                continue
            with guard:
                holders.add(job.handle)
                most = max(most, len(holders))
            server.worker.silence()
            with guard:
                holders.discard(job.handle)
            server.worker.done(job)
            left -= 1

    for server in servers:
        server.submit(*(b"%d" % number for number in range(30)))
    threads = [threading.Thread(target=run, args=[server]) for server in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most <= 2
