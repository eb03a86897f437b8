"""Group commit on a disk that fails: who is told, what is undone, and what is kept until it works again."""

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from geartrain.doors.connection import Connection
from geartrain.engine.engine import PollingWorker
from geartrain.engine.interfaces import Watcher
from geartrain.engine.job import LiveJob
from geartrain.model import Duplicate
from geartrain.runtime import committer as subject
from tests.contract.stores.factories import ids, records
from tests.unit.runtime.committer_scene import Scene, Story, failures, kept, play

Play = Callable[[Story], None]


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture(name="play")
def _play(path: Path) -> Play:
    return partial(play, path)


def test_submitters_are_told_and_jobs_withdrawn(play: Play, path: Path) -> None:
    async def story(s: Scene) -> None:
        connection, wire = s.connect()
        s.store.failures = failures(1)
        job = s.submit(connection, b"one")
        connection.write(b", and then this")
        await s.until(lambda: bool(wire.heard))
        assert wire.heard == [b"no one, and then this"]
        assert s.engine.find(job.handle) is None
        assert s.engine.claim(s.worker) is None

    play(story)
    assert kept(path) == []


def test_next_job_is_tried_at_once(play: Play, path: Path) -> None:
    """A submission is the best probe: nobody has to wait for the next attempt."""
    accepted: list[int] = []

    async def story(s: Scene) -> None:
        connection, wire = s.connect()
        s.store.failures = failures(2)
        for name in (b"one", b"two", b"three"):
            job = s.submit(connection, name)
            await s.idle()
        accepted.append(job.id)
        assert wire.heard == [b"no one", b"no two", b"three"]

    play(story)
    assert kept(path) == accepted


def test_duplicate_of_a_job_that_failed_is_not_acknowledged(play: Play, path: Path) -> None:
    """Its own batch would succeed; but the job that it joined is gone."""

    async def story(s: Scene) -> None:
        first, first_wire = s.connect()
        second, second_wire = s.connect()
        s.store.hold()
        s.store.failures = failures(1)
        job = s.submit(first, b"one", unique=b"key")
        await s.writing()
        other = s.submit(first, b"other")
        twin = s.submit(second, b"twin", unique=b"key")
        assert twin is job
        s.store.let_all()
        await s.until(lambda: bool(second_wire.heard))
        await s.idle()
        alive = s.engine.find(job.handle) is not None
        assert second_wire.heard == [b"twin" if alive else b"no twin"]
        told = b"".join(first_wire.heard)
        assert (b"no other" in told) == (s.engine.find(other.handle) is None)

    play(story)
    assert kept(path) == []


def test_withdrawn_job_leaves_nothing_in_later_batches(play: Play, path: Path) -> None:
    """It was claimed and lost while its batch was being written: that change must not bring it back."""

    async def story(s: Scene) -> None:
        connection, wire = s.connect()
        s.store.hold()
        s.store.failures = failures(1)
        job = s.submit(connection, b"one")
        await s.writing()
        assert s.engine.claim(s.worker) is job
        s.engine.remove_worker(s.worker)
        s.store.let_all()
        await s.until(lambda: wire.heard == [b"no one"])
        s.submit(connection, b"two")
        await s.until(lambda: wire.heard == [b"no one", b"two"])
        assert ids(s.store) == [job.id + 1]

    play(story)
    assert len(kept(path)) == 1


def test_withdrawn_job_that_was_replaced_is_withdrawn_in_its_new_form(play: Play, path: Path) -> None:
    async def story(s: Scene) -> None:
        connection, wire = s.connect()
        s.store.hold()
        s.store.failures = failures(1)
        job = s.submit(connection, b"one", unique=b"key")
        await s.writing()
        replaced = s.submit(connection, b"two", unique=b"key", duplicate=Duplicate.REPLACE)
        assert replaced is not job
        s.store.let_all()
        await s.until(lambda: b"".join(wire.heard) == b"no oneno two")
        assert s.engine.find(job.handle) is None

    play(story)
    assert kept(path) == []


def test_job_that_others_wait_for_lives_on_in_the_foreground(play: Play, path: Path) -> None:
    async def story(s: Scene) -> None:
        connection, wire = s.connect()
        s.store.failures = failures(1)
        watcher = Watcher()
        job = s.engine.submit(b"f", unique=b"key", watcher=watcher)
        assert s.submit(connection, b"one", unique=b"key") is job
        await s.until(lambda: wire.heard == [b"no one"])
        assert s.engine.find(job.handle) is job
        assert not job.background

    play(story)
    assert kept(path) == []


