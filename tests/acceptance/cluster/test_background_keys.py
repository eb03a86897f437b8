"""Background jobs with the same unique key at several servers: one stands for the other until it has ended."""

import signal

import pytest

from tests.acceptance.cluster.conftest import POSTGRESQL, Pair
from tests.acceptance.cluster.test_routing import wait_until_linked
from tests.support import serving
from tests.support.gearman_peer import Kind, Peer, worker

pytestmark = POSTGRESQL

FUNCTION = b"f"
NEVER_SOON = b"4000000000"


@pytest.fixture
def linked(own_pair: Pair) -> Pair:
    wait_until_linked(*own_pair)
    return own_pair


def run_next(server: serving.ServerProcess, word: Kind = Kind.WORK_COMPLETE) -> tuple[bytes, bytes]:
    """Run a job of this server, and return when it has heard of the end: the handle and the payload."""
    with worker(server.port, FUNCTION) as taker:
        job = taker.grab()
        taker.send(word, job.handle, *([b""] if word is Kind.WORK_COMPLETE else []))
        taker.send(Kind.ECHO_REQ, b"heard").expect(Kind.ECHO_RES, b"heard")
    return job.handle, job.data


def test_job_of_the_other_server_stands_for_it(linked: Pair) -> None:
    one, two = linked
    with Peer(one.port) as first, Peer(two.port) as second:
        handle = first.submit(FUNCTION, b"key", b"payload", kind=Kind.SUBMIT_JOB_BG)
        assert second.submit(FUNCTION, b"key", b"other", kind=Kind.SUBMIT_JOB_BG) == handle
        assert run_next(one) == (handle, b"payload")
        with worker(two.port, FUNCTION) as taker:
            taker.send(Kind.GRAB_JOB).expect(Kind.NO_JOB)


@pytest.mark.parametrize("word", [Kind.WORK_COMPLETE, Kind.WORK_FAIL])
def test_key_is_free_as_soon_as_the_job_has_ended(linked: Pair, word: Kind) -> None:
    """The store hears of the end some milliseconds later; a submission in between is another job, and runs."""
    one, two = linked
    handles = set()
    with Peer(one.port) as first, Peer(two.port) as second:
        for number in range(20):
            home, client = ((one, first), (two, second))[number % 2]
            payload = b"%d" % number
            handle = client.submit(FUNCTION, b"key", payload, kind=Kind.SUBMIT_JOB_BG)
            assert run_next(home, word) == (handle, payload)
            handles.add(handle)
    assert len(handles) == 20


def test_time_of_the_new_job_is_kept(linked: Pair) -> None:
    one, two = linked
    with Peer(one.port) as first, Peer(two.port) as second:
        ended = first.submit(FUNCTION, b"key", kind=Kind.SUBMIT_JOB_BG)
        run_next(one)
        second.send(Kind.SUBMIT_JOB_EPOCH, FUNCTION, b"key", NEVER_SOON, b"later")
        handle = second.body(Kind.JOB_CREATED)
        assert handle != ended
        assert second.status(handle) == (1, 0, 0, 0)
        with worker(two.port, FUNCTION) as taker:
            taker.send(Kind.GRAB_JOB).expect(Kind.NO_JOB)


def test_home_that_does_not_answer_keeps_its_keys(linked: Pair) -> None:
    """Those who submit the same key meanwhile wait for the answer as well."""
    one, two = linked
    with Peer(one.port) as first, Peer(two.port) as second, Peer(two.port) as third:
        handle = first.submit(FUNCTION, b"key", kind=Kind.SUBMIT_JOB_BG)
        one.signal(signal.SIGSTOP)
        try:
            second.send(Kind.SUBMIT_JOB_BG, FUNCTION, b"key", b"")
            third.submit(b"other", kind=Kind.SUBMIT_JOB_BG)  # the store has answered
            assert third.submit(FUNCTION, b"key", kind=Kind.SUBMIT_JOB_BG) == handle
            assert second.body(Kind.JOB_CREATED) == handle
        finally:
            one.signal(signal.SIGCONT)
