"""Results that are too large for a record are kept whole, up to a limit each and a limit together."""

import pytest

from geartrain.model import JobState, Record
from geartrain.store.contract import Query, ResultLimits, Store
from tests.contract.stores.backends import FAILING_ID, Backend, WriteFailure
from tests.contract.stores.conftest import Reopen
from tests.contract.stores.factories import NOW, batch, finish, prune, record, records

# Much smaller than the defaults, so that the tests are about the boundaries.
LIMITS = ResultLimits(inline=10, largest=100, total=300, total_in_memory=300)


@pytest.fixture
def limits() -> ResultLimits:
    return LIMITS


def kept(store: Store, id: int) -> tuple[bytes, int, int]:
    """What is kept of a result, how much the record says that is, and the size of the whole."""
    found = one(store, id)
    return store.kept_result(found), found.kept_size, found.full_size


def one(store: Store, id: int) -> Record:
    (found,) = store.records(Query(handle=b"H:host:%d" % id))
    return found


def result(size: int) -> bytes:
    return bytes(number % 251 for number in range(size))


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 99, 100])
def test_result_is_kept_whole(store: Store, reopened: Reopen, size: int) -> None:
    finish(store, 1, result=result(size))
    assert kept(store, 1) == (result(size), size, size)
    assert kept(reopened(), 1) == (result(size), size, size)


@pytest.mark.parametrize("size", [101, 1000])
def test_larger_result_is_cut_and_its_record_says_so(store: Store, reopened: Reopen, size: int) -> None:
    finish(store, 1, result=result(size))
    assert kept(store, 1) == (result(100), 100, size)
    assert kept(reopened(), 1) == (result(100), 100, size)


def test_large_result_of_a_failed_job(store: Store) -> None:
    finish(store, 1, result=result(50), state=int(JobState.FAILED))
    assert kept(store, 1) == (result(50), 50, 50)


def test_record_has_the_beginning(store: Store) -> None:
    finish(store, 1, result=result(50))
    assert one(store, 1).result[:10] == result(50)[:10]


def test_oldest_rests_are_removed_when_the_total_is_exceeded(store: Store, reopened: Reopen) -> None:
    """Each of these has 90 bytes beyond its record, and there is space for three of them."""
    finish(store, 1, 2, 3, result=result(100))
    assert [kept(store, id)[1] for id in (1, 2, 3)] == [100, 100, 100]
    finish(store, 4, result=result(100))
    expected = [(result(10), 10, 100), *[(result(100), 100, 100)] * 3]
    assert [kept(store, id) for id in (1, 2, 3, 4)] == expected
    assert [kept(reopened(), id) for id in (1, 2, 3, 4)] == expected


def test_a_batch_may_exceed_the_total_by_itself(store: Store) -> None:
    store.commit(batch(finished=[record(id, result=result(100)) for id in (1, 2, 3, 4)]))
    assert [kept(store, id)[1:] for id in (1, 2, 3, 4)] == [(10, 100), *[(100, 100)] * 3]


def test_total_is_counted_after_a_restart(store: Store, reopened: Reopen) -> None:
    finish(store, 1, 2, 3, result=result(100))
    store = reopened()
    finish(store, 4, result=result(100))
    assert [kept(store, id)[1] for id in (1, 2, 3, 4)] == [10, 100, 100, 100]


def test_pruned_results_leave_space(store: Store) -> None:
    finish(store, 1, 2, 3, result=result(100))
    assert prune(store, NOW, 1) == 2
    finish(store, 4, 5, result=result(100))
    assert [kept(store, id)[1] for id in (3, 4, 5)] == [100, 100, 100]


def test_pruned_results_of_failed_jobs_leave_space(store: Store) -> None:
    finish(store, 1, 2, 3, result=result(100), state=int(JobState.FAILED))
    assert prune(store, NOW, 1) == 2
    finish(store, 4, 5, result=result(100))
    assert [kept(store, id)[1] for id in (3, 4, 5)] == [100, 100, 100]


def test_small_results_do_not_count(store: Store) -> None:
    finish(store, 1, result=result(100))
    finish(store, *range(2, 202), result=result(10))
    assert kept(store, 1)[1] == 100


def test_failed_batch_leaves_no_part_of_a_result(write_failure: WriteFailure, store: Store) -> None:
    bad = batch(finished=[record(1, result=result(100)), record(FAILING_ID)])
    with write_failure():
        for _ in range(5):
            with pytest.raises(Exception, match="write failure"):
                store.commit(bad)
    assert records(store) == []
    store.commit(bad)
    finish(store, 2, 3, result=result(100))
    assert [kept(store, id)[1] for id in (1, 2, 3)] == [100, 100, 100]


def test_record_that_was_pruned_before_its_result_was_read(backend: Backend, store: Store) -> None:
    """The beginning is what is left; the caller sees that it is not the whole."""
    finish(store, 1, result=result(100))
    found = one(store, 1)
    prune(store, NOW, 0)
    assert len(store.kept_result(found)) in (10, found.full_size)
