"""Group commit: what waits for the disk, what does not, and what is written in the end."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from geartrain.engine.interfaces import Watcher
from geartrain.engine.job import LiveJob
from geartrain.errors import StoreError
from geartrain.model import JobState
from geartrain.runtime import committer as subject
from geartrain.runtime.committer import IDS_RESERVED
from tests.contract.stores.factories import ids, records
from tests.unit.runtime.committer_scene import PATIENCE, GatedStore, Scene, Story, failures, kept, play, scene

Play = Callable[[Story], None]


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture(name="play")
def _play(path: Path) -> Play:
    return partial(play, path)


def test_acknowledgement_leaves_when_its_batch_is_durable(play: Play) -> None:
    async def story(s: Scene) -> None:
        connection, wire = s.connect()
        s.store.hold()
        job = s.submit(connection, b"one")
        await s.writing()
        await s.ticks()
        assert wire.heard == []
        s.store.let_all()
        await s.until(lambda: wire.heard == [b"one"])
        assert ids(s.store) == [job.id]

    play(story)


def test_other_connections_do_not_wait(play: Play) -> None:
    async def story(s: Scene) -> None:
        waiting, held = s.connect()
        other, heard = s.connect()
        s.store.hold()
        s.submit(waiting, b"one")
        await s.writing()
        other.write(b"answer")
        await s.ticks()
        assert (heard.heard, held.heard) == ([b"answer"], [])
        s.store.let_all()

    play(story)


def test_what_was_said_before_does_not_wait(play: Play) -> None:
    async def story(s: Scene) -> None:
        connection, wire = s.connect()
        s.store.hold()
        connection.write(b"before ")
        s.submit(connection, b"one ")
        connection.write(b"after")
        await s.writing()
        await s.ticks()
        assert wire.heard == [b"before "]
        s.store.let_all()
        await s.until(lambda: len(wire.heard) == 2)
        assert wire.heard[1] == b"one after"

    play(story)


def test_each_acknowledgement_waits_for_its_own_batch_and_no_later_one(play: Play) -> None:
    async def story(s: Scene) -> None:
        first, first_wire = s.connect()
        second, second_wire = s.connect()
        s.store.hold()
        s.submit(first, b"one")
        await s.writing()
        s.submit(second, b"two")
        s.submit(first, b"three")
        s.store.let_one()
        await s.writing()
        await s.ticks()
        assert (first_wire.heard, second_wire.heard) == ([b"one"], [])
        s.store.let_all()
        await s.until(lambda: len(first_wire.heard) == 2)
        assert (first_wire.heard, second_wire.heard) == ([b"one", b"three"], [b"two"])
        assert [len(batch.saved_jobs) for batch in s.store.tried] == [1, 2]

    play(story)


def test_order_within_a_connection_is_kept(play: Play) -> None:
    async def story(s: Scene) -> None:
        connection, wire = s.connect()
        said = []
        for number in range(200):
            word = b"%d;" % number
            said.append(word)
            if number % 3:
                s.submit(connection, word)
            else:
                connection.write(word)
            if number % 7 == 0:
                await asyncio.sleep(0.001)
        await s.until(lambda: len(b"".join(wire.heard)) == len(b"".join(said)))
        assert b"".join(wire.heard) == b"".join(said)

    play(story)


def test_batches_grow_while_the_disk_is_slow(play: Play) -> None:
    async def story(s: Scene) -> None:
        connection, wire = s.connect()
        s.store.hold()
        s.submit(connection, b"0")
        await s.writing()
        for number in range(1, 101):
            s.submit(connection, b"%d" % number)
            await asyncio.sleep(0)
        s.store.let_all()
        await s.until(lambda: wire.heard != [] and b"".join(wire.heard).endswith(b"100"))
        assert [len(batch.saved_jobs) for batch in s.store.tried] == [1, 100]

    play(story)


def test_nothing_waits_when_everything_is_durable(play: Play) -> None:
    """A duplicate of a job that is on the disk has nothing to wait for."""

    async def story(s: Scene) -> None:
        connection, wire = s.connect()
        s.submit(connection, b"one", unique=b"key")
        await s.until(lambda: wire.heard == [b"one"])
        s.store.hold()
        s.submit(connection, b"twin", unique=b"key")
        await s.ticks()
        assert wire.heard == [b"one", b"twin"]

    play(story)


def test_duplicate_waits_for_the_job_that_it_joins(play: Play) -> None:
    async def story(s: Scene) -> None:
        first, first_wire = s.connect()
        second, second_wire = s.connect()
        s.store.hold()
        s.submit(first, b"one", unique=b"key")
        await s.writing()
        s.submit(second, b"twin", unique=b"key")
        await s.ticks()
        assert (first_wire.heard, second_wire.heard) == ([], [])
        s.store.let_all()
        await s.until(lambda: (first_wire.heard, second_wire.heard) == ([b"one"], [b"twin"]))

    play(story)


def test_connection_that_closes_says_its_acknowledgement_first(play: Play) -> None:
    async def story(s: Scene) -> None:
        connection, wire = s.connect()
        s.store.hold()
        s.submit(connection, b"one")
        await s.writing()
        connection.close()
        await s.ticks()
        assert not wire.closed
        s.store.let_all()
        await s.until(lambda: wire.closed)
        assert wire.heard == [b"one"]

    play(story)


def test_connection_that_is_gone_is_not_missed(play: Play, path: Path) -> None:
    async def story(s: Scene) -> None:
        gone, _ = s.connect()
        stays, wire = s.connect()
        s.store.hold()
        s.submit(gone, b"one")
        s.submit(stays, b"two")
        await s.writing()
        gone.connection_lost(None)
        s.store.let_all()
        await s.until(lambda: wire.heard == [b"two"])

    play(story)
    assert len(kept(path)) == 2


def test_completion_is_written_though_nothing_is_said(play: Play) -> None:
    """A worker reports and falls silent: there is no answer to send, and no other reason for a beat."""

    async def story(s: Scene) -> None:
        connection, wire = s.connect()
        job = s.submit(connection, b"one")
        await s.until(lambda: wire.heard == [b"one"])
        await s.idle()
        claimed = s.engine.claim(s.worker)
        assert claimed is job
        s.engine.complete(s.worker, job, b"result")
        await s.until(lambda: records(s.store) == [job.id])
        assert ids(s.store) == []

    play(story)


def test_jobs_that_end_wait_for_each_other_and_for_no_submission(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "_GATHER_SECONDS", 3600.0)

    async def story(s: Scene) -> None:
        connection, wire = s.connect()
        jobs = [s.submit(connection, b"%d" % number) for number in range(2)]
        await s.until(lambda: b"".join(wire.heard) == b"01")
        commits = s.committer.commits
        for job in jobs:
            assert s.engine.claim(s.worker) is job
            s.engine.complete(s.worker, job, b"result")
            await s.ticks()
        assert (s.committer.commits, s.committer.changes) == (commits, 2)
        s.submit(connection, b"2")
        await s.until(lambda: wire.heard[-1] == b"2")
        assert (s.committer.commits, sorted(records(s.store))) == (commits + 1, [job.id for job in jobs])

    play(story)


def test_so_many_jobs_that_end_wait_for_nothing(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "_GATHER_SECONDS", 3600.0)
    monkeypatch.setattr(subject, "_GATHER_MOST", 1)

    async def story(s: Scene) -> None:
        connection, wire = s.connect()
        job = s.submit(connection, b"one")
        await s.until(lambda: wire.heard == [b"one"])
        s.engine.claim(s.worker)
        s.engine.complete(s.worker, job, b"result")
        await s.until(lambda: records(s.store) == [job.id])

    play(story)


def test_lost_attempt_is_written_though_nothing_is_said(play: Play) -> None:
    async def story(s: Scene) -> None:
        connection, wire = s.connect()
        job = s.submit(connection, b"one")
        await s.until(lambda: wire.heard == [b"one"])
        await s.idle()
        s.engine.claim(s.worker)
        s.engine.remove_worker(s.worker)
        await s.until(lambda: [found.attempts for found in s.store.jobs(LiveJob)] == [1])
        assert job.state is JobState.QUEUED

    play(story)


def test_value_of_a_door_is_written(play: Play) -> None:
    async def story(s: Scene) -> None:
        s.committer.save_value("name", b"value")
        await s.until(lambda: s.store.saved_values() == {"name": b"value"})

    play(story)


def test_record_is_pending_until_it_is_in_the_store(play: Play) -> None:
    async def story(s: Scene) -> None:
        connection, wire = s.connect()
        job = s.submit(connection, b"one")
        await s.until(lambda: wire.heard == [b"one"])
        s.store.hold()
        s.engine.claim(s.worker)
        s.engine.complete(s.worker, job, b"result")
        found = s.committer.uncommitted.records.get(job.handle)
        assert found is not None
        assert (found.id, found.result) == (job.id, b"result")
        s.store.let_all()
        await s.until(lambda: s.committer.uncommitted.records.get(job.handle) is None)
        assert records(s.store) == [job.id]

    play(story)


def test_ids_are_promised_at_the_start(path: Path) -> None:
    async def story() -> None:
        async with scene(path) as s:
            with_promise = s.store._meta("next_id", 0)
            assert with_promise == s.engine.next_id + IDS_RESERVED

    asyncio.run(story())


def test_ids_are_promised_before_they_are_used_up(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "IDS_RESERVED", 10)

    async def story(s: Scene) -> None:
        connection, _ = s.connect()
        for number in range(100):
            s.submit(connection, b"%d" % number)
            await s.idle()
            assert s.store._meta("next_id", 0) > s.engine.next_id

    play(story)


def test_foreground_jobs_use_up_ids_as_well(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "IDS_RESERVED", 10)

    async def story(s: Scene) -> None:
        connection, _ = s.connect()
        watcher = Watcher()
        for _ in range(50):
            s.engine.submit(b"f", watcher=watcher)
            connection.write(b"created")
            await s.idle()
            assert s.store._meta("next_id", 0) > s.engine.next_id

    play(story)


def test_promise_that_failed_is_made_again(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "IDS_RESERVED", 10)
    monkeypatch.setattr(subject, "_RETRY_SECONDS", 0.01)

    async def story(s: Scene) -> None:
        connection, wire = s.connect()
        s.store.failures = failures(2)
        for number in range(6):
            s.submit(connection, b"%d" % number)
        await s.until(lambda: bool(wire.heard))
        connection.write(b"anything")
        await s.until(lambda: s.store._meta("next_id", 0) > s.engine.next_id)

    play(story)


def test_stop_writes_what_is_left(path: Path) -> None:
    async def story() -> None:
        async with scene(path) as s:
            connection, _ = s.connect()
            s.store.hold()
            s.submit(connection, b"one")
            await s.writing()
            s.submit(connection, b"two")
            s.submit(connection, b"three")
            asyncio.get_running_loop().call_later(0.01, s.store.let_all)

    asyncio.run(story())
    assert len(kept(path)) == 3


def test_stop_tries_once_more_after_a_failure(path: Path) -> None:
    """The disk may have recovered a moment ago; a completion that is lost is a job that runs twice."""

    async def story() -> None:
        async with scene(path) as s:
            connection, wire = s.connect()
            job = s.submit(connection, b"one")
            await s.until(lambda: wire.heard == [b"one"])
            s.engine.claim(s.worker)
            s.store.failures = failures(1)
            s.engine.complete(s.worker, job, b"result")
            await s.idle()
            assert records(s.store) == []

    asyncio.run(story())
    assert kept(path) == []


def test_stop_on_a_failing_disk_ends_and_says_so(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with scene(path) as s:
            connection, wire = s.connect()
            job = s.submit(connection, b"one")
            await s.until(lambda: wire.heard == [b"one"])
            s.engine.claim(s.worker)
            s.store.failures = failures(100)
            s.engine.complete(s.worker, job, b"result")
            await s.idle()

    with caplog.at_level(logging.ERROR, "geartrain.store"):
        asyncio.run(asyncio.wait_for(story(), PATIENCE))
    last = caplog.records[-1]
    assert last.getMessage() == "changes lost: the last commit failed"
    assert last.__dict__["fields"] == {"changes": 1}
    assert len(kept(path)) == 1, "it will run again"


def test_start_on_a_failing_disk_is_refused(path: Path) -> None:
    async def story() -> None:
        made = Scene(GatedStore(path))
        made.store.failures = failures(1)
        try:
            with pytest.raises(StoreError):
                made.committer.start(made.tick_loop)
        finally:
            made.store.close(1)

    asyncio.run(story())


def test_records_are_pruned_after_many_were_written(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "_PRUNE_EVERY", 10)

    async def story(s: Scene) -> None:
        connection, _ = s.connect()
        for number in range(25):
            job = s.submit(connection, b"%d" % number)
            s.engine.claim(s.worker)
            s.engine.complete(s.worker, job, b"")
            await s.idle()
        await s.until(lambda: len(s.store.pruned) == 2)
        assert all(keep.done.most == 1000 for keep in s.store.pruned)

    play(story)


def test_records_are_pruned_now_and_then(play: Play, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.setattr(subject, "_PRUNE_SECONDS", 0.01)
    play(lambda s: s.until(lambda: len(s.store.pruned) >= 3))


def test_prune_that_fails_is_reported_and_does_no_harm(
    play: Play, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(subject, "_PRUNE_SECONDS", 0.01)

    def prune(self: object, before: float, keep: int) -> int:
        raise StoreError("no")

    monkeypatch.setattr(GatedStore, "prune", prune)

    async def story(s: Scene) -> None:
        connection, wire = s.connect()
        await s.until(lambda: bool(caplog.records))
        s.submit(connection, b"one")
        await s.until(lambda: wire.heard == [b"one"])

    play(story)
    assert caplog.records[0].getMessage() == "pruning records failed"
