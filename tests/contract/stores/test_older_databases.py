"""A database that is as it was some time ago, as its servers meet it: nothing of theirs is lost, nor of others.

A test makes it older by hand, while the connections of its servers stay open, as those to a pooler do.
"""

from collections.abc import Callable

import psycopg
import pytest

from geartrain.cluster.membership import Environment, Membership
from geartrain.model import Job
from geartrain.store import contract
from geartrain.store.contract import Batch
from geartrain.store.postgresql import PostgresqlStore
from geartrain.store.shared import FENCED, FencedError, IdRange, Node, WentBackError
from tests.contract.stores.factories import job
from tests.contract.stores.members import Join
from tests.contract.stores.members import join as join
from tests.support import postgres_programs
from tests.support.postgres import Cluster
from tests.support.postgres_fixtures import cluster as cluster
from tests.support.postgres_fixtures import clusters as clusters
from tests.support.postgres_fixtures import schema as schema
from tests.support.postgres_fixtures import schema_url as schema_url

pytestmark = pytest.mark.peer(*postgres_programs.PEERS.values())

LEASE = 10.0
Forget = Callable[[PostgresqlStore], None]


def own(store: PostgresqlStore, number: int, **changes: object) -> Job:
    """A job with an id of the store's range."""
    id = (store.node << 32) + number
    return job(id, handle=b"H:c:%d" % id, **changes)


def accepted(*jobs: Job) -> Batch:
    batch = Batch()
    batch.accepted = [contract.row(job) for job in jobs]
    return batch


def whole(*jobs: Job, restored: tuple[IdRange, ...] = ()) -> Batch:
    batch = Batch()
    batch.is_whole, batch.restored = True, restored
    batch.changed = [contract.row(job) for job in jobs]
    return batch


def ids(store: PostgresqlStore) -> list[int]:
    """All jobs that the database has."""
    return [job.id for jobs in store.jobs_of(IdRange(0, 2**63), Job) for job in jobs]


def seen(store: PostgresqlStore, other: PostgresqlStore) -> Node:
    """The other server, as this one sees it."""
    return next(node for node in store.look(0).nodes if node.id == other.node)


def restored_by(store: PostgresqlStore) -> list[int]:
    """The jobs of all ranges that the store takes over."""
    found = []
    while (piece := store.take(10)) is not None:
        found += [job.id for part in store.jobs_of(piece, Job) for job in part]
    return sorted(found)


@pytest.fixture
def forget(cluster: Cluster, schema: str) -> Forget:
    """Takes the database back to when this server had just joined."""

    def forget(store: PostgresqlStore) -> None:
        cluster.query(f"UPDATE {schema}.nodes SET batch = 0 WHERE id = {store.node}")
        cluster.query(f"DELETE FROM {schema}.jobs WHERE id >> 32 = {store.node}")

    return forget


@pytest.mark.parametrize("unique", [b"", b"key"], ids=["in one text", "in steps"])
def test_a_server_whose_connection_was_never_lost_notices_it(join: Join, forget: Forget, unique: bytes) -> None:
    store = join("one")
    first, second = own(store, 1), own(store, 2, unique=unique)
    store.commit(accepted(first))
    forget(store)
    with pytest.raises(WentBackError):
        store.commit(accepted(second))
    assert ids(store) == []
    store.commit(whole(first, second))
    assert ids(store) == [first.id, second.id]
    store.commit(accepted(own(store, 3)))


def test_it_notices_a_database_from_before_it_joined(join: Join, cluster: Cluster, schema: str) -> None:
    store = join("one")
    store.commit(accepted(own(store, 1)))
    for table in ("jobs", "ranges", "nodes"):
        cluster.query(f"DELETE FROM {schema}.{table}")
    with pytest.raises(WentBackError):
        store.commit(accepted(own(store, 2)))
    store.commit(whole(own(store, 1), own(store, 2)))
    assert ids(store) == [own(store, 1).id, own(store, 2).id]


def test_nothing_is_taken_over_before_all_jobs_are_written_again(join: Join, forget: Forget) -> None:
    store, gone = join("one"), join("gone")
    gone.commit(accepted(own(gone, 1)))
    store.commit(accepted(own(store, 1)))
    assert store.accuse(seen(store, gone))
    forget(store)
    with pytest.raises(WentBackError):
        store.take(10)
    store.commit(whole(own(store, 1)))
    assert store.take(10) is not None


def test_a_server_that_is_fenced_by_an_older_database_knows_what_that_lacks(
    join: Join, cluster: Cluster, schema: str, forget: Forget
) -> None:
    store = join("one")
    store.commit(accepted(own(store, 1)))
    forget(store)
    cluster.query(f"UPDATE {schema}.nodes SET state = {FENCED}")
    with pytest.raises(FencedError) as caught:
        store.commit(Batch())
    assert caught.value.has_lost


