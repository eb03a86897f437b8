"""Failed jobs that are kept whole, beside their records."""

import pytest

from geartrain.model import Attempt, FailedPayload, Job, JobState
from geartrain.store import contract
from geartrain.store.contract import Batch, Query, ResultLimits, Store
from tests.contract.stores.conftest import Reopen
from tests.contract.stores.factories import batch, facts, ids, job, prune, record, records

FAILED = JobState.FAILED
MOST = 2**40


@pytest.fixture
def limits() -> ResultLimits:
    return ResultLimits(failed=100, failed_in_memory=100)


def failed(id: int, **changes: object) -> Job:
    return job(id, state=FAILED, **changes)


def fail(store: Store, *jobs: Job) -> None:
    """Have these jobs fail in one batch."""
    changes = batch(finished=[record(job.id, state=int(FAILED), handle=job.handle) for job in jobs])
    changes.failed = [contract.row(job) for job in jobs]
    store.commit(changes)


def removal(*ids: int) -> Batch:
    made = Batch()
    made.removed_records = list(ids)
    return made


def kept(store: Store, *ids: int) -> list[tuple[object, ...] | None]:
    return [None if job is None else facts(job) for job in store.failed_jobs(ids, Job, MOST)]


def test_all_of_a_job_is_kept(store: Store, reopened: Reopen) -> None:
    whole = failed(
        7, unique=b"key", payload=bytes(range(50)), priority=2, attempts=3, count=4, timeout=1.5, reducer=b"sum",
        door="danga", reason="why", keeps_result=False, keep_for=9.0, run_at=1.0,
        failed_attempts=[Attempt(1.0, 2.0, "gearman", b"bob", "no")],
    )  # fmt: skip
    store.commit(batch([job(7)]))
    fail(store, whole)
    again = reopened() if store.durable else store
    assert kept(again, 7, 8) == [facts(whole), None]
    assert (ids(again), records(again)) == ([], [7])


def test_payloads(store: Store) -> None:
    fail(store, failed(1, payload=b"abcdef"), failed(2, payload=b""))
    assert store.payloads([1, 2, 3], 4) == {1: FailedPayload(6, b"abcd"), 2: FailedPayload(0, b"")}
    assert store.payloads([1], 2**62) == {1: FailedPayload(6, b"abcdef")}


def test_search_finds_payloads(store: Store) -> None:
    fail(store, failed(1, payload=b"\xff\0cat\xff"), failed(2, payload=b"dog"))
    assert records(store, search=b"\0cat\xff") == [1]
    assert records(store, search=b"dog", state=int(FAILED), by_id=True) == [2]
    assert records(store, search=b"H:host:1", function=b"reverse") == [1]


def test_a_retried_job_is_there_once(store: Store, reopened: Reopen) -> None:
    fail(store, failed(1))
    changes = batch([job(1)])
    changes.removed_records = [1]
    store.commit(changes)
    again = reopened() if store.durable else store
    assert (ids(again), records(again), kept(again, 1)) == ([1], [], [None])


def test_retried_and_failed_again_in_one_batch(store: Store) -> None:
    fail(store, failed(1, payload=b"old"))
    changes = batch([job(1)], [record(1, state=int(FAILED), reason="again")])
    changes.removed_records = [1]
    changes.failed = [contract.row(failed(1, payload=b"new"))]
    store.commit(changes)
    assert (ids(store), [found.reason for found in store.records(Query())]) == ([], ["again"])
    assert store.payloads([1], 10) == {1: FailedPayload(3, b"new")}


def test_removed_with_its_record(store: Store) -> None:
    fail(store, failed(1), failed(2), failed(3))
    store.commit(removal(2, 99))
    assert (records(store), kept(store, 2)) == ([3, 1], [None])
    prune(store, 0.0, 1)
    assert (records(store), [found is None for found in kept(store, 1, 3)]) == ([3], [True, False])


def test_removing_records_does_not_confuse_the_quotas(store: Store) -> None:
    for id in range(1, 7):
        store.commit(batch(finished=[record(id, state=int(FAILED if id % 2 else JobState.DONE))]))
    prune(store, 0.0, 100)
    store.commit(removal(1, 2))
    prune(store, 0.0, 1)
    assert records(store) == [6, 5]


def test_the_oldest_payloads_make_room(store: Store) -> None:
    for id in range(1, 5):
        fail(store, failed(id, payload=bytes(40)))
    assert store.payloads(range(1, 5), 0).keys() == {3, 4}
    assert records(store) == [4, 3, 2, 1]
    store.commit(removal(4))
    fail(store, failed(5, payload=bytes(40)))
    assert store.payloads(range(1, 6), 0).keys() == {3, 5}


def test_a_payload_above_the_limit_is_not_kept(store: Store) -> None:
    fail(store, failed(1, payload=bytes(101)))
    assert (records(store), kept(store, 1)) == ([1], [None])


def test_large_jobs_are_read_in_parts(store: Store) -> None:
    if not store.durable:
        pytest.skip("memory has them anyway")
    fail(store, *(failed(id, payload=bytes(30)) for id in (1, 2, 3)))
    assert len(store.failed_jobs([1, 2, 3], Job, 40)) == 2
    assert len(store.failed_jobs([1, 2, 3], Job, 0)) == 1
    assert len(store.failed_jobs([3], Job, 0)) == 1


def test_a_record_with_a_time_of_its_function(store: Store) -> None:
    if not store.durable:
        pytest.skip("the memory store limits records by number only")
    times = {1: (0.0, 50.0), 2: (0.0, 150.0), 3: (0.0, 0.0), 4: (150.0, 0.0), 5: (50.0, 0.0)}
    for id, (until, at) in times.items():
        store.commit(batch(finished=[record(id, keep_until=until, remove_at=at, finished_at=10.0 + id)]))
    assert prune(store, 100.0, 0) == 3
    assert records(store) == [4, 2]


@pytest.mark.parametrize("state", [JobState.CANCELLED, JobState.EXPIRED])
def test_a_job_that_ended_badly_otherwise_is_kept_whole_as_well(
    store: Store, reopened: Reopen, state: JobState
) -> None:
    whole = job(1, state=state, payload=b"whole", after=b"\0" + (9).to_bytes(8, "big"), keep_for=50.0)
    changes = batch(finished=[record(1, state=int(state), finished_at=10.0, keep_until=60.0)])
    changes.failed = [contract.row(whole)]
    store.commit(changes)
    again = reopened() if store.durable else store
    assert kept(again, 1) == [facts(whole)]
    (read,) = again.failed_jobs([1], Job, MOST)
    assert read is not None
    assert (read.state, read.after) == (state, whole.after)
    prune(again, 2e9, 0)
    assert (records(again), kept(again, 1)) == ([], [None])


def test_how_jobs_of_a_range_ended(store: Store) -> None:
    ends = {2: JobState.DONE, 3: JobState.FAILED, 4: JobState.CANCELLED, 6: JobState.EXPIRED}
    store.commit(batch([job(5)], [record(id, state=int(state)) for id, state in ends.items()]))
    assert store.ends(3, 6) == {3: JobState.FAILED, 4: JobState.CANCELLED, 6: JobState.EXPIRED}
    assert store.ends(7, 9) == {}
