"""Power cuts: a batch that was committed is on the disk, and one that was not is there whole or not at all."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from geartrain.store import sqlite_checkpoints
from geartrain.store.contract import Batch, Store
from geartrain.store.sqlite import SqliteStore
from tests.contract.stores.factories import accepted, batch, job, record, records, rows
from tests.integration.store.power import PowerDisk

SEED = 20

State = tuple[list[tuple[object, ...]], list[int]]


@pytest.fixture
def disk() -> Iterator[PowerDisk]:
    disk = PowerDisk()
    yield disk
    disk.each = None
    disk.remove()


def state(store: Store) -> State:
    return rows(store), sorted(records(store, limit=10_000))


def found_in(path: Path) -> State:
    store = SqliteStore(path)
    store.open()
    found = state(store)
    store.close(1_000_000)
    assert not list(path.parent.glob("*.damaged-*")), "a power cut is no damage"
    return found


def batches() -> Iterator[Batch]:
    """Jobs come, change and end; some are so large that the log is copied into the file now and then."""
    for number in range(1, 31):
        id = number * 10
        size = 600_000 if number % 4 == 0 else 100
        saved = [job(id, payload=bytes(size)), job(id + 1), job(id - 9, attempts=number)]
        yield batch(saved, [record(id - 10), record(id - 20)] if number > 2 else [], ids_until=id + 100)
        yield accepted(job(id + 2))
        yield accepted(*(job(id + other) for other in range(3, 8)))


def test_committed_batch_is_on_the_disk(tmp_path: Path, disk: PowerDisk) -> None:
    """Nothing that was not synced survives, and nothing that was committed is missing."""
    store = SqliteStore(tmp_path / "live" / "jobs.db")
    store.open()
    for number, each in enumerate(batches()):
        store.commit(each)
        expected = state(store)
        before, disk.contents = disk.contents, disk.contents.copy()
        left = disk.cut(tmp_path / f"{number}", random.Random(SEED), keep=0.0)
        assert found_in(left) == expected, f"after batch {number}"
        disk.contents = before
        shutil.rmtree(tmp_path / f"{number}")
    store.close(1_000_000)


@pytest.mark.parametrize("keep", [0.0, 0.5, 0.9, 1.0])
def test_batch_is_there_whole_or_not_at_all(tmp_path: Path, disk: PowerDisk, keep: float) -> None:
    """The power is cut in the middle of commits, with any part of what was not synced on the disk or not."""
    chance = random.Random(SEED)
    cuts: list[tuple[Path, int]] = []  # what was left, and how many batches had been committed
    committed = 0

    def maybe_cut() -> None:
        if chance.random() < 0.02:
            cuts.append((disk.cut(tmp_path / f"cut-{len(cuts)}", chance, keep), committed))

    store = SqliteStore(tmp_path / "live" / "jobs.db")
    store.open()
    store.commit(batch(ids_until=1))
    states = [state(store)]
    disk.each = maybe_cut
    for each in batches():
        store.commit(each)
        committed += 1
        states.append(state(store))
    disk.each = None
    store.close(1_000_000)
    disk.remove()
    assert len(cuts) > 30
    outcomes = {_outcome(path, states, count) for path, count in cuts}
    assert "before" in outcomes


def _outcome(path: Path, states: list[State], committed: int) -> str:
    """Which of the two states that are allowed the file has."""
    found = found_in(path)
    if found == states[committed]:
        return "before"
    assert found == states[committed + 1], f"neither the state before batch {committed} nor that after it"
    return "after"


def test_new_file_that_is_cut_short_opens(tmp_path: Path, disk: PowerDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The power is cut while the file is made: the next start makes it."""
    monkeypatch.setattr(sqlite_checkpoints, "PAGES", 30)  # the log gets its length by as many writes
    chance = random.Random(SEED)
    cuts: list[Path] = []
    disk.each = lambda: cuts.append(disk.cut(tmp_path / f"cut-{len(cuts)}", chance, 0.5))
    store = SqliteStore(tmp_path / "live" / "jobs.db")
    store.open()
    disk.each = None
    store.close(1)
    disk.remove()
    assert len(cuts) > 5
    for path in cuts:
        assert found_in(path) == ([], [])
