"""Jobs that a fenced server brings along are submitted again until they are durable, once each."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from geartrain.cluster import rescue
from geartrain.cluster.rescue import LostJobs
from geartrain.errors import StoreError
from geartrain.model import Job, JobState, pack_parents, unpack_parents
from geartrain.store import contract
from geartrain.store.shared import FencedError, SharedStore
from tests.contract.stores.factories import ids, job
from tests.unit.runtime.committer_scene import Scene, Story, play

OLD = 1 << 52  # ids of the server that was fenced

Play = Callable[[Story], None]


@pytest.fixture(name="play")
def _play(tmp_path: Path) -> Play:
    return partial(play, tmp_path / "jobs.db")


class Database:
    """What the store knows of jobs of other servers."""

    def __init__(self, known: Sequence[int] = (), failures: Sequence[Exception] = ()) -> None:
        self._known = known
        self._failures = list(failures)
        self.asked: list[list[int]] = []

    def states(self, ids: Sequence[int]) -> dict[int, JobState]:
        self.asked.append(list(ids))
        if self._failures:
            raise self._failures.pop()
        return {id: JobState.DONE for id in ids if id in self._known}


def old_jobs(count: int) -> list[tuple[object, ...]]:
    return [contract.row(job(OLD + number, unique=b"key", run_at=-float(number))) for number in range(count)]


def begin(scene: Scene, jobs: LostJobs, database: Database, stopped: asyncio.Event) -> "asyncio.Task[None]":
    scene.committer.on_renewed = lambda: None
    scene.committer.on_fenced = stopped.set
    store = cast(SharedStore, database)
    return asyncio.ensure_future(jobs.submit_again(store, scene.committer, scene.tick_loop, stopped))


def stored(scene: Scene) -> list[Any]:
    return sorted(job.handle for job in scene.store.jobs(Job))


def handles(*numbers: int) -> list[bytes]:
    return [b"H:host:%d" % (OLD + number) for number in numbers]


def test_jobs_that_the_database_knows_are_dropped(play: Play) -> None:
    async def story(s: Scene) -> None:
        jobs = LostJobs(old_jobs(3))
        await begin(s, jobs, Database([OLD + 1]), asyncio.Event())
        assert stored(s) == handles(0, 2)
        assert (jobs.left, jobs.submitted) == ([], 2)
        assert [job.unique for job in s.store.jobs(Job)] == [b"", b""]

    play(story)


def test_they_are_submitted_in_parts(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the commits of a server which brings many along renew its lease."""
    monkeypatch.setattr(rescue, "_SUBMITTED_AT_ONCE", 2)
    monkeypatch.setattr(rescue, "_ASKED_AT_ONCE", 2)

    async def story(s: Scene) -> None:
        database = Database()
        await begin(s, LostJobs(old_jobs(5)), database, asyncio.Event())
        assert [len(asked) for asked in database.asked] == [2, 2, 1]
        assert [len(batch.accepted) for batch in s.store.tried if batch.accepted] == [2, 2, 1]
        assert stored(s) == handles(0, 1, 2, 3, 4)

    play(story)


@pytest.mark.parametrize("fails", ["the question", "the commit"])
def test_a_database_that_fails_is_asked_and_written_again(
    play: Play, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    monkeypatch.setattr(rescue, "_PAUSE_SECONDS", 0.01)
    error = StoreError("the database does not answer")

    async def story(s: Scene) -> None:
        database = Database(failures=[error] if fails == "the question" else [])
        s.store.failures = [error] if fails == "the commit" else []
        jobs = LostJobs(old_jobs(3))
        await begin(s, jobs, database, asyncio.Event())
        assert stored(s) == handles(0, 1, 2)
        assert jobs.left == []
        assert len(s.engine.jobs) == 3
        # What a failed commit may have left is removed by the next one, so it does not count as found.
        assert len(database.asked) == (2 if fails == "the question" else 1)

    play(story)


def test_the_next_start_has_what_a_fenced_one_has_left(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rescue, "_SUBMITTED_AT_ONCE", 2)

    async def story(s: Scene) -> None:
        jobs, stopped = LostJobs(old_jobs(5)), asyncio.Event()
        s.store.hold()
        task = begin(s, jobs, Database(), stopped)
        await s.writing()
        s.store.let_one()
        await s.until(lambda: len(jobs.left) == 3)
        s.store.failures = [FencedError("fenced")]
        s.store.let_all()
        await task
        assert stopped.is_set()
        assert len(ids(s.store)) == 2
        left = [row[0] for row in jobs.left]
        assert len(left) == 3
        assert all(id < OLD for id in left), "those that were tried, which may be there after all"

    play(story)


def test_jobs_wait_for_what_they_waited_for(play: Play) -> None:
    first, second = job(OLD), job(OLD + 1, after=pack_parents([OLD, OLD + 7], False))

    async def story(s: Scene) -> None:
        await begin(s, LostJobs([contract.row(first), contract.row(second)]), Database(), asyncio.Event())
        parent, child = sorted(s.store.jobs(Job), key=lambda job: job.handle)
        assert unpack_parents(child.after).ids == (parent.id, OLD + 7)

    play(story)


def test_nothing_is_submitted_by_a_server_that_stops(play: Play) -> None:
    async def story(s: Scene) -> None:
        jobs, stopped = LostJobs(old_jobs(2)), asyncio.Event()
        stopped.set()
        await begin(s, jobs, Database(), stopped)
        assert (len(jobs.left), ids(s.store)) == (2, [])

    play(story)
