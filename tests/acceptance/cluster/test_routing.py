"""A job that one server has is found by a client of another one: by handle, unique key or name."""

import signal
from collections.abc import Iterator

import pytest

from tests.acceptance.cluster.conftest import POSTGRESQL, Pair, member
from tests.acceptance.cluster.test_lending import idle_worker, woken
from tests.support import danga_peer, periodic_peer, postgres, postgres_programs, serving
from tests.support.gearman_peer import Kind, Peer, worker
from tests.support.http_peer import Peer as HttpPeer
from tests.support.postgres_fixtures import Clusters
from tests.support.waiting import wait_for

pytestmark = POSTGRESQL

FUNCTION = b"f"
DANGA, PERIODIC = (f"{scheme}://{serving.HOST}:0" for scheme in ("danga", "periodic"))
DOORS = ("--listen", DANGA, "--listen", PERIODIC)
KNOWN, UNKNOWN = (1, 0, 0, 0), (0, 0, 0, 0)


def port(server: serving.ServerProcess, scheme: str) -> int:
    return next(int(url.rpartition(":")[2]) for url in server.urls if url.startswith(scheme))


@pytest.fixture(scope="module")
def pair(clusters: Clusters) -> Iterator[Pair]:
    """Two servers with more doors, which are linked."""
    shared = clusters(postgres_programs.NEWEST)
    with postgres.fresh_schema(shared) as name:
        url = shared.url(schema=name)
        with member(url, "one", "--lease", "60s", *DOORS) as one, member(url, "two", "--lease", "60s", *DOORS) as two:
            wait_until_linked(one, two)
            yield one, two


def wait_until_linked(one: serving.ServerProcess, two: serving.ServerProcess) -> None:
    """A worker of one server has run a job of the other one."""
    with idle_worker(one, b"linked") as taker, Peer(two.port) as client:
        handle = client.submit(b"linked")
        assert woken(taker).handle == handle
        taker.send(Kind.WORK_COMPLETE, handle, b"")
        client.expect(Kind.WORK_COMPLETE, handle, b"")


def test_get_status(pair: Pair) -> None:
    one, two = pair
    with Peer(one.port) as client, Peer(two.port) as other, idle_worker(one) as taker:
        handle = client.submit(FUNCTION, b"key", kind=Kind.SUBMIT_JOB_BG)
        assert woken(taker).handle == handle
        taker.send(Kind.WORK_STATUS, handle, b"3", b"4")
        wait_for(lambda: client.status(handle) == (1, 1, 3, 4), "the progress has arrived")
        assert other.status(handle) == (1, 1, 3, 4)
        other.send(Kind.GET_STATUS_UNIQUE, b"key").expect(Kind.STATUS_RES_UNIQUE, b"key", b"1", b"1", b"3", b"4", b"0")
        taker.send(Kind.WORK_COMPLETE, handle, b"")
        wait_for(lambda: other.status(handle) == UNKNOWN, "the job has ended")


def test_answers_keep_their_order(pair: Pair) -> None:
    one, two = pair
    with Peer(one.port) as client, Peer(two.port) as other:
        handle = client.submit(FUNCTION, kind=Kind.SUBMIT_JOB_BG)
        for number in range(200):
            other.send(Kind.GET_STATUS, handle).send(Kind.ECHO_REQ, b"%d" % number)
        for number in range(200):
            other.expect(Kind.STATUS_RES, handle, b"1", b"0", b"0", b"0")
            other.expect(Kind.ECHO_RES, b"%d" % number)
        other.text(f"cancel job {handle.decode()}")
        assert other.line() == b"OK\r\n"


def test_cancel(pair: Pair) -> None:
    one, two = pair
    with Peer(one.port) as client, Peer(two.port) as other:
        handle = client.submit(FUNCTION, kind=Kind.SUBMIT_JOB)
        other.text(f"cancel job {handle.decode()}")
        assert other.line() == b"OK\r\n"
        client.expect(Kind.WORK_FAIL, handle)
        other.text(f"cancel job {handle.decode()}")
        assert other.line() == b"ERR UNKNOWN_JOB\r\n"


