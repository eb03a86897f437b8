"""The runs of `bench/queues.py`, small: real servers and workers, and those other queues that the tests install."""

import os
from pathlib import Path

import pytest

from bench import queue_runs
from bench.figures import Sample
from bench.queue_runs import QUEUES, Queue
from tools import peers

OTHERS = peers.ENVIRONMENTS / "other-queues" / "bin" / "python"
NAMED = {queue.name: queue for queue in QUEUES}
RUNS = {
    "plain": queue_runs.plain,
    "results": queue_runs.results,
    "chords": queue_runs.chords,
    "retries": queue_runs.retries,
    "processes": queue_runs.processes,
}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_runs, "SHORTEST", 0.2)
    monkeypatch.setattr(queue_runs, "PROCESSES", 2)
    monkeypatch.setattr(queue_runs, "WARM_UP_SHARE", 0.1)
    monkeypatch.setattr(queue_runs, "TRIAL", 20)


def found(queue: Queue, row: str) -> dict[str, Sample]:
    return dict(RUNS[row](queue, 0.1, "off"))


@pytest.mark.parametrize("row", RUNS)
@pytest.mark.parametrize("name", [queue_runs.DURABLE, queue_runs.MEMORY])
def test_ours(name: str, row: str) -> None:
    figures = found(NAMED[name], row)
    assert set(figures) == ({"submit", "work"} if row == "plain" else {row})
    assert all(sample.value > 0 for sample in figures.values())


@pytest.mark.peer("redis-server", "other-queues")
@pytest.mark.parametrize("row", ["results", "retries"])
@pytest.mark.parametrize("name", ["RQ", "Celery", "Dramatiq"])
def test_theirs(name: str, row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_runs, "environment", lambda queue: OTHERS)
    assert found(NAMED[name], row)[row].value > 0


@pytest.mark.peer("redis-server", "other-queues")
@pytest.mark.parametrize("name", ["Celery", "Dramatiq"])
def test_their_chords(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_runs, "environment", lambda queue: OTHERS)
    assert found(NAMED[name], "chords")["chords"].value > 0


def test_a_worker_that_ends_is_told_with_what_it_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_runs, "PEERS", tmp_path)
    (tmp_path / "run_peer.py").write_text("raise SystemExit('no such library')")
    with queue_runs.fresh(NAMED[queue_runs.MEMORY], "plain", "off") as place:
        with queue_runs.Workers(place, "work") as workers, pytest.raises(queue_runs.NoFigureError) as told:
            queue_runs.emptied(workers, 0, 0)
        assert "no such library" in str(told.value)
        with pytest.raises(queue_runs.NoFigureError, match="no such library"):
            place.submit("submit", "1")


def test_workers_and_their_processes_end_with_the_run() -> None:
    with queue_runs.fresh(NAMED[queue_runs.MEMORY], "processes", "off") as place:
        with queue_runs.Workers(place, "work-many", "2") as workers:
            workers.wait_for(lambda: len(queue_runs.family(workers.process.pid)) >= 3, 60)
            everyone = queue_runs.family(workers.process.pid)
            assert queue_runs.processor(*everyone) > 0
        assert [pid for pid in everyone if Path(f"/proc/{pid}").exists()] == []


def test_the_family_of_a_process_has_its_parent_first() -> None:
    assert os.getpid() in queue_runs.family(os.getppid())
    assert queue_runs.family(os.getpid())[0] == os.getpid()


@pytest.mark.parametrize(
    ("setting", "options"),
    [("off", ("--appendonly", "no")), ("always", ("--appendonly", "yes", "--appendfsync", "always"))],
)
def test_redis_is_told_how_durable_it_is(setting: str, options: tuple[str, ...]) -> None:
    assert queue_runs.redis_options(setting) == options
