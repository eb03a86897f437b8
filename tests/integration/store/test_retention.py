"""Records that have a time of their own, between those that follow the quotas."""

from geartrain.model import JobState
from geartrain.store.contract import Quota, Retention
from tests.contract.stores.factories import NOW, batch, finish, prune, record, records
from tests.support.store_fixtures import Opened

DAY = Retention(done=Quota(86400.0, 5), failed=Quota(7 * 86400.0, 3))
KEPT = NOW + 25 * 3600


def test_neither_number_nor_time_removes_a_record_before_its_time(opened: Opened) -> None:
    store = opened()
    finish(store, 1, keep_until=KEPT)
    finish(store, *range(2, 40))
    while store.prune(NOW + 1, DAY):
        pass
    assert records(store) == [39, 38, 37, 36, 35, 1]
    while store.prune(KEPT - 1, DAY):
        pass
    assert records(store) == [1]
    assert store.prune(KEPT + 1, DAY) == 1
    assert records(store) == []


def test_record_with_a_short_time_of_its_own_is_kept_as_long_as_others(opened: Opened) -> None:
    store = opened()
    finish(store, 1, 2, keep_until=NOW + 60)
    finish(store, 3, keep_until=NOW + 60, state=int(JobState.FAILED))
    assert store.prune(NOW + 3600, DAY) == 0
    assert store.prune(NOW + 86400 + 10, DAY) == 2
    assert records(store) == [3]
    assert store.prune(NOW + 8 * 86400, DAY) == 1


def test_records_with_a_time_of_their_own_do_not_count_for_the_others(opened: Opened) -> None:
    store = opened()
    finish(store, 1, 2, 3, 4, 5)
    finish(store, *range(6, 20), keep_until=KEPT)
    assert store.prune(NOW + 100, DAY) == 0
    assert len(records(store)) == 19


def test_more_protected_records_than_one_call_looks_at(opened: Opened) -> None:
    store = opened()
    store.commit(batch(finished=[record(id, keep_until=KEPT) for id in range(1, 3001)]))
    finish(store, *range(3001, 3011))
    assert store.prune(NOW + 4000, DAY) == 5
    assert records(store, limit=6) == [3010, 3009, 3008, 3007, 3006, 3000]
    removed = [prune(store, KEPT + 4000, 0) for _ in range(4)]
    assert removed == [1005, 1000, 1000, 0]
