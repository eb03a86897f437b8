"""Leases of workers that send heartbeats, with time that passes when it is told to."""

from collections.abc import Iterator

import pytest

from geartrain.doors.door import Limits
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import QUEUED, RUNNING
from tests.support import gearmonkey_door
from tests.support.gearmonkey_door import Bench, DoorPeer

LEASE = 60.0
GRACE = 1.0


@pytest.fixture
def door() -> Iterator[Bench]:
    with gearmonkey_door.opened(limits=Limits(worker_lease=LEASE)) as bench:
        yield bench


@pytest.fixture
def worker(door: Bench) -> DoorPeer:
    """It has announced heartbeats."""
    peer = door.peer()
    assert peer.ask("CLIENT GRACE 0", "CLIENT HEARTBEAT") == b"+OK\r\n$2\r\n60\r\n"
    return peer


def popped(door: Bench, worker: DoorPeer) -> LiveJob:
    number = door.submit()
    assert b"%d" % number in worker.ask("RPOP queue:f:normal")
    job = door.engine.jobs.get(number)
    assert job is not None
    return job


def test_a_silent_worker_loses_its_job(door: Bench, worker: DoorPeer) -> None:
    job = popped(door, worker)
    door.pass_time(LEASE - 1)
    assert job.state is RUNNING
    door.pass_time(1)
    door.pass_time(GRACE)
    assert worker.connection.closing
    worker.close()
    assert job.state is QUEUED
    assert [attempt.reason for attempt in job.failed_attempts or ()] == ["worker sent no heartbeat for 60 s"]


def test_heartbeats_keep_the_job(door: Bench, worker: DoorPeer) -> None:
    job = popped(door, worker)
    for _ in range(20):
        door.pass_time(LEASE / 3)
        assert worker.ask("CLIENT HEARTBEAT") == b"$2\r\n60\r\n"
    assert job.state is RUNNING
    assert not worker.connection.closing


def test_a_worker_without_jobs_may_be_silent(door: Bench, worker: DoorPeer) -> None:
    """And its lease begins with the job that it gets then."""
    door.pass_time(20 * LEASE)
    job = popped(door, worker)
    door.pass_time(LEASE - 1)
    assert job.state is RUNNING
    assert not worker.connection.closing


def test_a_worker_that_announced_nothing_has_no_lease(door: Bench) -> None:
    peer = door.peer()
    job = popped(door, peer)
    door.pass_time(100 * LEASE)
    assert job.state is RUNNING


def test_a_server_that_was_stopped_itself_reads_what_has_arrived_first(door: Bench, worker: DoorPeer) -> None:
    job = popped(door, worker)
    door.pass_time(10 * LEASE)  # both were stopped: the heartbeat comes after the timer
    worker.ask("CLIENT HEARTBEAT")
    door.pass_time(GRACE)
    door.pass_time(GRACE)
    assert job.state is RUNNING
    assert not worker.connection.closing


def test_no_lease_if_the_setting_says_so() -> None:
    with gearmonkey_door.opened(limits=Limits(worker_lease=0.0)) as door:
        peer = door.peer()
        assert peer.ask("CLIENT HEARTBEAT") == b"$1\r\n0\r\n"
        job = popped(door, peer)
        door.pass_time(100 * LEASE)
        assert job.state is RUNNING
