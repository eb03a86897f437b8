"""Workflows: many jobs at once, all or none."""

import pytest

from geartrain.engine.engine import Engine, PollingWorker
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import BLOCKED, CANCELLED, DEAD, DONE, EXPIRED, FAILED, QUEUED
from geartrain.engine.names import WORKFLOW
from geartrain.engine.policy import Policy
from geartrain.engine.worker import Worker
from geartrain.engine.workflow_verbs import KEPT_FOR_RETRY, MemberJob
from geartrain.errors import LimitError, QueueFullError, RequestError
from geartrain.model import FailureAction, JobState, unpack_parents
from tests.unit.engine.recording import RecordingJournal, RecordingWatcher

NAME = b"f"
DIAMOND = [
    MemberJob(NAME, b"top"),
    MemberJob(NAME, b"left", (0,)),
    MemberJob(NAME, b"right", (0,)),
    MemberJob(NAME, b"bottom", (1, 2)),
]


class WholeJobsJournal(RecordingJournal):
    """It tells jobs that are kept whole from others that have ended."""

    def handles(self, what: str) -> list[bytes]:
        return [entry.handle for entry in self.entries if entry.what == what]

    def failed(self, job: LiveJob, result: bytes, worker: Worker | None) -> None:
        self._write("failed", job, result, worker)


@pytest.fixture
def journal() -> WholeJobsJournal:
    return WholeJobsJournal()


@pytest.fixture
def engine(journal: WholeJobsJournal) -> Engine:
    engine = Engine(Policy(max_workflow_jobs=10, max_functions=3), journal=journal)
    engine.now = 10.0
    return engine


def worker(engine: Engine) -> PollingWorker:
    new = PollingWorker("test")
    engine.register(new, NAME)
    return new


def claim(engine: Engine, taker: PollingWorker) -> LiveJob:
    job = engine.claim(taker)
    assert job is not None
    return job


def members(engine: Engine, workflow: LiveJob) -> list[LiveJob]:
    """Those that have not ended."""
    return [job for id in unpack_parents(workflow.after).ids if (job := engine.jobs.get(id)) is not None]


def run_all(engine: Engine) -> list[bytes]:
    taker = worker(engine)
    done = []
    while (job := engine.claim(taker)) is not None:
        done.append(job.payload)
        engine.complete(taker, job, b"")
    return done


def fail_left(engine: Engine) -> tuple[LiveJob, list[LiveJob]]:
    """A diamond whose left side has failed and whose other jobs have ended; the workflow and its members."""
    workflow = engine.submit_workflow(DIAMOND)
    jobs = members(engine, workflow)
    taker = worker(engine)
    engine.complete(taker, claim(engine, taker), b"")
    engine.fail(taker, claim(engine, taker))
    engine.complete(taker, claim(engine, taker), b"")
    return workflow, jobs


def test_members_run_in_their_order(engine: Engine) -> None:
    workflow = engine.submit_workflow(DIAMOND, b"name")
    assert (workflow.state, workflow.function, workflow.payload) == (BLOCKED, WORKFLOW, b"name")
    assert [job.state for job in members(engine, workflow)] == [QUEUED, BLOCKED, BLOCKED, BLOCKED]
    assert [job.id for job in members(engine, workflow)] == [workflow.id + place for place in (1, 2, 3, 4)]
    watcher = RecordingWatcher()
    engine.watch(workflow, watcher)
    assert run_all(engine) == [b"top", b"left", b"right", b"bottom"]
    assert workflow.state is DONE
    assert watcher.words == [("complete", b"name")]
    assert (len(engine.jobs), engine.blocked) == (0, 0)


def test_nodes_may_come_in_any_order(engine: Engine) -> None:
    engine.submit_workflow([MemberJob(NAME, b"last", (1,)), MemberJob(NAME, b"first")])
    assert run_all(engine) == [b"first", b"last"]


def test_a_failed_member_fails_the_workflow_when_all_have_ended(engine: Engine) -> None:
    workflow = engine.submit_workflow(DIAMOND)
    watcher = RecordingWatcher()
    engine.watch(workflow, watcher)
    taker = worker(engine)
    engine.complete(taker, claim(engine, taker), b"")
    engine.fail(taker, claim(engine, taker))
    assert workflow.state is BLOCKED
    engine.complete(taker, claim(engine, taker), b"")
    reason = f"job H:localhost:{workflow.id + 2} ended as failed"
    assert (workflow.state, workflow.reason) == (FAILED, reason)
    assert watcher.words == [("fail", reason)]


