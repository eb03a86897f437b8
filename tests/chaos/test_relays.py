"""The relays between servers do to links what faults ask of them."""

import contextlib
from collections.abc import Iterator

import pytest

from tests.chaos.members import Fleet, Member
from tests.support import postgres
from tests.support.gearman_peer import Assignment, Kind, Peer
from tests.support.link_relay import Direction, LinkRelays
from tests.support.postgres_programs import NEWEST, PEERS
from tests.support.waiting import wait_for

pytestmark = pytest.mark.peer(PEERS[NEWEST])

NAMES = ("one", "two")


@pytest.fixture
def relays() -> Iterator[LinkRelays]:
    with LinkRelays(NAMES) as relays:
        yield relays


@pytest.fixture
def fleet(relays: LinkRelays) -> Iterator[Fleet]:
    with postgres.running(fsync="off") as cluster, fleet_of(cluster, relays) as fleet:
        wait_for(lambda: relays.linked("one") == {"two"}, "they are linked")
        yield fleet


def fleet_of(cluster: postgres.Cluster, relays: LinkRelays) -> Fleet:
    return Fleet([Member(name, cluster.url(), relay=relays[name]) for name in NAMES])


@contextlib.contextmanager
def far_worker(fleet: Fleet) -> Iterator[Peer]:
    """A worker at the second server that sleeps."""
    with Peer(fleet.members[1].port).register(b"f") as worker:
        worker.send(Kind.PRE_SLEEP).silence()
        yield worker


def woken(worker: Peer) -> Assignment:
    """The job for which a worker is woken. It may have gone back before the worker asks."""
    while True:
        worker.expect(Kind.NOOP)
        job = worker.take()
        if job is not None:
            return job
        worker.send(Kind.PRE_SLEEP)


def test_jobs_cross_again_when_links_are_restored(fleet: Fleet, relays: LinkRelays) -> None:
    relays.cut("one")
    assert relays.linked("one") == set()
    with far_worker(fleet) as worker, Peer(fleet.members[0].port) as client:
        handle = client.submit(b"f", kind=Kind.SUBMIT_JOB_BG)
        worker.silence()
        relays.restore()
        assert woken(worker).handle == handle
        worker.send(Kind.WORK_COMPLETE, handle, b"")


@pytest.mark.parametrize("direction", Direction)
def test_nothing_is_lost_by_a_link_that_passes_one_way(fleet: Fleet, relays: LinkRelays, direction: Direction) -> None:
    with far_worker(fleet) as worker, Peer(fleet.members[0].port) as client:
        relays.hold("two", direction)
        handle = client.submit(b"f", kind=Kind.SUBMIT_JOB_BG)
        relays.restore()
        assert woken(worker).handle == handle
        worker.send(Kind.WORK_COMPLETE, handle, b"")