def test_cancel_where_the_job_runs(pair: Pair) -> None:
    """The borrower of a job asks its home."""
    one, two = pair
    with Peer(one.port) as client, Peer(two.port) as other, idle_worker(two) as taker:
        handle = client.submit(FUNCTION, kind=Kind.SUBMIT_JOB)
        assert woken(taker).handle == handle
        other.text(f"cancel job {handle.decode()}")
        assert other.line() == b"OK\r\n"
        client.expect(Kind.WORK_FAIL, handle)


def dead_job(server: serving.ServerProcess, function: bytes) -> bytes:
    """The handle of a job that is dead at this server."""
    with Peer(server.port) as client, worker(server.port, function) as taker:
        http = HttpPeer(next(url for url in server.urls if url.startswith("http")))
        assert http.call("PATCH", f"/functions/{function.decode()}/settings", {"failures": "dead"}).status == 200
        handle = client.submit(function, b"key", kind=Kind.SUBMIT_JOB_BG)
        taker.grab()
        taker.send(Kind.WORK_FAIL, handle)
        wait_for(lambda: handle in dead_jobs(client), "the job is dead")
    return handle


def dead_jobs(client: Peer) -> list[bytes]:
    client.text("show dead jobs")
    lines = iter(client.line, b".\n")
    return [line.split(b"\t")[0] for line in lines]


@pytest.mark.parametrize("command", ["retry", "delete"])
def test_dead_job(pair: Pair, command: str) -> None:
    one, two = pair
    handle = dead_job(one, command.encode())
    with Peer(one.port) as client, Peer(two.port) as other:
        other.text(f"{command} job {handle.decode()}")
        assert other.line() == b"OK\r\n"
        assert client.status(handle) == (KNOWN if command == "retry" else UNKNOWN)
        assert dead_jobs(client) == []
        other.text(f"{command} job {handle.decode()}")
        assert other.line() == b"ERR UNKNOWN_JOB\r\n"
        client.text(f"cancel job {handle.decode()}")  # other tests list all jobs
        client.line()


def test_retry_of_a_job_whose_key_is_in_use(pair: Pair) -> None:
    one, two = pair
    handle = dead_job(one, b"again")
    with Peer(one.port) as client, Peer(two.port) as other:
        holder = other.submit(b"again", b"key", kind=Kind.SUBMIT_JOB_BG)
        other.text(f"retry job {handle.decode()}")
        assert other.line().startswith(b"ERR UNIQUE_IN_USE")
        assert handle in dead_jobs(client)
        for command in (f"cancel job {holder.decode()}", f"delete job {handle.decode()}"):
            other.text(command)
            assert other.line() == b"OK\r\n"


def test_danga(pair: Pair) -> None:
    one, two = pair
    with danga_peer.Peer(port(one, "danga")) as client, danga_peer.Peer(port(two, "danga")) as other:
        handle = client.create(FUNCTION, b"", b"payload")
        with danga_peer.Peer(port(one, "danga")) as taker:
            taker.connect(FUNCTION).grab()
            taker.announce(1, 2, 30)
            wait_for(lambda: client.status(handle) == (1, 2, 30), "the progress has arrived")
            assert other.status(handle) == (1, 2, 30)
            assert not other.completion(handle).over
            taker.finish(b"result")
            wait_for(lambda: other.completion(handle).over, "the other server finds the result")
        assert other.completion(handle).result == b"result"
        assert other.status(handle) == (1, 2, 30)


