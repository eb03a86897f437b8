"""A batch is durable as a whole, or not at all."""

import math

import pytest

from geartrain.errors import StoreError
from geartrain.model import Job, JobState
from geartrain.store import contract
from geartrain.store.contract import Batch, Store
from tests.contract.stores.backends import FAILING_ID, WriteFailure
from tests.contract.stores.conftest import Reopen
from tests.contract.stores.factories import batch, facts, ids, job, record, records, rows


def test_row_replaces_an_older_one(store: Store, reopened: Reopen) -> None:
    store.commit(batch([job(1), job(2)]))
    store.commit(batch([job(1, payload=b"other", attempts=3)]))
    expected = [facts(job(1, payload=b"other", attempts=3)), facts(job(2))]
    assert rows(store) == expected
    assert rows(reopened()) == expected


def test_last_row_of_a_job_in_a_batch_wins(store: Store) -> None:
    store.commit(batch([job(1, attempts=1), job(2), job(1, attempts=2), job(1, attempts=3)]))
    assert [(found.id, found.attempts) for found in store.jobs(Job)] == [(1, 3), (2, 0)]


def test_finished_job_is_removed_and_recorded(store: Store, reopened: Reopen) -> None:
    store.commit(batch([job(1), job(2), job(3)]))
    store.commit(batch(finished=[record(2)]))
    assert (ids(store), records(store)) == ([1, 3], [2])
    following = reopened()
    assert (ids(following), records(following)) == ([1, 3], [2])


def test_job_accepted_and_finished_in_one_batch_is_only_recorded(store: Store, reopened: Reopen) -> None:
    store.commit(batch([job(1), job(2)], [record(2)]))
    assert (ids(store), records(store)) == ([1], [2])
    following = reopened()
    assert (ids(following), records(following)) == ([1], [2])


def test_job_changed_and_finished_in_one_batch_is_only_recorded(store: Store) -> None:
    store.commit(batch([job(1)]))
    store.commit(batch([job(1, attempts=1), job(1, attempts=2)], [record(1)]))
    assert (ids(store), records(store)) == ([], [1])


def test_dead_job_is_retried_and_dies_again(store: Store, reopened: Reopen) -> None:
    store.commit(batch([job(1, state=JobState.DEAD, reason="why", attempts=10)]))
    store.commit(batch([job(1)]))
    assert rows(store) == [facts(job(1))]
    store.commit(batch([job(1, state=JobState.DEAD, reason="again")]))
    assert rows(reopened()) == [facts(job(1, state=JobState.DEAD, reason="again"))]


def test_finishing_a_job_that_was_never_saved_leaves_a_record(store: Store) -> None:
    """A batch failed and its job was retracted, but a worker that had it completed it."""
    store.commit(batch(finished=[record(5)]))
    assert (ids(store), records(store)) == ([], [5])


def test_empty_batch_changes_nothing(store: Store) -> None:
    store.commit(batch([job(1)]))
    store.commit(Batch())
    assert ids(store) == [1]


def test_batch_is_true_unless_it_is_empty() -> None:
    assert not Batch()
    assert batch([job(1)])
    assert batch(finished=[record(1)])
    assert batch(ids_until=1)
    assert batch(name=b"value")


def test_store_does_not_change_the_batch(store: Store) -> None:
    """A failed batch is committed again, and its rows are counted for the log."""
    retried = batch([job(1), job(2)], [record(2)], 10)
    store.commit(retried)
    assert (len(retried.saved_jobs), retried.finished, retried.ids_until) == (2, [record(2)], 10)


def test_large_batch(store: Store, reopened: Reopen) -> None:
    many = range(1, 20_001)
    store.commit(batch(map(job, many), map(record, range(1, 10_001))))
    following = reopened()
    assert ids(following) == list(range(10_001, 20_001))
    assert len(following.records(contract.Query(limit=20_000))) == 10_000


def test_failed_batch_changes_nothing(write_failure: WriteFailure, store: Store, reopened: Reopen) -> None:
    store.commit(batch([job(1), job(2)], ids_until=50))
    before = rows(store)
    store.commit(batch(name=b"before"))
    bad = batch(
        [job(1, attempts=5), job(3)], [record(2), record(FAILING_ID)], ids_until=10**9, name=b"after", other=b""
    )
    with write_failure(), pytest.raises(StoreError):
        store.commit(bad)
    assert (rows(store), records(store), store.saved_values()) == (before, [], {"name": b"before"})
    following = reopened()
    assert (rows(following), records(following), following.saved_values()) == (before, [], {"name": b"before"})


def test_failed_batch_can_be_committed_again(write_failure: WriteFailure, store: Store, reopened: Reopen) -> None:
    store.commit(batch([job(2)]))
    retried = batch([job(1)], [record(2), record(FAILING_ID)])
    with write_failure(), pytest.raises(StoreError):
        store.commit(retried)
    store.commit(retried)
    following = reopened()
    assert (ids(following), records(following)) == ([1], [FAILING_ID, 2])


@pytest.mark.parametrize(
    "invalid",
    [
        pytest.param({"attempts": 2**70}, id="integer too large"),
        pytest.param({"run_at": math.nan}, id="NaN as time"),
        pytest.param({"reason": "\ud800"}, id="lone surrogate"),
    ],
)
def test_row_that_cannot_be_stored_is_a_store_error(
    write_failure: WriteFailure, store: Store, invalid: dict[str, object]
) -> None:
    """StoreError is the only exception that the server handles."""
    store.commit(batch([job(1)]))
    with pytest.raises(StoreError):
        store.commit(batch([job(2), job(3, **invalid)]))
    assert ids(store) == [1]
    store.commit(batch([job(2)]))
    assert ids(store) == [1, 2]
