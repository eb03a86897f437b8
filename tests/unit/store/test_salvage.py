"""What is carried over from a damaged file, besides jobs."""

from pathlib import Path

from geartrain.model import Attempt, Job, JobState
from geartrain.store import contract, salvage
from geartrain.store.contract import Query
from tests.contract.stores.factories import batch, facts, ids, job, record, rows
from tests.support.store_fixtures import Opened

FAILED = JobState.FAILED


def test_failed_jobs_that_are_kept_whole(path: Path, opened: Opened) -> None:
    store = opened()
    failed = job(
        2, state=FAILED, unique=b"key", attempts=3, reason="bad input", payload=b"\xff" * 10_000,
        failed_attempts=[Attempt(1.0, 2.0, "gearman", b"bob", "first")],
    )  # fmt: skip
    changes = batch([job(1)], [record(2, state=int(FAILED)), record(3)])
    changes.failed = [contract.row(failed)]
    store.commit(changes)
    store.close(10)
    salvage.replace(path, "for the test")
    store = opened()
    assert (ids(store), rows(store)) == ([1], [facts(job(1))])
    (kept,) = store.failed_jobs([2], Job, 10**9)
    assert kept is not None
    assert facts(kept) == facts(failed)
    (found,) = store.records(Query())
    assert (found.id, found.handle, found.unique, found.state) == (2, b"H:host:2", b"key", int(FAILED))
    assert (found.attempts, found.reason, found.result) == (3, "bad input", b"")


def test_a_job_that_was_being_retried_is_there_once(path: Path, opened: Opened) -> None:
    store = opened()
    changes = batch([job(2)])
    changes.failed = [contract.row(job(2, state=FAILED))]
    store.commit(changes)
    store.close(10)
    salvage.replace(path, "for the test")
    store = opened()
    assert (ids(store), store.records(Query()), store.payloads([2], 1)) == ([2], [], {})
