"""Pruning removes records that are too old or too many, a part at a time."""

from geartrain.model import JobState
from geartrain.store.contract import Query, Quota, Retention, Store
from tests.contract.stores import factories
from tests.contract.stores.conftest import Reopen
from tests.contract.stores.factories import NOW, batch, finish, ids, job, record, records

LONG_AGO = 0.0  # before any record
MANY = 10**9

CALLS = 100  # enough for any of these tests


def prune(store: Store, before: float, keep: int) -> int:
    """Call prune until nothing is left to remove; return how many records were removed."""
    removed = 0
    for _ in range(CALLS):
        now = factories.prune(store, before, keep)
        if not now:
            return removed
        removed += now
    raise AssertionError("pruning does not end")


def test_nothing_to_prune(store: Store) -> None:
    assert factories.prune(store, NOW, 0) == 0
    finish(store, 1, 2, 3)
    assert factories.prune(store, LONG_AGO, MANY) == 0
    assert records(store) == [3, 2, 1]


def test_by_time(store: Store, reopened: Reopen) -> None:
    finish(store, *range(1, 8))
    assert prune(store, NOW + 4, MANY) == 3
    assert records(store) == [7, 6, 5, 4]
    assert records(reopened()) == [7, 6, 5, 4]


def test_by_count(store: Store, reopened: Reopen) -> None:
    finish(store, *range(1, 8))
    assert prune(store, LONG_AGO, 2) == 5
    assert records(store) == [7, 6]
    assert records(reopened()) == [7, 6]


def test_by_time_or_count_whichever_removes_more(store: Store) -> None:
    finish(store, *range(1, 8))
    assert prune(store, NOW + 3, 6) == 2
    assert prune(store, NOW + 4, 2) == 3
    assert records(store) == [7, 6]


def test_all(store: Store) -> None:
    finish(store, 1, 2, 3)
    assert prune(store, LONG_AGO, 0) == 3
    assert records(store) == []
    finish(store, 4, 5)
    assert prune(store, NOW + 100, MANY) == 2
    assert records(store) == []


def test_by_count_after_an_earlier_prune(store: Store) -> None:
    finish(store, *range(1, 8))
    prune(store, NOW + 4, MANY)
    finish(store, 8, 9)
    assert prune(store, LONG_AGO, 3) == 3
    assert records(store) == [9, 8, 7]


def test_many(store: Store) -> None:
    store.commit(batch(finished=map(record, range(1, 5001))))
    assert prune(store, NOW + 2501, MANY) == 2500
    assert prune(store, LONG_AGO, 100) == 2400
    assert [found.id for found in store.records(Query(limit=5000))] == list(range(5000, 4900, -1))


def test_clock_that_went_back_removes_nothing_too_early(store: Store) -> None:
    """The first record has a later time than the second: it must not be removed because the second is old."""
    store.commit(batch(finished=[record(1, finished_at=NOW + 100), record(2, finished_at=NOW + 50)]))
    prune(store, NOW + 60, MANY)
    assert 1 in records(store)


def test_jobs_are_not_pruned(store: Store) -> None:
    store.commit(batch([job(1, run_at=1.0, submitted_at=1.0)]))
    finish(store, 2)
    prune(store, NOW + 1000, 0)
    assert ids(store) == [1]


FAILED = int(JobState.FAILED)
FEW = Retention(done=Quota(1e9, 5), failed=Quota(1e9, 3))


def test_successes_do_not_displace_a_failure(store: Store, reopened: Reopen) -> None:
    finish(store, 1, state=FAILED)
    for first in range(2, 122, 10):
        finish(store, *range(first, first + 10))
        while store.prune(NOW + 1000, FEW):
            pass
    assert records(store) == [121, 120, 119, 118, 117, 1]
    assert records(reopened()) == [121, 120, 119, 118, 117, 1]


def test_failures_do_not_displace_a_success(store: Store) -> None:
    finish(store, 1)
    finish(store, *range(2, 12), state=FAILED)
    while store.prune(NOW + 1000, FEW):
        pass
    assert records(store) == [11, 10, 9, 1]


def test_cancelled_jobs_share_the_quota_of_done_ones(store: Store) -> None:
    finish(store, *range(1, 5))
    finish(store, *range(5, 9), state=int(JobState.CANCELLED))
    while store.prune(NOW + 1000, FEW):
        pass
    assert records(store) == [8, 7, 6, 5, 4]


def test_failures_have_a_time_of_their_own(store: Store) -> None:
    finish(store, 1, 3, state=FAILED)
    finish(store, 2, 4)
    retention = Retention(done=Quota(1.0, MANY), failed=Quota(10.0, MANY))
    assert store.prune(NOW + 12, retention) == 3
    assert records(store) == [3]


def test_quota_counts_after_a_restart(store: Store, reopened: Reopen) -> None:
    """Records of failed jobs lie between those of done ones."""
    for id in range(1, 21):
        finish(store, id, state=FAILED if id % 2 else int(JobState.DONE))
    store = reopened()
    while store.prune(NOW + 1000, FEW):
        pass
    assert sorted(records(store)) == [12, 14, 15, 16, 17, 18, 19, 20]
