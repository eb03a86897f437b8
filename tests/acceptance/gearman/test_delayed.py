"""SUBMIT_JOB_EPOCH: a background job that runs at a given second."""

import time

import pytest

from tests.support.gearman_peer import Hire, Kind, Peer

NOW = [b"0", b"1", b"-1", b"1000000000", b"abc", b"", b"-99999"]
FAR_AWAY = b"9999999999"


def at(client: Peer, function: bytes, when: bytes, data: bytes = b"data", unique: bytes = b"") -> bytes:
    client.send(Kind.SUBMIT_JOB_EPOCH, function, unique, when, data)
    return client.body(Kind.JOB_CREATED)


@pytest.mark.parametrize("when", NOW)
def test_the_past_is_now_and_so_is_no_number(when: bytes, client: Peer, worker: Peer, function: bytes) -> None:
    handle = at(client, function, when, b"da\0ta")
    worker.send(Kind.GRAB_JOB)
    worker.expect(Kind.JOB_ASSIGN, handle, function, b"da\0ta")


@pytest.mark.parametrize("when", NOW)
def test_what_is_due_wakes_a_sleeper(when: bytes, client: Peer, worker: Peer, function: bytes) -> None:
    worker.sleep().silence()
    handle = at(client, function, when)
    worker.expect(Kind.NOOP)
    assert worker.grab().handle == handle


def test_it_is_a_background_job(client: Peer, worker: Peer, function: bytes) -> None:
    handle = at(client, function, b"0")
    worker.grab()
    worker.send(Kind.WORK_COMPLETE, handle, b"result").silence()
    client.silence()


def test_a_job_that_is_not_due_waits(client: Peer, worker: Peer, function: bytes) -> None:
    handle = at(client, function, FAR_AWAY)
    assert client.status(handle) == (1, 0, 0, 0)
    assert worker.take() is None
    assert client.status(handle) == (1, 0, 0, 0)


def test_a_job_that_is_not_due_is_listed(client: Peer, admin: Peer, function: bytes) -> None:
    handle = at(client, function, FAR_AWAY)
    assert [handle, b"0", b"0", b"1"] in admin.listing("show jobs")
    assert [function, b"1", b"0", b"0"] in admin.listing("status")


def test_a_job_that_is_not_due_holds_its_key(client: Peer, function: bytes) -> None:
    handle = at(client, function, FAR_AWAY, unique=b"key")
    assert at(client, function, FAR_AWAY, unique=b"key") == handle


@pytest.mark.differs_from_gearmand
def test_a_sleeper_is_woken_when_the_job_is_due(client: Peer, worker: Peer, function: bytes) -> None:
    """gearmand wakes it at once, for nothing, and never again."""
    assert worker.take() is None
    worker.sleep().silence()
    due = int(time.time()) + 2
    handle = at(client, function, b"%d" % due)
    worker.expect(Kind.NOOP)
    assert worker.grab().handle == handle
    assert time.time() >= due


@pytest.mark.differs_from_gearmand
def test_jobs_run_in_the_order_in_which_they_are_due(client: Peer, hire: Hire, function: bytes) -> None:
    worker = hire(function)
    soon = int(time.time()) + 1
    for data, when in ((b"third", soon + 2), (b"first", soon), (b"second", soon + 1)):
        at(client, function, b"%d" % when, data)
    assert [worker.grab().data for _ in range(3)] == [b"first", b"second", b"third"]


@pytest.mark.differs_from_gearmand
def test_a_job_that_is_not_due_holds_up_no_other(client: Peer, worker: Peer, function: bytes) -> None:
    """In gearmand it stands at the head of its queue, and worker and server wake each other without end."""
    at(client, function, FAR_AWAY)
    low = client.submit(function, b"", b"low", kind=Kind.SUBMIT_JOB_LOW_BG)
    assert worker.grab().handle == low
    worker.sleep().silence()
    worker.silence()
    normal = client.submit(function, b"", b"normal", kind=Kind.SUBMIT_JOB_BG)
    worker.expect(Kind.NOOP)
    assert worker.grab().handle == normal


@pytest.mark.differs_from_gearmand
@pytest.mark.parametrize("when", [b"9" * 20, b"9223372036854775808", b"9" * 400, b"9" * 5000])
def test_a_time_beyond_all_time_is_refused(when: bytes, client: Peer, worker: Peer, function: bytes) -> None:
    """gearmand does not answer at all."""
    client.send(Kind.SUBMIT_JOB_EPOCH, function, b"", when, b"data")
    code, text = client.error()
    assert code == "INVALID_PACKET"
    assert text
    client.silence()
    assert worker.take() is None
