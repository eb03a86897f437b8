"""Records of finished jobs, and queries for them."""

import pytest

from geartrain.model import JobState, Priority, Record
from geartrain.store.contract import Query, Store
from tests.contract.stores.conftest import Reopen
from tests.contract.stores.factories import NOW, batch, finish, job, record, records

EVERY_BYTE = bytes(range(256))

ODD_RECORDS = {
    "plain": {},
    "never assigned": {"started_at": 0.0, "worker": b"", "worker_door": "", "attempts": 0, "result": b""},
    "cancelled": {"state": int(JobState.CANCELLED), "reason": "cancelled by an operator"},
    "failed": {"state": int(JobState.FAILED), "reason": "\N{SNOWMAN}", "attempts": 7, "code": 255},
    "every byte": {"function": EVERY_BYTE, "unique": EVERY_BYTE, "worker": EVERY_BYTE, "result": EVERY_BYTE},
    "result not kept": {"door": "danga", "result": b"", "keeps_result": False},
    "two doors": {"door": "periodic", "worker_door": "memodb"},
    "priority": {"priority": int(Priority.HIGH)},
}


@pytest.mark.parametrize("changes", ODD_RECORDS.values(), ids=ODD_RECORDS.keys())
def test_record_is_restored(store: Store, reopened: Reopen, changes: dict[str, object]) -> None:
    written = record(7, **changes)
    store.commit(batch(finished=[written]))
    assert store.records(Query()) == [written]
    found = reopened().records(Query())
    assert found == [written]
    assert type(found[0]) is Record
    assert type(found[0].keeps_result) is bool


def test_newest_come_first(store: Store, reopened: Reopen) -> None:
    store.commit(batch(finished=[record(1), record(2)]))
    store.commit(batch(finished=[record(9)]))
    store.commit(batch(finished=[record(4)]))
    assert records(store) == [4, 9, 2, 1]
    assert records(reopened()) == [4, 9, 2, 1]


def test_limit_keeps_the_newest(store: Store) -> None:
    finish(store, *range(1, 8))
    assert records(store, limit=3) == [7, 6, 5]
    assert records(store, limit=0) == []
    assert records(store, limit=100) == [7, 6, 5, 4, 3, 2, 1]


def test_default_limit_is_a_hundred(store: Store) -> None:
    store.commit(batch(finished=map(record, range(1, 151))))
    assert len(records(store)) == 100


def test_by_handle(store: Store) -> None:
    finish(store, 1, 2, 3)
    assert records(store, handle=b"H:host:2") == [2]


@pytest.mark.parametrize(
    "unknown",
    [
        b"H:host:4",
        b"H:other:2",
        b"2",
        b"H:host:",
        b"nobody",
        b"H:host:99999999999999999999",
        b"H:host:" + b"9" * 5000,
        b"\xff\0",
    ],
)
def test_by_unknown_handle(store: Store, unknown: bytes) -> None:
    finish(store, 1, 2, 3)
    assert records(store, handle=unknown) == []


def test_by_handle_without_a_number(store: Store) -> None:
    store.commit(batch(finished=[record(1), record(2, handle=b"some name"), record(3)]))
    assert records(store, handle=b"some name") == [2]


def test_by_function(store: Store) -> None:
    finish(store, 1, 3)
    finish(store, 2, 4, function=b"resize")
    assert records(store, function=b"resize") == [4, 2]
    assert records(store, function=b"RESIZE") == []


@pytest.mark.parametrize("state", [JobState.DONE, JobState.FAILED, JobState.CANCELLED])
def test_by_state(store: Store, state: JobState) -> None:
    for id, state_of_record in enumerate((JobState.DONE, JobState.FAILED, JobState.CANCELLED), 1):
        finish(store, id, state=int(state_of_record))
    assert records(store, state=int(state)) == [int(state) - int(JobState.DONE) + 1]


def test_by_time(store: Store) -> None:
    finish(store, *range(1, 8))
    assert records(store, since=NOW + 5) == [7, 6, 5], "at or after"
    assert records(store, until=NOW + 3) == [2, 1], "before"
    assert records(store, since=NOW + 3, until=NOW + 5) == [4, 3]


def test_all_conditions_must_match(store: Store) -> None:
    finish(store, 1, 2, 3, function=b"resize", state=int(JobState.FAILED))
    finish(store, 4, 5, function=b"resize")
    finish(store, 6, function=b"other", state=int(JobState.FAILED))
    failed = {"function": b"resize", "state": int(JobState.FAILED)}
    assert records(store, **failed) == [3, 2, 1]
    assert records(store, **failed, since=NOW + 2) == [3, 2]
    assert records(store, **failed, since=NOW + 2, limit=1) == [3]
    assert records(store, **failed, handle=b"H:host:2") == [2]
    assert records(store, **failed, handle=b"H:host:4") == []


def test_unfinished_jobs_have_no_record(store: Store) -> None:
    store.commit(batch([job(1), job(2, state=JobState.DEAD)]))
    assert records(store) == []


@pytest.mark.parametrize("progress", ["", "1/2/30"])
def test_last_progress_is_kept(store: Store, reopened: Reopen, progress: str) -> None:
    finish(store, 1, progress=progress)
    for opened in (store, reopened()):
        [found] = opened.records(Query())
        assert found.progress == progress
