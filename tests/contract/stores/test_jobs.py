"""A job is restored exactly, whatever is in it."""

import random
from typing import Any

import pytest

from geartrain.model import Attempt, Job, JobState, Priority, pack_parents
from geartrain.store.contract import Store
from tests.contract.stores.conftest import Reopen
from tests.contract.stores.factories import NOW, batch, facts, ids, job, rows

EVERY_BYTE = bytes(range(256))
LARGE = random.Random(8).randbytes(8 * 1024 * 1024)

ODD_JOBS = {
    "nothing in it": {"function": b"", "unique": b"", "payload": b""},
    "every byte": {
        "function": EVERY_BYTE,
        "unique": EVERY_BYTE[:64],
        "payload": EVERY_BYTE,
        "reducer": EVERY_BYTE,
    },
    "only NUL": {"function": b"\0", "unique": b"\0", "payload": b"\0\0\0", "reducer": b"\0"},
    "8 MiB": {"payload": LARGE},
    "a long name": {"function": b"f" * 100_000, "handle": b"H:" + b"h" * 60},
    "scheduled": {"run_at": NOW + 3600.125},
    "scheduled beyond all calendars": {"run_at": float(2**63 - 1)},
    "time in the past": {"run_at": -1.5, "submitted_at": 0.001},
    "attempted before": {"attempts": 9},
    "many attempts": {"attempts": 2**31, "count": 2**40},
    "counted": {"count": -3, "timeout": 0.25},
    "reduced": {"reducer": b"sum"},
    "another door": {"door": "periodic"},
    "result not kept": {"door": "danga", "keeps_result": False},
    "high": {"priority": int(Priority.HIGH)},
    "low": {"priority": int(Priority.LOW)},
    "dead": {"state": JobState.DEAD, "reason": "gave up: \N{SNOWMAN} \0 'quoted'", "attempts": 10},
    "a partition": {"partition": EVERY_BYTE[:255]},
    "after others": {"after": pack_parents([1, 2**62], runs_anyway=True)},
    "after many others": {"after": pack_parents(range(1, 100_001), runs_anyway=False)},
    "a time to live": {"expires_at": NOW + 60.5, "keep_for": 9.25, "user": "ada"},
    "the last id": {"id": 2**63 - 1},
    "a failed attempt": {
        "attempts": 2,
        "failed_attempts": [Attempt(NOW, NOW + 0.125, "gearman", EVERY_BYTE, "worker disconnected \N{SNOWMAN}")],
    },
    "twenty failed attempts": {"failed_attempts": [Attempt(NOW, NOW + 1, "", b"", "")] * 20},
}


@pytest.mark.parametrize("changes", ODD_JOBS.values(), ids=ODD_JOBS.keys())
def test_job_is_restored(store: Store, reopened: Reopen, changes: dict[str, Any]) -> None:
    odd = job(**{"id": 7, **changes})
    store.commit(batch([odd]))
    assert rows(store) == [facts(odd)]
    assert rows(reopened()) == [facts(odd)]


@pytest.mark.parametrize("state", [JobState.SCHEDULED, JobState.QUEUED, JobState.RUNNING])
def test_scheduled_queued_and_running_jobs_are_restored_as_queued(
    store: Store, reopened: Reopen, state: JobState
) -> None:
    store.commit(batch([job(7, state=state)]))
    (found,) = reopened().jobs(Job)
    assert found.state is JobState.QUEUED


def test_restored_job_is_a_background_job(store: Store) -> None:
    store.commit(batch([job(7)]))
    (found,) = store.jobs(Job)
    assert found.background is True


def test_state_is_an_enum_member_and_priority_a_plain_int(store: Store) -> None:
    store.commit(batch([job(7, state=JobState.DEAD)]))
    (found,) = store.jobs(Job)
    assert found.state is JobState.DEAD
    assert type(found.priority) is int


def test_jobs_with_the_same_empty_unique_key_are_separate(store: Store, reopened: Reopen) -> None:
    store.commit(batch(job(id, unique=b"", payload=b"") for id in (1, 2, 3)))
    assert ids(reopened()) == [1, 2, 3]


def test_jobs_with_the_same_unique_key_are_separate(store: Store, reopened: Reopen) -> None:
    """A dead job, and a later one with its key; the engine decides which of them owns the key."""
    store.commit(batch([job(1, unique=b"key", state=JobState.DEAD), job(2, unique=b"key")]))
    assert ids(reopened()) == [1, 2]


def test_jobs_are_ordered_by_id(store: Store, reopened: Reopen) -> None:
    order = list(range(1, 6001))
    random.Random(1).shuffle(order)
    for start in range(0, len(order), 2000):
        store.commit(batch(map(job, order[start : start + 2000])))
    assert ids(store) == sorted(order)
    assert ids(reopened()) == sorted(order)


def test_jobs_are_created_as_the_given_class(store: Store) -> None:
    class Special(Job):
        __slots__ = ()

    store.commit(batch([job(1), job(2, state=JobState.DEAD)]))
    assert [type(found) for found in store.jobs(Special)] == [Special, Special]


def test_empty_store_has_no_jobs(store: Store, reopened: Reopen) -> None:
    assert ids(store) == []
    assert ids(reopened()) == []