def test_a_member_that_runs_anyway_does_not_make_up_for_a_failure(engine: Engine) -> None:
    workflow = engine.submit_workflow([MemberJob(NAME), MemberJob(NAME, b"cleanup", (0,), runs_anyway=True)])
    taker = worker(engine)
    engine.fail(taker, claim(engine, taker))
    assert run_all(engine) == [b"cleanup"]
    assert workflow.state is FAILED


def test_a_bad_end_is_stored_with_the_workflow(engine: Engine, journal: WholeJobsJournal) -> None:
    workflow = engine.submit_workflow(DIAMOND)
    taker = worker(engine)
    journal.entries.clear()
    engine.complete(taker, claim(engine, taker), b"")
    assert workflow.handle not in journal.handles("changed"), "good ends write nothing"
    engine.fail(taker, claim(engine, taker))
    engine.fail(taker, claim(engine, taker))
    assert journal.handles("changed").count(workflow.handle) == 1, "once is enough"


def test_retry_runs_what_failed_and_what_waited_for_it(engine: Engine) -> None:
    workflow, jobs = fail_left(engine)
    assert [job.state for job in jobs] == [DONE, FAILED, DONE, CANCELLED]
    engine.retry_workflow(workflow, [jobs[1], jobs[3]])
    assert [workflow.state, jobs[1].state, jobs[3].state] == [BLOCKED, QUEUED, BLOCKED]
    assert run_all(engine) == [b"left", b"bottom"]
    assert (workflow.state, workflow.reason) == (DONE, "")
    assert (engine.submitted, len(engine.jobs), engine.unsettled) == (5, 0, {})


def test_what_a_retry_needs_is_kept_whole(engine: Engine, journal: WholeJobsJournal) -> None:
    workflow, jobs = fail_left(engine)
    assert journal.handles("failed") == [jobs[1].handle, jobs[3].handle, workflow.handle]
    assert jobs[3].keep_for == KEPT_FOR_RETRY


def test_what_is_to_be_forgotten_is_not_kept(engine: Engine, journal: WholeJobsJournal) -> None:
    engine.policy.failures = FailureAction.FORGET
    workflow, _ = fail_left(engine)
    assert journal.handles("failed") == [workflow.handle]


def test_an_expired_member_can_be_retried(engine: Engine) -> None:
    workflow = engine.submit_workflow([MemberJob(NAME, expires_at=11.0), MemberJob(NAME, b"", (0,))])
    jobs = members(engine, workflow)
    engine.tick(12.0)
    assert [job.state for job in (*jobs, workflow)] == [EXPIRED, CANCELLED, FAILED]
    engine.retry_workflow(workflow, jobs)
    assert len(run_all(engine)) == 2
    assert workflow.state is DONE


def test_a_dead_member_keeps_the_workflow_running(engine: Engine) -> None:
    engine.policy.failures = FailureAction.DEAD
    workflow = engine.submit_workflow([MemberJob(NAME), MemberJob(NAME, b"", (0,))])
    taker = worker(engine)
    dead = claim(engine, taker)
    engine.fail(taker, dead)
    assert (dead.state, workflow.state) == (DEAD, BLOCKED)
    engine.retry(dead)
    run_all(engine)
    assert workflow.state is DONE


def test_a_dead_member_that_is_deleted_fails_the_workflow(engine: Engine) -> None:
    engine.policy.failures = FailureAction.DEAD
    workflow = engine.submit_workflow([MemberJob(NAME), MemberJob(NAME, b"", (0,))])
    taker = worker(engine)
    dead = claim(engine, taker)
    engine.fail(taker, dead)
    engine.delete(dead)
    assert workflow.state is FAILED


def test_cancelling_it_cancels_all_that_have_not_ended(engine: Engine, journal: WholeJobsJournal) -> None:
    workflow = engine.submit_workflow(DIAMOND)
    taker = worker(engine)
    engine.complete(taker, claim(engine, taker), b"")
    jobs = members(engine, workflow)
    later = engine.submit(NAME, background=True, after=b"\0" + jobs[-1].id.to_bytes(8, "big"))
    engine.cancel(workflow)
    assert {job.state for job in (*jobs, workflow)} == {CANCELLED}
    assert later.state is CANCELLED, "it waited for a member, and is none itself"
    assert journal.handles("failed") == [], "nothing is kept for a retry"
    assert (len(engine.jobs), engine.blocked) == (0, 0)


