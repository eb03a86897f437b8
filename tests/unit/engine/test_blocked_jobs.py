"""Jobs that wait for other jobs."""

import pytest

from geartrain.engine.engine import Engine, PollingWorker
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import BLOCKED, CANCELLED, DEAD, QUEUED, RESERVING, SCHEDULED
from geartrain.engine.policy import Policy
from geartrain.errors import ParentError
from geartrain.model import Duplicate, FailureAction, JobState, pack_parents
from tests.unit.engine.recording import RecordingJournal, RecordingWatcher

NAME = b"f"


def submit(engine: Engine, *parents: LiveJob, runs_anyway: bool = False, **options: object) -> LiveJob:
    after = pack_parents([parent.id for parent in parents], runs_anyway)
    return engine.submit(NAME, background=True, after=after, **options)  # type: ignore[arg-type]


def worker(engine: Engine) -> PollingWorker:
    new = PollingWorker("test")
    engine.register(new, NAME)
    return new


def run(engine: Engine, taker: PollingWorker, result: bytes = b"") -> LiveJob:
    job = engine.claim(taker)
    assert job is not None
    engine.complete(taker, job, result)
    return job


@pytest.fixture
def engine() -> Engine:
    engine = Engine(journal=RecordingJournal())
    engine.now = 10.0
    return engine


def test_a_job_runs_when_all_that_it_waits_for_is_done(engine: Engine) -> None:
    parents = [submit(engine), submit(engine)]
    child = submit(engine, *parents)
    taker = worker(engine)
    assert child.state is BLOCKED
    assert [run(engine, taker), run(engine, taker)] == parents
    assert child.state is QUEUED
    assert run(engine, taker) is child


def test_a_blocked_job_is_counted_apart_from_queued_ones(engine: Engine) -> None:
    child = submit(engine, submit(engine))
    function = engine.functions[NAME]
    assert (engine.queued, engine.blocked) == (1, 1)
    assert (function.queued, function.blocked, function.total) == (1, 1, 2)
    engine.cancel(child)
    assert (engine.blocked, function.blocked, function.total) == (0, 0, 1)


def test_a_job_that_waits_is_scheduled_if_its_time_has_not_come(engine: Engine) -> None:
    engine.now = 100.0
    parent = submit(engine)
    child = submit(engine, parent, run_at=200.0)
    run(engine, worker(engine))
    assert child.state is SCHEDULED
    engine.tick(200.0)
    assert child.state is QUEUED


def test_the_time_in_the_queue_begins_when_the_job_can_run(engine: Engine) -> None:
    engine.now = 100.0
    child = submit(engine, submit(engine))
    engine.now = 150.0
    run(engine, worker(engine))
    assert child.run_at == 150.0


@pytest.mark.parametrize("runs_anyway", [False, True])
def test_a_failed_parent_cancels_what_waits_for_it_unless_that_runs_anyway(engine: Engine, runs_anyway: bool) -> None:
    parent = submit(engine)
    child = submit(engine, parent, runs_anyway=runs_anyway)
    grandchild = submit(engine, child)
    taker = worker(engine)
    assert engine.claim(taker) is parent
    engine.fail(taker, parent)
    if runs_anyway:
        assert (child.state, grandchild.state) == (QUEUED, BLOCKED)
    else:
        assert (child.state, grandchild.state) == (CANCELLED, CANCELLED)
        assert child.reason == f"job {parent.handle.decode()}, which it waited for, ended as failed"
        assert engine.blocked == 0


def test_watchers_of_a_cancelled_job_hear_of_it(engine: Engine) -> None:
    parent = submit(engine)
    watcher = RecordingWatcher()
    child = submit(engine, parent, watcher=watcher)
    engine.cancel(parent)
    assert [(heard.what, heard.handle) for heard in watcher.heard] == [("fail", child.handle)]


