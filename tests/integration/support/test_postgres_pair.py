"""A failover of real servers: what a synchronous pair has acknowledged is there afterwards."""

import threading
from collections.abc import Iterator

import psycopg
import pytest

from tests.support.postgres_pair import Pair
from tests.support.postgres_programs import NEWEST, PEERS
from tests.support.waiting import PATIENCE, wait_for

pytestmark = pytest.mark.peer(PEERS[NEWEST])

WAITING = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


def insert(pair: Pair, number: int) -> None:
    with psycopg.connect(pair.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS t (n int)")
        connection.execute("INSERT INTO t VALUES (%s)", (number,))


def numbers(pair: Pair) -> list[int]:
    with psycopg.connect(pair.url) as connection:
        return [number for (number,) in connection.execute("SELECT n FROM t ORDER BY n")]


@pytest.fixture
def pair() -> Iterator[Pair]:
    with Pair() as pair:
        yield pair


def test_failovers_there_and_back_keep_every_committed_row(pair: Pair) -> None:
    insert(pair, 1)
    first = pair.primary
    pair.fail_over()
    assert pair.primary is not first
    insert(pair, 2)  # nobody is behind the new primary: it must not wait
    pair.restore_standby()
    insert(pair, 3)
    pair.fail_over()
    assert pair.primary is first
    assert numbers(pair) == [1, 2, 3]


def test_a_commit_waits_for_the_standby(pair: Pair) -> None:
    insert(pair, 1)
    pair.standby.kill()
    client = threading.Thread(target=insert, args=(pair, 2))
    client.start()
    wait_for(lambda: pair.primary.query(WAITING), "a commit that waits for the standby")
    assert client.is_alive()
    pair.standby.start()
    client.join(PATIENCE)
    assert not client.is_alive()
    assert numbers(pair) == [1, 2]


def test_an_asynchronous_standby_that_was_left_behind_loses_what_came_after() -> None:
    with Pair(synchronous=False) as pair:
        insert(pair, 1)
        pair.leave_behind()
        insert(pair, 2)
        assert numbers(pair) == [1, 2]
        pair.fail_over()
        assert numbers(pair) == [1]