def test_other_changes_are_kept_and_written_after_recovery(play: Play, path: Path) -> None:
    async def story(s: Scene) -> None:
        connection, wire = s.connect()
        done, lost = s.submit(connection, b"done"), s.submit(connection, b"lost")
        await s.until(lambda: b"".join(wire.heard) == b"donelost")
        other = PollingWorker("other")
        s.engine.register(other, b"f")
        assert s.engine.claim(s.worker) is done
        assert s.engine.claim(other) is lost
        s.store.failures = failures(1)
        s.engine.complete(s.worker, done, b"result")
        s.engine.remove_worker(other)
        s.committer.save_value("name", b"value")
        await s.idle()
        assert (records(s.store), ids(s.store)) == ([], [done.id, lost.id])
        assert s.committer.uncommitted.records.get(done.handle) is not None
        s.submit(connection, b" new")  # which tries the disk again, with all that was kept
        await s.until(lambda: wire.heard[-1] == b" new")
        assert records(s.store) == [done.id]
        assert [(job.id, job.attempts) for job in s.store.jobs(LiveJob)] == [(lost.id, 1), (lost.id + 1, 0)]
        assert s.store.saved_values() == {"name": b"value"}

    play(story)


def test_disk_is_tried_again_after_a_while(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "_RETRY_SECONDS", 0.01)

    async def story(s: Scene) -> None:
        connection, wire = s.connect()
        job = s.submit(connection, b"one")
        await s.until(lambda: wire.heard == [b"one"])
        s.engine.claim(s.worker)
        s.store.failures = failures(3)
        s.engine.complete(s.worker, job, b"result")
        await s.until(lambda: records(s.store) == [job.id])
        assert ids(s.store) == []

    play(story)


def test_failing_and_recovering_are_each_said_once(play: Play, caplog: pytest.LogCaptureFixture) -> None:
    async def story(s: Scene) -> None:
        connection, _ = s.connect()
        s.store.failures = failures(3)
        for number in range(5):
            s.submit(connection, b"%d" % number)
            await s.idle()

    with caplog.at_level(logging.WARNING, "geartrain.store"):
        play(story)
    assert [(entry.levelname, entry.getMessage()) for entry in caplog.records] == [
        ("ERROR", "commit failed; refusing new background jobs"),
        ("WARNING", "commits work again"),
    ]
    assert caplog.records[0].__dict__["fields"] == {"why": "cannot write: disk I/O error"}


@pytest.mark.parametrize("surprise", [MemoryError(), ValueError("what is this"), OverflowError()], ids=repr)
def test_whatever_a_store_raises_nobody_waits_forever(play: Play, surprise: Exception) -> None:
    async def story(s: Scene) -> None:
        connection, wire = s.connect()
        s.store.failures = [surprise]
        s.submit(connection, b"one")
        await s.until(lambda: wire.heard == [b"no one"])
        s.submit(connection, b"two")
        await s.until(lambda: wire.heard == [b"no one", b"two"])

    play(story)


def test_foreground_jobs_and_reads_go_on_while_the_disk_fails(play: Play) -> None:
    async def story(s: Scene) -> None:
        connection, wire = s.connect()
        s.store.failures = failures(1)
        s.submit(connection, b"one")
        await s.idle()
        job = s.engine.submit(b"f", watcher=Watcher())
        connection.write(b"created")
        await s.ticks()
        assert wire.heard == [b"no one", b"created"]
        assert s.engine.claim(s.worker) is job

    play(story)


class Unsettled(Connection):
    """A connection with a bug."""

    def commit_ended(self, ticket: int, failed: bool) -> None:
        raise IndexError("a bug")


def test_connection_that_fails_to_settle_strands_no_other(play: Play, caplog: pytest.LogCaptureFixture) -> None:
    async def story(s: Scene) -> None:
        bad, _ = s.connect(Unsettled)
        good, wire = s.connect()
        later, later_wire = s.connect()
        s.store.hold()
        s.submit(bad, b"one")
        s.submit(good, b"two")
        await s.writing()
        s.submit(later, b"three")
        s.store.let_all()
        await s.until(lambda: (wire.heard, later_wire.heard) == ([b"two"], [b"three"]))

    play(story)
    assert "a bug" in caplog.text