def test_a_long_chain_is_cancelled_to_its_end(engine: Engine) -> None:
    jobs = [submit(engine)]
    for _ in range(5000):
        jobs.append(submit(engine, jobs[-1]))
    engine.cancel(jobs[0])
    assert {job.state for job in jobs} == {CANCELLED}
    assert len(engine.jobs) == 0


def test_a_parent_that_expires_cancels_what_waits_for_it(engine: Engine) -> None:
    engine.now = 100.0
    parent = submit(engine, expires_at=110.0)
    child = submit(engine, parent)
    engine.tick(120.0)
    assert child.state is CANCELLED


def test_a_blocked_job_can_expire(engine: Engine) -> None:
    engine.now = 100.0
    child = submit(engine, submit(engine), expires_at=110.0)
    engine.tick(120.0)
    assert child.state is JobState.EXPIRED
    assert engine.blocked == 0


def dead_parent(engine: Engine) -> LiveJob:
    parent = submit(engine)
    taker = worker(engine)
    assert engine.claim(taker) is parent
    engine.fail(taker, parent)
    assert parent.state is DEAD
    engine.remove_worker(taker)
    return parent


@pytest.fixture
def burying() -> Engine:
    """An engine in which jobs that fail are dead."""
    return Engine(Policy(failures=FailureAction.DEAD), journal=RecordingJournal())


def test_a_dead_parent_is_waited_for_until_it_is_retried(burying: Engine) -> None:
    parent = dead_parent(burying)
    child = submit(burying, parent)
    burying.retry(parent)
    assert child.state is BLOCKED
    run(burying, worker(burying))
    assert child.state is QUEUED


def test_a_job_waits_on_when_its_parent_dies(burying: Engine) -> None:
    parent = submit(burying)
    child = submit(burying, parent)
    taker = worker(burying)
    burying.claim(taker)
    burying.fail(taker, parent)
    assert (parent.state, child.state) == (DEAD, BLOCKED)
    burying.delete(parent)
    assert child.state is CANCELLED


def test_parents_must_be_there(engine: Engine) -> None:
    with pytest.raises(ParentError, match="no unfinished job with the id 99"):
        engine.submit(NAME, background=True, after=pack_parents([99], runs_anyway=False))
    assert len(engine.jobs) == 0


def test_parents_must_be_background_jobs(engine: Engine) -> None:
    parent = engine.submit(NAME, watcher=RecordingWatcher())
    with pytest.raises(ParentError, match="foreground"):
        submit(engine, parent)


def test_a_blocked_job_that_is_replaced_waits_on(engine: Engine) -> None:
    parent = submit(engine)
    old = submit(engine, parent, unique=b"key")
    new = submit(engine, unique=b"key", payload=b"new", duplicate=Duplicate.REPLACE)
    assert new is not old
    assert (new.id, new.state) == (old.id, BLOCKED)
    taker = worker(engine)
    run(engine, taker)
    assert run(engine, taker).payload == b"new"


def test_a_parent_that_is_replaced_is_waited_for(engine: Engine) -> None:
    parent = submit(engine, unique=b"key")
    child = submit(engine, parent)
    submit(engine, unique=b"key", payload=b"new", duplicate=Duplicate.REPLACE)
    assert child.state is BLOCKED
    run(engine, worker(engine))
    assert child.state is QUEUED


def test_a_blocked_job_waits_for_its_key_first(engine: Engine) -> None:
    engine.reserves_keys = True
    parent = engine.submit(NAME, background=True)
    child = submit(engine, parent, unique=b"key")
    assert child.state is RESERVING
    engine.confirm(child)
    assert child.state is BLOCKED
    run(engine, worker(engine))
    assert child.state is QUEUED


def test_a_job_whose_parents_end_before_its_key_is_known_is_queued_with_it(engine: Engine) -> None:
    engine.reserves_keys = True
    parent = engine.submit(NAME, background=True)
    child = submit(engine, parent, unique=b"key")
    run(engine, worker(engine))
    assert child.state is RESERVING
    engine.confirm(child)
    assert child.state is QUEUED