def test_periodic_remove(pair: Pair) -> None:
    one, two = pair
    with periodic_peer.Peer(port(one, "periodic")) as client, periodic_peer.Peer(port(two, "periodic")) as other:
        client.submit(FUNCTION, b"name")
        assert [job.name for job in client.dump()] == [b"name"]
        other.succeed(periodic_peer.Command.REMOVE_JOB, periodic_peer.text(FUNCTION) + periodic_peer.text(b"name"))
        assert client.dump() == []


@pytest.mark.parametrize("server", ["one", "two"])
def test_periodic_replaces(pair: Pair, server: str) -> None:
    """The job of the other server has the new payload and time when the submission is acknowledged."""
    home, away = pair if server == "one" else pair[::-1]
    with periodic_peer.Peer(port(home, "periodic")) as client, periodic_peer.Peer(port(away, "periodic")) as other:
        client.submit(FUNCTION, b"replaced", b"old", 4_000_000_000)
        (before,) = client.dump()
        other.submit(FUNCTION, b"replaced", b"new", 4_100_000_000, count=3)
        (after,) = client.dump()
        assert (after.payload, after.run_at, after.count) == (b"new", 4_100_000_000, 3)
        assert before.name == after.name
        assert other.dump() == []
        other.succeed(periodic_peer.Command.REMOVE_JOB, periodic_peer.text(FUNCTION) + periodic_peer.text(b"replaced"))


def test_periodic_replaces_and_waits(pair: Pair) -> None:
    """RUN_JOB replaces the job that waits at the other server, and has its result."""
    one, two = pair
    with (
        periodic_peer.Peer(port(one, "periodic"), kind=periodic_peer.WORKER) as taker,
        periodic_peer.Peer(port(one, "periodic")) as client,
        periodic_peer.Peer(port(two, "periodic")) as other,
    ):
        client.submit(b"run", b"name", b"old", 4_000_000_000)
        taker.offer(b"run")
        taking = taker.grab()
        with idle_worker(two, b"run"):  # RUN_JOB is for functions with workers; it is not needed
            running = other.run(b"run", b"name", b"new")
            job = taker.assigned(taking)
            assert (job.name, job.payload) == (b"name", b"new")
            taker.done(job, b"result")
            assert other.data(running) == b"result"


def test_periodic_receives_data(pair: Pair) -> None:
    """Of a job that waits at the other server already, by its name."""
    one, two = pair
    command, named = periodic_peer.Command.RECV_DATA, periodic_peer.job(FUNCTION, b"parts")
    with (
        periodic_peer.Peer(port(one, "periodic"), kind=periodic_peer.WORKER) as taker,
        periodic_peer.Peer(port(two, "periodic"), kind=periodic_peer.WORKER) as idler,
        periodic_peer.Peer(port(one, "periodic")) as client,
        periodic_peer.Peer(port(two, "periodic")) as other,
    ):
        taker.offer(FUNCTION)
        idler.offer(FUNCTION)  # there is data of functions with workers only
        client.submit(FUNCTION, b"parts")
        receiving = other.send(command, named)
        other.expect(receiving, periodic_peer.Command.SUCCESS)
        job = taker.take()
        taker.part(job, b"first")
        assert other.data(receiving) == b"first"
        taker.part(job, b"second")
        taker.done(job, b"result")
        assert [other.data(receiving), other.data(receiving)] == [b"second", b"EOF"]


def test_home_is_gone(schema_url: str) -> None:
    """A job whose home is gone is known before another server has taken it over."""
    with (
        member(schema_url, "two", "--lease", "60s") as two,
        member(schema_url, "one", "--lease", "60s") as one,
        Peer(one.port) as client,
        Peer(two.port) as other,
    ):
        wait_until_linked(one, two)
        handle = client.submit(FUNCTION, kind=Kind.SUBMIT_JOB_BG)
        one.signal(signal.SIGSTOP)
        assert other.status(handle) == KNOWN
        other.text(f"cancel job {handle.decode()}")
        assert other.line().startswith(b"ERR UNREACHABLE")
        one.kill()
