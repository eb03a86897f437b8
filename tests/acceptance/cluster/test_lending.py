"""A job that is submitted at one server is run by a worker that is connected to another one."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.acceptance.cluster.conftest import POSTGRESQL, Pair, member
from tests.support import serving
from tests.support.gearman_peer import Kind, Peer, woken, worker
from tests.support.http_peer import Peer as HttpPeer
from tests.support.waiting import wait_for

pytestmark = POSTGRESQL

FUNCTION = b"f"


@contextmanager
def idle_worker(server: serving.ServerProcess, *functions: bytes) -> Iterator[Peer]:
    """A worker that sleeps."""
    with worker(server.port, *functions or (FUNCTION,)) as taker:
        taker.send(Kind.PRE_SLEEP)
        yield taker


def record(server: serving.ServerProcess, handle: bytes) -> dict[str, object]:
    """What is known of a job that has ended, from the server that was its home."""
    found: dict[str, object] = {}

    def ended() -> bool:
        nonlocal found
        found = HttpPeer(server.urls[1]).get(f"/jobs/{handle.decode()}")
        return found["state"] not in ("queued", "running", "scheduled")

    wait_for(ended, "the job has ended")
    return found


def test_foreground(pair: Pair) -> None:
    one, two = pair
    for home, other in ((one, two), (two, one)):
        with idle_worker(other) as taker, Peer(home.port) as client:
            handle = client.submit(FUNCTION, b"", b"payload")
            job = woken(taker)
            assert (job.handle, job.data) == (handle, b"payload")
            taker.send(Kind.WORK_STATUS, handle, b"1", b"2")
            taker.send(Kind.WORK_DATA, handle, b"part")
            taker.send(Kind.WORK_WARNING, handle, b"careful")
            taker.send(Kind.WORK_COMPLETE, handle, b"result")
            client.expect(Kind.WORK_STATUS, handle, b"1", b"2")
            client.expect(Kind.WORK_DATA, handle, b"part")
            client.expect(Kind.WORK_WARNING, handle, b"careful")
            client.expect(Kind.WORK_COMPLETE, handle, b"result")


@pytest.mark.parametrize("word", [Kind.WORK_FAIL, Kind.WORK_EXCEPTION])
def test_failure(pair: Pair, word: Kind) -> None:
    one, two = pair
    with idle_worker(two) as taker, Peer(one.port) as client:
        client.send(Kind.OPTION_REQ, b"exceptions").expect(Kind.OPTION_RES, b"exceptions")
        handle = client.submit(FUNCTION)
        woken(taker)
        arguments = (handle,) if word is Kind.WORK_FAIL else (handle, b"why")
        taker.send(word, *arguments)
        client.expect(word, *arguments)


def test_background_job_is_recorded_at_home_with_its_worker(pair: Pair) -> None:
    one, two = pair
    with idle_worker(two) as taker, Peer(one.port) as client:
        taker.send(Kind.SET_CLIENT_ID, b"bob")
        handle = client.submit(FUNCTION, b"key", b"payload", kind=Kind.SUBMIT_JOB_BG)
        taker.expect(Kind.NOOP)
        job = taker.grab(Kind.GRAB_JOB_UNIQ)
        assert (job.handle, job.unique, job.data) == (handle, b"key", b"payload")
        taker.send(Kind.WORK_COMPLETE, handle, b"result")
        ended = record(one, handle)
    assert (ended["state"], ended["worker"], ended["attempts"]) == ("done", "bob", 1)


def test_worker_of_the_same_server_is_first(pair: Pair) -> None:
    one, two = pair
    with idle_worker(two) as far, idle_worker(one) as near, Peer(one.port) as client:
        for _ in range(3):
            near.silence()  # the server knows that it sleeps
            handle = client.submit(FUNCTION)
            assert woken(near).handle == handle
            near.send(Kind.WORK_COMPLETE, handle, b"").send(Kind.PRE_SLEEP)
            client.expect(Kind.WORK_COMPLETE, handle, b"")
        assert far.take() is None  # on a busy machine it may have been woken, too, when `near` was slow


def test_busy_worker_gets_nothing_ahead(pair: Pair) -> None:
    """The second job waits at its home, where the next free worker gets it, whoever that is."""
    one, two = pair
    with idle_worker(two) as taker, Peer(one.port) as client:
        first = client.submit(FUNCTION)
        assert woken(taker).handle == first
        second = client.submit(FUNCTION)
        with worker(one.port, FUNCTION) as near:
            assert near.grab().handle == second
            near.send(Kind.WORK_COMPLETE, second, b"")
            client.expect(Kind.WORK_COMPLETE, second, b"")
        taker.send(Kind.WORK_COMPLETE, first, b"")
        client.expect(Kind.WORK_COMPLETE, first, b"")


def test_job_of_a_lost_worker_runs_again(pair: Pair) -> None:
    one, two = pair
    with Peer(one.port) as client:
        with idle_worker(two) as lost:
            handle = client.submit(FUNCTION, b"", b"payload", kind=Kind.SUBMIT_JOB_BG)
            assert woken(lost).handle == handle
        with idle_worker(two) as taker:
            assert woken(taker).handle == handle
            taker.send(Kind.WORK_COMPLETE, handle, b"")
            ended = record(one, handle)
    assert (ended["state"], ended["attempts"]) == ("done", 2)


def test_timeout_of_the_worker(pair: Pair) -> None:
    one, two = pair
    with Peer(two.port) as taker, Peer(one.port) as client:
        taker.send(Kind.CAN_DO_TIMEOUT, FUNCTION, b"1").send(Kind.PRE_SLEEP)
        handle = client.submit(FUNCTION)
        assert woken(taker).handle == handle
        client.expect(Kind.WORK_FAIL, handle)


def test_cancelled_job_is_revoked(pair: Pair) -> None:
    one, two = pair
    with idle_worker(two) as taker, Peer(one.port) as client:
        handle = client.submit(FUNCTION, kind=Kind.SUBMIT_JOB_BG)
        assert woken(taker).handle == handle
        HttpPeer(one.urls[1]).post(f"/jobs/{handle.decode()}/cancel")
        assert record(one, handle)["state"] == "cancelled"
        wait_for(lambda: HttpPeer(two.urls[1]).get("/overview")["running"] == 0, "the other server has forgotten it")


@pytest.mark.parametrize("taker_over", ["two", "three"])
@pytest.mark.parametrize("ends", ["before", "after"])
def test_home_dies_and_the_job_goes_on(schema_url: str, taker_over: str, ends: str) -> None:
    """A job that runs elsewhere is not run again, whether its end comes before or after its home has been replaced."""
    none = ("--lease", "2s", "--takeover-jobs", "0")
    some = ("--lease", "2s")
    with ExitStack() as stack:
        two = stack.enter_context(member(schema_url, "two", *(some if taker_over == "two" else none)))
        three = stack.enter_context(member(schema_url, "three", *(some if taker_over == "three" else none)))
        one = stack.enter_context(member(schema_url, "one", *none))
        taker = stack.enter_context(idle_worker(two))
        client = stack.enter_context(Peer(one.port))
        handle = client.submit(FUNCTION, b"", b"payload", kind=Kind.SUBMIT_JOB_BG)
        assert woken(taker).handle == handle
        one.kill()
        if ends == "before":
            taker.send(Kind.WORK_COMPLETE, handle, b"")
        new_home = {"two": two, "three": three}[taker_over]
        assert new_home.says("took over jobs")
        if ends == "after":
            for server in (two, three):
                with worker(server.port, FUNCTION) as other:
                    other.send(Kind.GRAB_JOB).expect(Kind.NO_JOB)
            taker.send(Kind.WORK_COMPLETE, handle, b"")
        ended = record(new_home, handle)
    assert (ended["state"], ended["attempts"]) == ("done", 1)


def test_job_of_a_higher_priority_at_another_server_comes_first(pair: Pair) -> None:
    """Although the only worker is at a server that has jobs of its own."""
    one, two = pair
    with Peer(two.port) as near, Peer(one.port) as far, worker(two.port, FUNCTION) as taker:
        low = [near.submit(FUNCTION, kind=Kind.SUBMIT_JOB_LOW) for _ in range(8)]
        running = taker.grab().handle
        high = far.submit(FUNCTION, kind=Kind.SUBMIT_JOB_HIGH)
        left = len(low) - 1
        while running != high:
            # It goes back if the worker takes a second for the next step, and comes again.
            wait_for(lambda: _borrowed(HttpPeer(two.urls[1])) == 1, "the other server has the job")
            taker.send(Kind.WORK_COMPLETE, running, b"")
            running = taker.grab().handle
            left -= running != high
        assert left > 0, "others wait that were there before"
        taker.send(Kind.WORK_COMPLETE, high, b"")
        far.expect(Kind.WORK_COMPLETE, high, b"")
        for _ in range(left):
            taker.send(Kind.WORK_COMPLETE, taker.grab().handle, b"")


def _borrowed(server: HttpPeer) -> int:
    """How many jobs of others a server has."""
    return sum(node["borrowed"] for node in server.get("/cluster") if node["name"] == "two")