def test_a_parent_that_another_server_has_is_not_waited_for_in_vain(engine: Engine) -> None:
    engine.reserves_keys = True
    parent = submit(engine, unique=b"key")
    child = submit(engine, parent)
    engine.withdraw(parent, b"H:elsewhere:1")
    assert child.state is CANCELLED


def test_a_parent_that_could_not_be_stored_and_is_forgotten_is_not_waited_for_in_vain() -> None:
    engine = Engine(Policy(dead_foreground_limit=0, max_attempts=1), journal=RecordingJournal())
    parent = submit(engine)
    child = submit(engine, parent)
    taker = worker(engine)
    assert engine.claim(taker) is parent
    engine.watch(parent, RecordingWatcher())
    engine.retract(parent)
    engine.fail(taker, parent, retry=True)
    assert (parent.state, child.state) == (DEAD, CANCELLED)


def test_a_job_that_is_retried_waits_for_nothing_after_a_restart(burying: Engine) -> None:
    parent = submit(burying)
    child = submit(burying, parent, runs_anyway=True)
    burying.cancel(parent)
    taker = worker(burying)
    assert burying.claim(taker) is child
    burying.fail(taker, child)
    burying.retry(child)
    assert (child.state, child.after) == (QUEUED, b"")


class TestRestored:
    """Jobs come in any order, and are settled when all are there."""

    def restored(self, id: int, *parents: int, runs_anyway: bool = False) -> LiveJob:
        job = LiveJob(id, b"H:localhost:%d" % id, NAME, b"", b"", 1, True, 5.0, 5.0, "gearman")
        job.after = pack_parents(parents, runs_anyway)
        return job

    def test_a_job_waits_for_the_parents_that_are_there(self, engine: Engine) -> None:
        child = self.restored(3, 1, 2)
        engine.restore(child)
        engine.restore(self.restored(2))
        assert child.state is BLOCKED
        engine.settle()
        assert child.state is BLOCKED
        run(engine, worker(engine))
        assert child.state is QUEUED

    def test_a_job_whose_parents_are_gone_is_queued(self, engine: Engine) -> None:
        child = self.restored(3, 1, 2)
        engine.restore(child)
        engine.settle()
        assert (child.state, engine.blocked) == (QUEUED, 0)

    def test_a_job_whose_parent_is_at_another_server_is_asked_about_again(self, engine: Engine) -> None:
        child = self.restored(3, 1, 2)
        engine.restore(child)
        engine.restore(self.restored(2))
        assert engine.distant_parents() == [1]
        engine.settle({1: JobState.QUEUED})
        run(engine, worker(engine))
        assert child.state is BLOCKED
        engine.settle({1: JobState.DONE})
        assert child.state is QUEUED

    @pytest.mark.parametrize(("runs_anyway", "state"), [(False, CANCELLED), (True, QUEUED)])
    def test_a_parent_may_have_failed_at_another_server(
        self, engine: Engine, runs_anyway: bool, state: JobState
    ) -> None:
        child = self.restored(3, 1, runs_anyway=runs_anyway)
        engine.restore(child)
        engine.settle({1: JobState.FAILED})
        assert child.state is state

    def test_a_job_that_is_cancelled_before_is_not_settled(self, engine: Engine) -> None:
        child = self.restored(3, 1)
        engine.restore(child)
        engine.cancel(child)
        engine.settle()
        assert (child.state, engine.blocked) == (CANCELLED, 0)

    def test_a_job_that_is_replaced_before_is_settled(self, engine: Engine) -> None:
        child = self.restored(3, 1)
        child.unique = b"key"
        engine.restore(child)
        new = submit(engine, unique=b"key", duplicate=Duplicate.REPLACE)
        engine.settle()
        assert new.state is QUEUED
