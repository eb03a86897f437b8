"""Jobs whose payloads the server does not have: what a store that keeps them has to do.

Stores without this are skipped: they get every payload again with every change.
"""

from collections.abc import Callable, Iterator

import pytest

from geartrain.model import Job, JobState
from geartrain.store import contract
from geartrain.store.contract import Batch, Store
from geartrain.store.payload_store import PayloadStore, as_payload_store
from tests.contract.stores.conftest import Reopen
from tests.contract.stores.factories import batch, facts, ids, job, record, rows

WORKFLOW = b"geartrain.workflow"


@pytest.fixture
def payload_store(store: Store) -> PayloadStore:
    found = as_payload_store(store)
    if found is None:
        pytest.skip("this store cannot be asked for payloads")
    return found


def cold(id: int, **changes: object) -> Job:
    """The same job as the server has it when it is cold."""
    made = job(id, **changes)
    made.chill(b"H:host:")
    assert made.is_cold
    return made


def failed(*jobs: Job) -> Batch:
    made = batch(finished=[record(ended.id, state=int(JobState.FAILED)) for ended in jobs])
    for ended in jobs:
        ended.state = JobState.FAILED
    made.failed = [contract.row(ended) for ended in jobs]
    return made


@pytest.fixture
def restored(store: Store, payload_store: PayloadStore) -> Callable[[], list[Job]]:
    """Every job, without the payload where that is possible."""

    def read() -> list[Job]:
        return list(payload_store.jobs_within(Job, lambda: False, WORKFLOW))

    return read


def test_payloads_are_read_by_id(store: Store, payload_store: PayloadStore) -> None:
    odd = bytes(range(256)) * 40
    store.commit(batch([job(1), job(2, payload=b""), job(3, payload=odd), job(4)]))
    assert payload_store.job_payloads([3, 1, 2, 9]) == {1: b"payload 1", 2: b"", 3: odd}
    assert payload_store.job_payloads([]) == {}


def test_the_beginning_of_payloads_is_read(store: Store, payload_store: PayloadStore) -> None:
    store.commit(batch([job(1), job(2, payload=b"")]))
    assert payload_store.job_payloads([1, 2], 4) == {1: b"payl", 2: b""}


def test_a_committed_payload_can_be_read_at_once(store: Store, payload_store: PayloadStore) -> None:
    for id in range(1, 20):
        store.commit(batch([job(id)]))
        assert payload_store.job_payloads([id]) == {id: b"payload %d" % id}


def test_a_text_is_found_in_payloads(store: Store, payload_store: PayloadStore) -> None:
    store.commit(batch([job(1, payload=b"a cat"), job(2, payload=b"\0cat\xff"), job(3, payload=b"dog")]))
    assert sorted(payload_store.find_payloads([1, 2, 3], b"cat")) == [1, 2]
    assert payload_store.find_payloads([3], b"cat") == []


def test_a_change_of_a_cold_job_leaves_its_payload(store: Store, payload_store: PayloadStore, reopened: Reopen) -> None:
    store.commit(batch([job(1), job(2)]))
    store.commit(batch([cold(1, attempts=3, reason="why", state=JobState.DEAD)]))
    expected = [facts(job(1, attempts=3, reason="why", state=JobState.DEAD)), facts(job(2))]
    assert rows(store) == expected
    assert rows(reopened()) == expected


def test_the_last_change_in_a_batch_wins_whether_the_job_is_cold_or_not(
    store: Store, payload_store: PayloadStore
) -> None:
    store.commit(batch([job(1), job(2), job(3)]))
    store.commit(
        batch([
            job(1, attempts=1, payload=b"new"), cold(1, attempts=2),
            cold(2, attempts=1), job(2, attempts=2),
            cold(3, attempts=1), cold(3, attempts=2),
        ])
    )  # fmt: skip
    assert rows(store) == [facts(job(1, attempts=2, payload=b"new")), *(facts(job(id, attempts=2)) for id in (2, 3))]


def test_a_cold_job_that_failed_is_kept_whole(store: Store, payload_store: PayloadStore) -> None:
    store.commit(batch([job(1), job(2)]))
    store.commit(failed(cold(1), job(2)))
    assert ids(store) == []
    kept = store.failed_jobs([1, 2], Job, 10**6)
    assert [found and found.payload for found in kept] == [b"payload 1", b"payload 2"]


def test_a_failed_job_without_a_payload_anywhere_leaves_its_record(store: Store, payload_store: PayloadStore) -> None:
    store.commit(failed(cold(1), job(2)))
    assert [found and found.payload for found in store.failed_jobs([1, 2], Job, 10**6)] == [None, b"payload 2"]


def test_jobs_are_restored_cold(store: Store, restored: Callable[[], list[Job]]) -> None:
    dead = job(2, state=JobState.DEAD, payload=b"")
    store.commit(batch([job(1, attempts=3, reason="why"), dead, job(3, payload=bytes(20_000))]))
    found = restored()
    assert [(each.is_cold, each.payload_size) for each in found] == [(True, 9), (True, 0), (True, 20_000)]
    for each, payload in zip(found, (b"payload 1", b"", bytes(20_000)), strict=True):
        each.warm(payload)
    assert [facts(each) for each in found] == rows(store)


def test_jobs_that_must_be_warm_are_restored_whole(store: Store, restored: Callable[[], list[Job]]) -> None:
    """Those of the function that is named; and of handles from which the id could not be told."""
    store.commit(batch([job(1, function=WORKFLOW), job(2, handle=b"odd:"), job(3)]))
    assert [each.is_cold for each in restored()] == [False, False, True]
    assert [each.handle for each in restored()] == [b"H:host:1", b"odd:", b"H:host:3"]


def test_jobs_are_restored_whole_while_there_is_room(store: Store, payload_store: PayloadStore) -> None:
    store.commit(batch([job(id) for id in range(1, 501)]))
    room = iter([True, True, False])
    found = list(payload_store.jobs_within(Job, lambda: next(room, False), b""))
    assert [each.id for each in found] == list(range(1, 501))
    warm = [each.id for each in found if not each.is_cold]
    assert 0 < len(warm) < 500
    assert warm == list(range(1, len(warm) + 1))


def test_an_invalid_row_is_quarantined_when_it_is_read_without_its_payload(
    store: Store, payload_store: PayloadStore, restored: Callable[[], list[Job]]
) -> None:
    store.commit(batch([job(1), job(2, handle=b""), job(3)]))
    assert [each.id for each in restored()] == [1, 3]
    assert payload_store.job_payloads([1, 2, 3]).keys() == {1, 3}


def test_jobs_are_read_while_others_are_committed(store: Store, payload_store: PayloadStore) -> None:
    def generations() -> Iterator[bytes]:
        for number in range(50):
            store.commit(batch([job(1, payload=b"%d" % number * 1000)]))
            yield b"%d" % number * 1000

    assert all(payload_store.job_payloads([1]) == {1: payload} for payload in generations())