def test_rows_that_are_not_restored_yet_stay(join: Join, forget: Forget) -> None:
    """Of a range that is being taken over, the server has read the first half, of which one job has ended."""
    store, gone = join("one"), join("gone")
    jobs = [own(gone, number) for number in range(1, 5)]
    gone.commit(accepted(*jobs))
    assert store.accuse(seen(store, gone))
    taken = store.take(10)
    assert taken is not None
    forget(store)
    with pytest.raises(WentBackError):
        store.commit(Batch())
    store.commit(whole(jobs[0], restored=(IdRange(taken.low, jobs[2].id),)))
    assert ids(store) == [jobs[0].id, jobs[2].id, jobs[3].id]


@pytest.mark.parametrize("lost", ["the range", "a part of it"])
def test_jobs_of_a_range_that_is_not_there_any_more_have_a_home(
    join: Join, cluster: Cluster, schema: str, forget: Forget, lost: str
) -> None:
    """It was taken over in the lost seconds, and its own server joined in them, or took a part of it."""
    store, gone = join("one"), join("gone")
    jobs = [own(gone, number) for number in range(1, 4)]
    gone.commit(accepted(*jobs))
    assert store.accuse(seen(store, gone))
    taken = store.take(10)
    assert taken is not None
    if lost == "the range":
        cluster.query(f"DELETE FROM {schema}.ranges WHERE low = {taken.low}")
    else:
        cluster.query(f"UPDATE {schema}.ranges SET low = {jobs[1].id}, high = {jobs[2].id} WHERE low = {taken.low}")
    forget(store)
    with pytest.raises(WentBackError):
        store.commit(Batch())
    store.commit(whole(*jobs, restored=(taken,)))
    third = join("third")
    assert third.accuse(seen(third, store))
    assert restored_by(third) == [job.id for job in jobs]


def test_jobs_that_only_one_server_has_are_its_own(join: Join, cluster: Cluster, schema: str, forget: Forget) -> None:
    """It took them over in the lost seconds, and another one did so afterwards, from a database with one of them."""
    store, gone = join("one"), join("gone")
    jobs = [own(gone, number) for number in range(1, 5)]
    gone.commit(accepted(*jobs))
    assert store.accuse(seen(store, gone))
    taken = store.take(10)
    assert taken is not None
    other = join("other")
    cluster.query(f"UPDATE {schema}.ranges SET node = {other.node} WHERE low = {taken.low}")
    cluster.query(f"DELETE FROM {schema}.jobs WHERE id <> {jobs[1].id}")
    forget(store)
    with pytest.raises(WentBackError):
        store.commit(Batch())
    store.commit(whole(*jobs, restored=(taken,)))
    assert store.resynced == 3
    found = cluster.query(
        f"SELECT min(low), max(high), sum(high - low)::bigint FROM {schema}.ranges WHERE low >> 32 = {gone.node}"
    )
    assert found == [(taken.low, taken.high, taken.high - taken.low)], "each id is in one range"
    assert store.accuse(seen(store, other))
    assert other.accuse(seen(other, store))
    third = join("third")
    assert restored_by(third) == [job.id for job in jobs]


class Clock:
    """Moved by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_servers_do_not_fence_each_other_while_nobody_can_commit(join: Join) -> None:
    one, two = join("one"), join("two")
    clock = Clock()
    member = Membership(one, LEASE, "", lambda sight: None, Environment(clock, lambda node, machine: False))

    def is_fenced_after(seconds: float) -> bool:
        """Whether the other one is fenced after so many seconds in which it has not committed."""
        until = clock.now + seconds
        while clock.now < until:
            clock.now += member.pause
            member.look()
        return seen(one, two).state == FENCED

    one.renewed_at = clock.now
    assert not is_fenced_after(2 * LEASE), "its own lease has lapsed as well"
    one.waits_for_lock = True
    assert not is_fenced_after(LEASE * 0.4)
    assert is_fenced_after(LEASE), "it may be the other one that holds it up"


def test_a_server_that_can_commit_again_fences_one_that_cannot(join: Join) -> None:
    one, two = join("one"), join("two")
    clock = Clock()
    member = Membership(one, LEASE, "", lambda sight: None, Environment(clock, lambda node, machine: False))
    one.renewed_at = clock.now
    is_fenced = []
    for number in range(60):
        clock.now += member.pause
        if number >= 40:
            one.renewed_at = clock.now
        member.look()
        is_fenced.append(seen(one, two).state == FENCED)
    assert not any(is_fenced[:49]), "it had half a lease to commit"
    assert is_fenced[-1]


def test_a_server_waits_for_a_lock_until_it_has_committed(join: Join, cluster: Cluster, schema: str) -> None:
    """Another one has a unique key in a transaction that does not end."""
    one, two = join("one", patience=0.0), join("two")
    with psycopg.connect(cluster.url()) as hanging:
        key = contract.row(own(two, 1, unique=b"key"))
        two.commit(accepted(own(two, 1, unique=b"key")))
        hanging.execute(f"DELETE FROM {schema}.jobs WHERE id = {key[0]}".encode())
        with pytest.raises(Exception, match="lock timeout"):
            one.commit(accepted(own(one, 1, unique=b"key")))
        assert one.waits_for_lock
        hanging.rollback()
    one.commit(accepted(own(one, 2)))
    assert not one.waits_for_lock
