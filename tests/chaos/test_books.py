"""The books find what they are kept for: a lost job, an invented one, and a key that runs twice at a time."""

from collections.abc import Iterator

import pytest

from tests.chaos.check import Books
from tests.chaos.keys import Attempt, KeyBook
from tests.chaos.members import Fleet, Member
from tests.crash.load import FUNCTION, Job
from tests.support import postgres
from tests.support.gearman_peer import Kind, Peer
from tests.support.postgres_programs import NEWEST, PEERS

needs_postgresql = pytest.mark.peer(PEERS[NEWEST])

SOON = 0.5  # seconds: what is lost does not come back later either


@pytest.fixture
def cluster() -> Iterator[postgres.Cluster]:
    with postgres.running(fsync="off") as cluster:
        yield cluster


@pytest.fixture
def fleet(cluster: postgres.Cluster) -> Iterator[Fleet]:
    with Fleet([Member("server-0", cluster.url())]) as fleet:
        yield fleet


@needs_postgresql
def test_a_lost_job_is_noticed(cluster: postgres.Cluster, fleet: Fleet) -> None:
    books = Books(fleet)
    books.commit()
    [member] = fleet.members
    member.kill()
    cluster.query("DELETE FROM geartrain.jobs")
    member.start()
    with pytest.raises(AssertionError, match="after: 1 of 1 are not there"):
        books.wait_until_whole("after", SOON)


@needs_postgresql
def test_a_job_that_nobody_submitted_is_noticed(fleet: Fleet) -> None:
    books = Books(fleet)
    with Peer(fleet.members[0].port) as stranger:
        stranger.submit(FUNCTION, b"", b"of nobody", kind=Kind.SUBMIT_JOB_BG)
    with pytest.raises(AssertionError, match="1 jobs are new, but only 0 were never answered"):
        books.check("after")
    with pytest.raises(AssertionError, match="which nobody submitted"):
        books.drain("at the end")


@needs_postgresql
def test_an_attempt_that_nobody_made_is_noticed(fleet: Fleet) -> None:
    books = Books(fleet)
    with Peer(fleet.members[0].port) as client:
        job = Job(b"payload", Kind.SUBMIT_JOB_BG, b"")
        books.account.add(job)
        books.account.acknowledge(job, client.submit(FUNCTION, b"", job.payload, kind=Kind.SUBMIT_JOB_BG))
    with Peer(fleet.members[0].port).register(FUNCTION) as unknown:
        unknown.grab()
    with pytest.raises(AssertionError, match="1 attempts were counted that were not made, and only 0 may not have"):
        books.check("after", SOON)
    books.ledger.unread = 1
    books.check("after")


@needs_postgresql
def test_an_end_that_is_not_stored_is_noticed_although_the_submission_was_never_answered(fleet: Fleet) -> None:
    books = Books(fleet)
    job = Job(b"payload", Kind.SUBMIT_JOB_BG, b"")
    books.account.add(job)
    with Peer(fleet.members[0].port) as client, Peer(fleet.members[0].port).register(FUNCTION) as worker:
        client.submit(FUNCTION, b"", job.payload, kind=Kind.SUBMIT_JOB_BG)
        books.account.give(job.payload, worker.grab().handle)
        job.ended = True
        assert books.unstored_ends().startswith("1 that have ended are in the database")


@needs_postgresql
def test_a_drain_leaves_what_is_not_due(fleet: Fleet) -> None:
    books = Books(fleet)
    books.drain("at the end")
    assert len(books.promised()) == 1
    books.check("after")


@pytest.fixture
def book() -> KeyBook:
    book = KeyBook()
    book.submit(b"payload")
    return book


ONE, OTHER = Member("one", "memory"), Member("other", "memory")


def run_twice(book: KeyBook) -> None:
    book.begin(b"key", b"payload", Attempt.at(b"H:1", ONE))
    book.begin(b"key", b"payload", Attempt.at(b"H:2", OTHER))


def test_a_key_that_runs_twice_at_a_time_is_noticed_once(book: KeyBook) -> None:
    run_twice(book)
    assert book.twice({}) == ["b'key' ran as b'H:1' on one and at the same time as b'H:2' on other"]
    assert book.twice({}) == []


def test_two_jobs_may_have_a_key_that_the_database_has_lost_and_each_runs_once_at_a_time(book: KeyBook) -> None:
    run_twice(book)
    assert book.twice({}, loses_keys=True) == []
    book.begin(b"key", b"payload", Attempt.at(b"H:2", ONE))
    assert book.twice({}, loses_keys=True) == ["b'key' ran as b'H:2' on other and at the same time as b'H:2' on one"]


def test_a_key_may_run_again_when_its_server_was_taken_for_dead(book: KeyBook) -> None:
    run_twice(book)
    assert book.twice({"one": 1}) == []


def test_a_key_may_run_again_when_the_home_of_its_job_had_a_fault(book: KeyBook) -> None:
    home = Member("home", "memory")
    book.begin(b"key", b"payload", Attempt.at(b"H:1", ONE, home))
    home.faults += 1
    book.begin(b"key", b"payload", Attempt.at(b"H:2", OTHER))
    assert book.twice({}) == []


def test_a_key_may_run_again_after_its_end(book: KeyBook) -> None:
    attempt = Attempt.at(b"H:1", ONE)
    book.begin(b"key", b"payload", attempt)
    book.end(b"key", attempt)
    run_twice(book)
    assert len(book.twice({})) == 1
