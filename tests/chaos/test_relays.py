"""The relays between servers do to links what faults ask of them."""

import contextlib
import socket
from collections.abc import Iterator

import pytest

from geartrain.wire import peer as wire
from tests.chaos.members import Fleet, Member
from tests.support import postgres, serving
from tests.support.gearman_peer import Kind, Peer, woken, worker
from tests.support.link_relay import PATIENCE, Direction, LinkRelays
from tests.support.postgres_programs import NEWEST, PEERS
from tests.support.waiting import wait_for

pytestmark = pytest.mark.peer(PEERS[NEWEST])

NAMES = ("one", "two")
SOON = 0.1  # seconds: what is held does not come later either


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
    with worker(fleet.members[1].port, b"f") as taker:
        taker.send(Kind.PRE_SLEEP).silence()
        yield taker


def progress(client: Peer, handle: bytes) -> bytes:
    """As the server tells it."""
    return client.send(Kind.GET_STATUS, handle).body(Kind.STATUS_RES).split(b"\0", 3)[3]


def test_one_direction_is_held_and_the_other_one_passes(relays: LinkRelays) -> None:
    with socket.create_server((serving.HOST, 0)) as door, contextlib.ExitStack() as stack:
        relays["two"].target = door.getsockname()[1]
        one = stack.enter_context(socket.create_connection((serving.HOST, relays["two"].port), PATIENCE))
        hello = wire.encode(wire.Hello(wire.MAGIC, wire.VERSION, 1, "one", bytes(wire.NONCE_BYTES)))
        one.sendall(hello)
        two = stack.enter_context(door.accept()[0])
        assert two.recv(len(hello), socket.MSG_WAITALL) == hello
        relays.hold("two", Direction.IN)
        one.sendall(b"held")
        two.sendall(b"passes")
        assert one.recv(6, socket.MSG_WAITALL) == b"passes"
        two.settimeout(SOON)
        with pytest.raises(TimeoutError):
            two.recv(1)
        two.settimeout(PATIENCE)
        relays.restore()
        assert two.recv(4, socket.MSG_WAITALL) == b"held"


def test_a_server_that_does_not_answer_is_dialled_once_at_a_time(fleet: Fleet, relays: LinkRelays) -> None:
    one, two = relays["one"], fleet.members[1]
    before = one.dials
    relays.hold("one", Direction.OUT)
    wait_for(lambda: two.times_deaf >= 3, "it has dialled in vain twice")
    dials = one.dials - before
    assert dials <= two.times_deaf + 1, "each is dropped before the next one"


def test_jobs_cross_again_when_links_are_restored(fleet: Fleet, relays: LinkRelays) -> None:
    relays.cut("one")
    assert relays.linked("one") == set()
    with far_worker(fleet) as taker, Peer(fleet.members[0].port) as client:
        handle = client.submit(b"f", kind=Kind.SUBMIT_JOB_BG)
        taker.silence()
        relays.restore()
        assert woken(taker).handle == handle
        taker.send(Kind.WORK_COMPLETE, handle, b"")


def test_an_attempt_that_outlasts_the_grace_counts_once(fleet: Fleet, relays: LinkRelays) -> None:
    """The home has queued the job again, and lets it go on where it runs when the link is back."""
    home, _ = fleet.members
    with far_worker(fleet) as taker, Peer(home.port) as client:
        handle = client.submit(b"f", kind=Kind.SUBMIT_JOB_BG)
        assert woken(taker).handle == handle
        taker.send(Kind.WORK_STATUS, handle, b"1", b"2")
        wait_for(lambda: progress(client, handle) == b"1\0" + b"2", "the home has heard that it was started")
        relays.cut("one")
        wait_for(lambda: home.attempts() == {handle: 1}, "the home has queued the job again")
        relays.restore()
        wait_for(lambda: home.attempts() == {handle: 0}, "the job goes on")
        taker.send(Kind.WORK_COMPLETE, handle, b"")
        wait_for(lambda: home.jobs() == [], "it has ended")


@pytest.mark.parametrize("direction", Direction)
def test_nothing_is_lost_by_a_link_that_passes_one_way(fleet: Fleet, relays: LinkRelays, direction: Direction) -> None:
    with far_worker(fleet) as taker, Peer(fleet.members[0].port) as client:
        relays.hold("two", direction)
        handle = client.submit(b"f", kind=Kind.SUBMIT_JOB_BG)
        relays.restore()
        assert woken(taker).handle == handle
        taker.send(Kind.WORK_COMPLETE, handle, b"")
