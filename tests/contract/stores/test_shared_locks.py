"""Locks of a store that several servers share: no lock ever has more holders than its limit."""

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from geartrain.errors import StoreError
from geartrain.model import LockChange, LockUse
from geartrain.store import postgresql_schema
from geartrain.store.postgresql import PostgresqlStore
from tests.contract.stores.members import Join
from tests.contract.stores.members import join as join
from tests.support import postgres_programs
from tests.support.postgres import Cluster
from tests.support.postgres_fixtures import cluster as cluster
from tests.support.postgres_fixtures import clusters as clusters
from tests.support.postgres_fixtures import schema as schema
from tests.support.postgres_fixtures import schema_url as schema_url

pytestmark = pytest.mark.peer(*postgres_programs.PEERS.values())

LOCK = b"lock"


def acquire(store: PostgresqlStore, job: int, limit: int = 1, lock: bytes = LOCK) -> bool:
    [is_granted] = store.change_locks([LockChange(lock, job, limit)])
    return is_granted


def release(store: PostgresqlStore, job: int, lock: bytes = LOCK) -> None:
    assert store.change_locks([LockChange(lock, job, 0)]) == [True]


def test_the_limit_is_that_of_all_servers(join: Join) -> None:
    one, two = join("one"), join("two")
    assert [acquire(one, 1, 2), acquire(two, 2, 2), acquire(one, 3, 2), acquire(two, 4, 2)] == [
        True,
        True,
        False,
        False,
    ]
    assert one.lock_uses([LOCK, b"other"]) == {LOCK: LockUse(2, 2)}
    assert acquire(two, 4, 2, b"other")


def test_a_holder_that_asks_again_has_it_once(join: Join) -> None:
    one = join("one")
    assert [acquire(one, 1), acquire(one, 1)] == [True, True]
    assert one.lock_uses([LOCK]) == {LOCK: LockUse(1, 1)}
    release(one, 1)
    assert acquire(one, 2)


def test_the_largest_limit_counts_while_its_job_holds_the_lock(join: Join) -> None:
    one, two = join("one"), join("two")
    assert acquire(one, 1, 3)
    assert [acquire(two, 2, 1), acquire(two, 3, 1), acquire(two, 4, 1)] == [True, True, False]
    release(one, 1)
    assert not acquire(two, 4, 1)


def test_only_the_server_of_a_holder_releases_its_lock(join: Join) -> None:
    one, two = join("one"), join("two")
    assert acquire(one, 1)
    release(two, 1)
    assert not acquire(two, 2)
    release(one, 1)
    assert acquire(two, 2)


def test_changes_are_made_in_their_order(join: Join) -> None:
    one = join("one")
    changes = [(1, 1), (2, 1), (1, 0), (2, 1), (1, 1)]
    assert one.change_locks([LockChange(LOCK, *change) for change in changes]) == [True, False, True, True, False]


@pytest.mark.parametrize("name", [b"", b"\0", b"\xff" * 255, b"'; --", "ä".encode()])
def test_any_bytes_are_a_name(join: Join, name: bytes) -> None:
    one = join("one")
    assert acquire(one, 1, 1, name)
    assert one.lock_uses([name, name + b"x"]) == {name: LockUse(1, 1)}
    assert not acquire(one, 2, 1, name)


def fence(holder: PostgresqlStore, other: PostgresqlStore) -> None:
    assert other.fence_named("holder")
    with pytest.raises(StoreError, match="fenced"):
        acquire(holder, 5, 9)


def leave(holder: PostgresqlStore, other: PostgresqlStore) -> None:
    holder.close(0)


@pytest.mark.parametrize("end", [fence, leave])
def test_a_server_that_is_gone_holds_nothing(
    join: Join, cluster: Cluster, schema: str, end: Callable[[PostgresqlStore, PostgresqlStore], None]
) -> None:
    holder, other = join("holder"), join("other")
    assert acquire(holder, 1)
    assert acquire(holder, 1, 1, b"unwanted")
    end(holder, other)
    assert other.lock_uses([LOCK]) == {}
    assert acquire(other, 1), "a job that was taken over has the same id"
    assert not acquire(other, 2)
    while other.take(100) is not None:
        pass
    assert cluster.query(f"SELECT count(*) FROM {schema}.locks") == [(1,)], "its other rows go with its jobs"


def test_at_once(join: Join) -> None:
    """Three servers with two jobs each ask for the same two locks at the same moment, in any order, again and again."""
    limits = {b"a": 2, b"b": 3}
    stores = [join(f"server{number}") for number in range(3)]
    together = threading.Barrier(6)
    rounds: list[list[set[bytes]]] = [[] for _ in range(30)]  # the locks that each job got

    def work(number: int) -> None:
        store, chance = stores[number % 3], random.Random(number)
        for turn, outcomes in enumerate(rounds):
            job = number * 1000 + turn
            names = chance.sample(sorted(limits), 2)
            together.wait(60)
            answers = store.change_locks([LockChange(name, job, limits[name]) for name in names])
            outcomes.append({name for name, is_granted in zip(names, answers, strict=True) if is_granted})
            together.wait(60)
            store.change_locks([LockChange(name, job, 0) for name in names])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    for outcomes in rounds:
        assert {name: sum(name in held for held in outcomes) for name in limits} == limits
    assert stores[0].lock_uses(list(limits)) == {}


def test_tables_without_locks_are_migrated(
    join: Join, monkeypatch: pytest.MonkeyPatch, cluster: Cluster, schema: str
) -> None:
    """A server of the version before goes on beside the new one."""
    with monkeypatch.context() as before:
        before.setattr(postgresql_schema, "MIGRATIONS", postgresql_schema.MIGRATIONS[:1])
        old = join("old")
    assert cluster.query(f"SELECT to_regclass('{schema}.locks')") == [(None,)]
    new = join("new")
    assert acquire(new, 1)
    assert [node.name for node in old.look(0).nodes] == ["old", "new"]
