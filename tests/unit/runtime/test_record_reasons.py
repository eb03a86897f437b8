"""Records of one group of reasons, which the store cannot select."""

import asyncio
from typing import Any

import pytest

from geartrain.job_query import JobQuery
from geartrain.model import JobState, Record
from geartrain.runtime import records
from geartrain.runtime.records import RecordChanges, StoreArchive
from geartrain.store.contract import Batch
from geartrain.store.memory import MemoryStore

READ = 10


def record(id: int, reason: str, state: JobState = JobState.FAILED) -> Record:
    return Record(
        id, b"H:host:%d" % id, b"f", b"", 1, int(state), 1.0, 2.0, float(id), 1, "gearman", "gearman", b"", 1, reason,
        b"",
    )  # fmt: skip


@pytest.fixture
def archive(monkeypatch: pytest.MonkeyPatch) -> StoreArchive:
    """Every twentieth of a hundred records has another reason. The last one is not committed, and some are removed."""
    monkeypatch.setattr(records, "_REASONS_READ", READ)
    store, changes = MemoryStore(), RecordChanges()
    store.open()
    batch = Batch()
    batch.finished += [record(id, f"rare {id}" if id % 20 == 0 else f"usual {id}") for id in range(1, 99)]
    batch.finished.append(record(99, "rare 99", JobState.DONE))
    store.commit(batch)
    changes.records[b"H:host:100"] = record(100, "rare 100")
    changes.removed.update({59, 60, *range(61, 71)})
    return StoreArchive(store, changes)


def ids(archive: StoreArchive, limit: int, **query: Any) -> list[int]:
    found = asyncio.run(archive.newest(JobQuery.parse(reason="rare #", **query), limit))
    return [record.id for record in found]


def test_records_of_a_group_are_found_behind_many_others(archive: StoreArchive) -> None:
    assert ids(archive, 10) == [100, 80, 40, 20]
    assert ids(archive, 2) == [100, 80]
    assert ids(archive, 10, after="80") == [40, 20]
    assert ids(archive, 10, state="done") == []
