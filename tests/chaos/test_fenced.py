"""A server that was taken for dead and wakes up: nobody is left waiting for an answer that it cannot give."""

from collections.abc import Iterator

import pytest

from tests.chaos.members import Fleet, Member
from tests.support import postgres
from tests.support.gearman_peer import Kind, Peer
from tests.support.postgres_programs import NEWEST, PEERS
from tests.support.waiting import wait_for

pytestmark = pytest.mark.peer(PEERS[NEWEST])


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with postgres.running(fsync="off") as cluster:
        members = [Member(f"server-{number}", cluster.url()) for number in range(2)]
        with Fleet(members) as fleet:
            yield fleet


def test_a_submission_that_a_fenced_server_cannot_store_ends_with_its_connection(fleet: Fleet) -> None:
    fenced, other = fleet.members
    with Peer(fenced.port) as client, Peer(fenced.port).register(b"echo") as worker:
        fenced.freeze()
        client.send(Kind.SUBMIT_JOB_BG, b"echo", b"", b"payload")
        wait_for(lambda: other.times_fencing(fenced.name), "it is fenced")
        fenced.thaw()
        client.closed()
        worker.closed()
    wait_for(lambda: fenced.jobs() == [], "it serves again, and has forgotten the job")
    assert other.jobs() == []