def test_a_job_may_wait_for_a_workflow(engine: Engine) -> None:
    workflow = engine.submit_workflow(DIAMOND)
    engine.submit(NAME, payload=b"later", background=True, after=b"\0" + workflow.id.to_bytes(8, "big"))
    assert run_all(engine)[-1] == b"later"


@pytest.mark.parametrize(
    ("nodes", "complaint"),
    [
        ([], "a workflow has 1 to 10 jobs"),
        ([MemberJob(NAME)] * 11, "a workflow has 1 to 10 jobs"),
        ([MemberJob(NAME), MemberJob(NAME, b"", (2,))], "job 1 waits for job 2; the jobs are 0 to 1"),
        ([MemberJob(NAME), MemberJob(NAME, b"", (-1,))], "job 1 waits for job -1"),
        ([MemberJob(NAME), MemberJob(NAME, b"", (1,))], "job 1 waits for itself"),
        ([MemberJob(NAME), MemberJob(NAME, b"", (2,)), MemberJob(NAME, b"", (1,))], "job 1 waits for itself"),
        ([MemberJob(NAME), MemberJob(NAME, partition=b"p" * 256)], "at most 255 bytes"),
        ([MemberJob(NAME), MemberJob(b"f" * 100_000)], "function"),
        ([MemberJob(NAME), MemberJob(b"")], "job 1 has no function"),
        ([MemberJob(NAME), MemberJob(WORKFLOW)], "job 1 cannot be a job of the server itself"),
    ],
)
def test_what_is_refused_leaves_nothing(engine: Engine, nodes: list[MemberJob], complaint: str) -> None:
    with pytest.raises(RequestError, match=complaint):
        engine.submit_workflow(nodes)
    assert (len(engine.jobs), engine.next_id, engine.functions) == (0, 1, {})


def test_functions_that_would_be_too_many_are_refused(engine: Engine) -> None:
    with pytest.raises(LimitError, match="does not allow 4 more"):
        engine.submit_workflow([MemberJob(b"a"), MemberJob(b"b"), MemberJob(b"c")])
    assert engine.functions == {}


def test_a_queue_without_room_for_all_gets_none(engine: Engine) -> None:
    engine.limit(NAME, 0, 3, 0)
    with pytest.raises(QueueFullError, match="no room for 4 jobs"):
        engine.submit_workflow(DIAMOND)
    assert len(engine.jobs) == 0


@pytest.mark.parametrize("has_failed", [False, True])
def test_a_restored_workflow_goes_on(engine: Engine, has_failed: bool) -> None:
    before = engine.submit_workflow(DIAMOND)
    taker = worker(engine)
    engine.complete(taker, claim(engine, taker), b"")
    if has_failed:
        engine.fail(taker, claim(engine, taker))
    again = Engine(first_id=engine.next_id, journal=RecordingJournal())
    again.now = 11.0
    for old in (before, *members(engine, before)):
        job = LiveJob(old.id, old.handle, old.function, b"", old.payload, 1, True, old.run_at, old.submitted_at, "")
        job.after, job.reason = old.after, old.reason
        again.restore(job)
    again.settle()
    workflow = again.jobs.get(before.id)
    assert workflow is not None
    assert run_all(again) == ([b"right"] if has_failed else [b"left", b"right", b"bottom"])
    assert workflow.state is (FAILED if has_failed else DONE)


def test_a_member_that_failed_at_another_server_fails_the_workflow(engine: Engine) -> None:
    restored = LiveJob(5, b"H:a:5", WORKFLOW, b"", b"", 1, True, 10.0, 10.0, "")
    restored.after = b"\1" + b"".join(id.to_bytes(8, "big") for id in (6, 7))
    engine.restore(restored)
    engine.settle({6: JobState.FAILED, 7: JobState.RUNNING})
    assert (restored.state, restored.reason) == (BLOCKED, "job with the id 6 ended as failed")
    engine.settle({6: JobState.FAILED, 7: JobState.DONE})
    assert restored.state is FAILED
