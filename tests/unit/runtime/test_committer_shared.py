"""The committer of a server that shares its store: keys of others, lost leases, and a store that went back in time."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from geartrain.doors.connection import Connection
from geartrain.engine.job import LiveJob
from geartrain.errors import StoreError
from geartrain.model import JobState
from geartrain.runtime.submitted_handle import SubmittedHandle
from geartrain.store.contract import CommitOutcome, Twin
from geartrain.store.shared import FencedError, WentBackError
from tests.contract.stores.factories import ids
from tests.unit.runtime.committer_scene import Scene, Story, play

TWIN = Twin(77, b"H:other:77")

Play = Callable[[Story], None]


@pytest.fixture(name="play")
def _play(tmp_path: Path) -> Play:
    return partial(play, tmp_path / "jobs.db")


def share(scene: Scene) -> None:
    """Make the server one of several."""
    scene.engine.reserves_keys = True
    scene.committer.on_renewed = lambda: None


def submit(scene: Scene, connection: Connection, unique: bytes) -> LiveJob:
    """Submit a job with a key; its handle is acknowledged."""
    job = scene.engine.submit(b"f", unique, b"payload", background=True)
    connection.acknowledge_job(job, lambda handle: handle + b";", b"no;")
    return job


def test_a_job_with_a_key_runs_when_the_store_has_accepted_it(play: Play) -> None:
    async def story(s: Scene) -> None:
        share(s)
        connection, wire = s.connect()
        s.store.hold()
        job = submit(s, connection, b"key")
        await s.writing()
        assert (job.state, s.engine.claim(s.worker)) == (JobState.RESERVING, None)
        s.store.let_all()
        await s.until(lambda: wire.heard == [job.handle + b";"])
        assert s.engine.claim(s.worker) is job

    play(story)


def test_a_job_that_gives_way_while_it_is_written_does_not_stay_in_the_store(play: Play, tmp_path: Path) -> None:
    """As while all jobs are written again, and one with the key is taken over from another server."""

    async def story(s: Scene) -> None:
        share(s)
        connection, wire = s.connect()
        s.store.hold()
        job = submit(s, connection, b"key")
        await s.writing()
        taken_over = LiveJob(TWIN.id, TWIN.handle, b"f", b"key", b"", 1, True, 0.0, 0.0, "gearman")
        s.engine.restore(taken_over)
        s.store.let_all()
        await s.until(lambda: wire.heard == [TWIN.handle + b";"])
        await s.tick_loop.durable()
        assert job.id not in ids(s.store)
        assert s.engine.claim(s.worker) is taken_over

    play(story)


def test_submitters_get_the_handle_of_the_job_that_has_the_key(play: Play) -> None:
    async def story(s: Scene) -> None:
        share(s)
        connection, wire = s.connect()
        other, other_wire = s.connect()
        s.store.hold()
        job = submit(s, connection, b"key")
        assert submit(s, other, b"key") is job
        connection.write(b"later")
        s.store.outcomes = [CommitOutcome({job.id: TWIN})]
        s.store.let_all()
        await s.until(lambda: bool(wire.heard and other_wire.heard))
        assert (wire.heard, other_wire.heard) == ([TWIN.handle + b";later"], [TWIN.handle + b";"])
        assert (len(s.engine.jobs), s.engine.claim(s.worker)) == (0, None)

    play(story)


def test_changes_of_a_job_that_was_ceded_are_not_written(play: Play) -> None:
    async def story(s: Scene) -> None:
        share(s)
        connection, _ = s.connect()
        s.store.hold()
        job = submit(s, connection, b"key")
        await s.writing()
        s.engine.submit(b"f", b"key", background=True, keep_for=60.0)  # while the first one is being written
        s.store.outcomes = [CommitOutcome({job.id: TWIN})]
        s.store.let_all()
        await s.idle()
        assert not any(batch.changed for batch in s.store.tried)

    play(story)


def test_a_new_range_of_ids_is_used(play: Play) -> None:
    async def story(s: Scene) -> None:
        share(s)
        connection, wire = s.connect()
        s.store.outcomes = [CommitOutcome({}, first_id=10**15)]
        s.submit(connection, b"one")
        await s.until(lambda: wire.heard == [b"one"])
        assert s.submit(connection, b"two").id == 10**15

    play(story)


def test_a_server_that_was_fenced_answers_nobody_and_writes_nothing(play: Play) -> None:
    async def story(s: Scene) -> None:
        share(s)
        fenced: list[bool] = []
        s.committer.on_fenced = lambda: fenced.append(True)
        connection, wire = s.connect()
        s.store.failures = [FencedError("fenced")]
        s.submit(connection, b"one")
        await s.until(lambda: bool(fenced))
        tried = len(s.store.tried)
        s.submit(connection, b"two")
        await s.ticks()
        assert (wire.heard, len(s.store.tried)) == ([], tried)

    play(story)


@pytest.mark.parametrize("has_lost", [False, True])
def test_a_fenced_server_keeps_its_jobs_only_if_the_store_has_lost_some(play: Play, has_lost: bool) -> None:
    async def story(s: Scene) -> None:
        share(s)
        fenced = []
        s.committer.on_fenced = lambda: fenced.append(True)
        connection, wire = s.connect()
        acknowledged = s.submit(connection, b"one ")
        await s.until(lambda: wire.heard == [b"one "])
        s.store.failures = [FencedError("fenced", has_lost)]
        s.submit(connection, b"two ")
        await s.until(lambda: fenced == [True])
        assert [row[0] for row in s.committer.unwritten] == ([acknowledged.id] if has_lost else [])

    play(story)


def test_all_jobs_are_written_again_to_a_store_that_went_back(play: Play) -> None:
    async def story(s: Scene) -> None:
        share(s)
        connection, wire = s.connect()
        first = s.submit(connection, b"one ")
        await s.until(lambda: wire.heard == [b"one "])
        s.store.failures = [WentBackError("went back")]
        s.store.hold()
        second = s.submit(connection, b"two ")
        await s.writing()
        third = s.submit(connection, b"three")  # gathers meanwhile
        s.store.let_all()
        await s.until(lambda: b"".join(wire.heard) == b"one two three")
        whole = next(batch for batch in s.store.tried if batch.is_whole)
        assert {row[0] for row in whole.changed} == {first.id, second.id, third.id}
        assert not whole.accepted
        assert not s.store.tried[-1].accepted, "the store has its rows already"
        assert ids(s.store) == [first.id, second.id, third.id]

    play(story)


def test_job_whose_key_is_being_asked_for_is_not_written_with_all_others(play: Play) -> None:
    """It would find its own row when its key is reserved again, and give way to itself."""

    async def story(s: Scene) -> None:
        share(s)
        asked: list[LiveJob] = []

        def ask(job: LiveJob, twin: Twin) -> bool:
            asked.append(job)
            return True

        s.committer.on_twin = ask
        connection, wire = s.connect()
        other, other_wire = s.connect()
        s.store.hold()
        job = submit(s, connection, b"key")
        s.store.outcomes = [CommitOutcome({job.id: TWIN})]
        s.store.let_all()
        await s.until(lambda: asked == [job])
        s.store.failures = [WentBackError("went back")]
        second = submit(s, other, b"free")
        await s.until(lambda: other_wire.heard == [second.handle + b";"])
        whole = next(batch for batch in s.store.tried if batch.is_whole)
        assert [row[0] for row in whole.changed] == [second.id]
        s.engine.reserve_again(job)
        await s.until(lambda: wire.heard == [job.handle + b";"])
        assert [row[0] for row in s.store.tried[-1].accepted] == [job.id]
        assert job.state is JobState.QUEUED

    play(story)


def test_a_server_without_changes_commits_beats(play: Play) -> None:
    async def story(s: Scene) -> None:
        share(s)
        s.committer.beat_seconds = 0.01
        s.committer.known_node = 7
        s.committer._beat()
        await s.until(lambda: len(s.store.tried) >= 3)
        assert all(not batch and batch.known_node == 7 for batch in s.store.tried)

    play(story)


def test_values_are_older_than_a_version_unless_this_server_saved_them_later(play: Play) -> None:
    async def story(s: Scene) -> None:
        share(s)
        s.store.outcomes = [CommitOutcome({}, version=5)]
        s.committer.save_value("order.f", b"paused")
        assert not s.committer.is_older("order.f", 99), "it is not saved yet"
        await s.idle()
        assert [s.committer.is_older("order.f", version) for version in (4, 5)] == [False, True]
        assert s.committer.is_older("order.g", 0)

    play(story)


@pytest.mark.parametrize("fails", [False, True])
def test_acknowledgement_waits_while_the_home_of_the_key_is_asked(play: Play, fails: bool) -> None:
    """The store is asked again, because the other job has just ended; that commit may fail."""

    async def story(s: Scene) -> None:
        share(s)
        asked: list[LiveJob] = []

        def ask(job: LiveJob, twin: Twin) -> bool:
            asked.append(job)
            return True

        s.committer.on_twin = ask
        connection, wire = s.connect()
        other, other_wire = s.connect()
        s.store.hold()
        job = submit(s, connection, b"key")
        s.store.outcomes = [CommitOutcome({job.id: TWIN})]
        s.store.let_all()
        await s.until(lambda: asked == [job])
        await s.tick_loop.durable()
        assert submit(s, other, b"key") is job
        connection.write(b"later")
        s.submit(other, b"another ")
        await s.tick_loop.durable()
        assert (wire.heard, other_wire.heard) == ([], [])
        s.store.failures = [StoreError("the disk is full")] if fails else []
        s.engine.reserve_again(job)
        await s.until(lambda: bool(wire.heard and other_wire.heard))
        word = b"no;" if fails else job.handle + b";"
        assert (wire.heard, other_wire.heard) == ([word + b"later"], [word + b"another "])

    play(story)


def test_job_that_is_cancelled_before_its_key_is_known_is_acknowledged(play: Play) -> None:
    async def story(s: Scene) -> None:
        share(s)
        connection, wire = s.connect()
        s.store.hold()
        job = submit(s, connection, b"key")
        submitted = SubmittedHandle(s.engine, job)
        await s.writing()
        s.engine.cancel(job)
        s.store.let_all()
        await s.until(lambda: wire.heard == [job.handle + b";"])
        await submitted.settled()
        assert submitted.handle == job.handle

    play(story)
