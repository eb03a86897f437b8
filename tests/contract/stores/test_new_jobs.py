"""Rows of new jobs: short ones, of which nothing else is unusual, and whole ones, in any number and order."""

import math

import pytest

from geartrain.errors import StoreError
from geartrain.model import Attempt, JobState, pack_parents
from geartrain.store import contract
from geartrain.store.contract import Batch, Store
from tests.contract.stores.backends import WriteFailure
from tests.contract.stores.conftest import Reopen
from tests.contract.stores.factories import accepted, facts, ids, job, record, records, rows

LARGE = b"x" * 70_000

# What a job may have that no short row has.
UNUSUAL = [
    pytest.param({name: value}, id=name)
    for name, value in (
        ("attempts", 3), ("count", 4), ("timeout", 1.5), ("reducer", b"reducer"), ("reason", "why"),
        ("keeps_result", False), ("keep_for", 60.0), ("expires_at", 1.0), ("user", "ann"), ("partition", b"tenant"),
        ("after", pack_parents([1], runs_anyway=True)),
        ("failed_attempts", [Attempt(1.0, 2.0, "gearman", b"worker", "why")]),
    )
]  # fmt: skip


def test_a_new_job_has_a_short_row() -> None:
    assert len(contract.new_row(job(1))) == len(contract.SHORT_COLUMNS) < len(contract.COLUMNS)


@pytest.mark.parametrize("unusual", UNUSUAL)
def test_nothing_is_lost(store: Store, reopened: Reopen, unusual: dict[str, object]) -> None:
    made = job(1, **unusual)
    assert contract.whole_row(contract.new_row(made)) == contract.row(made)
    store.commit(accepted(made))
    assert rows(reopened()) == [facts(made)]


@pytest.mark.parametrize("count", [1, 2, 3, 63, 64, 65, 200])
def test_any_number(store: Store, reopened: Reopen, count: int) -> None:
    jobs = [job(id, unique=b"key %d" % id, state=JobState.SCHEDULED) for id in range(1, count + 1)]
    store.commit(accepted(*jobs))
    for made in jobs:
        made.state = JobState.QUEUED  # as every job that is restored
    assert rows(reopened()) == list(map(facts, jobs))


def test_short_and_whole_rows_in_one_batch(store: Store) -> None:
    jobs = [job(id, user="ann" if id % 3 else "", attempts=id % 2) for id in range(1, 100)]
    store.commit(accepted(*jobs))
    assert rows(store) == list(map(facts, jobs))


def test_large_payloads_among_others(store: Store) -> None:
    jobs = [job(id, payload=LARGE if id % 4 else b"", attempts=id % 2) for id in range(1, 20)]
    store.commit(accepted(*jobs))
    assert rows(store) == list(map(facts, jobs))


def test_a_job_that_changes_in_the_batch_that_accepts_it(store: Store) -> None:
    batch = accepted(job(1), job(2), job(3))
    batch.changed = [contract.row(job(2, attempts=1)), contract.row(job(2, attempts=2))]
    store.commit(batch)
    assert rows(store) == [facts(job(1)), facts(job(2, attempts=2)), facts(job(3))]


@pytest.mark.parametrize(
    "ended",
    [
        pytest.param(range(1, 101), id="all"),
        pytest.param(range(10, 90), id="neighbours"),
        pytest.param(range(1, 101, 2), id="every second one"),
        pytest.param([1, 2, 3, 4, 6, 7, 9, 50, 51, 52, 53, 54, 100, 200], id="some of each, and one that is not there"),
    ],
)
def test_ended_jobs_are_removed_and_no_others(store: Store, reopened: Reopen, ended: list[int]) -> None:
    store.commit(accepted(*map(job, range(1, 101))))
    batch = Batch()
    batch.finished = [record(id) for id in sorted(ended, key=lambda id: id % 7)]  # in no order
    store.commit(batch)
    left = [id for id in range(1, 101) if id not in ended]
    assert (ids(store), sorted(records(store, limit=1000))) == (left, sorted(ended))
    assert ids(reopened()) == left


def test_jobs_are_removed_without_a_record(store: Store) -> None:
    store.commit(accepted(*map(job, range(1, 21))))
    batch = Batch()
    batch.removed_jobs = [3, 4, 5, 6, 7, 7, 11, 13]
    store.commit(batch)
    assert ids(store) == [1, 2, 8, 9, 10, 12, *range(14, 21)]
    assert records(store) == []


@pytest.mark.parametrize("others", [0, 1, 100], ids=["alone", "after another one", "after many"])
def test_a_new_job_that_cannot_be_stored_changes_nothing(
    write_failure: WriteFailure, store: Store, reopened: Reopen, others: int
) -> None:
    store.commit(accepted(job(1)))
    with pytest.raises(StoreError):
        store.commit(accepted(*map(job, range(2, 2 + others)), job(200, run_at=math.nan)))
    assert ids(store) == [1]
    store.commit(accepted(job(200)))
    assert ids(reopened()) == [1, 200]
