"""Broadcasts: every idle worker gets a copy; the first completion ends the job, the last failure fails it."""

import pytest

from geartrain.engine.engine import Engine
from geartrain.engine.job import LiveJob
from geartrain.model import Expiry, FailureAction, JobState
from tests.unit.engine.recording import (
    NOW,
    RecordingJournal,
    RecordingWatcher,
    RecordingWorker,
    claim,
    hire,
)


def crowd(engine: Engine, count: int, timeout: float = 0.0) -> list[RecordingWorker]:
    """So many sleeping workers of the broadcast function b."""
    return [hire(engine, b"b", timeout=timeout, broadcast=True, asleep=True) for _ in range(count)]


def spread(engine: Engine, workers: list[RecordingWorker], watcher: RecordingWatcher) -> LiveJob:
    """Submit a job and let every worker claim its copy."""
    job = engine.submit(b"b", b"key", b"news", background=True, watcher=watcher)
    for worker in workers:
        assert claim(engine, worker) is job
    return job


def test_the_first_claim_wakes_every_idle_worker(engine: Engine) -> None:
    one, two, three = crowd(engine, 3)
    busy = hire(engine, b"b", broadcast=True)
    job = engine.submit(b"b", background=True)
    assert (one.woken, two.woken, three.woken) == (1, 0, 0)
    assert claim(engine, one) is job
    assert (one.woken, two.woken, three.woken, busy.woken) == (1, 1, 1, 0)
    assert claim(engine, two) is job
    assert claim(engine, three) is job
    assert engine.claim(busy) is None, "who did not wait gets no copy"


def test_one_job_with_many_copies_counts_once(engine: Engine, watcher: RecordingWatcher) -> None:
    job = spread(engine, crowd(engine, 3), watcher)
    assert (engine.running, engine.functions[b"b"].running, job.attempts) == (1, 1, 1)
    assert job.state is JobState.RUNNING
    assert job.owner is None


def test_idle_workers_of_other_crews_get_a_copy(engine: Engine) -> None:
    one = hire(engine, b"b", broadcast=True, asleep=True)
    other = hire(engine, b"b", b"x", broadcast=True, asleep=True)
    stranger = hire(engine, b"x", broadcast=True, asleep=True)
    job = engine.submit(b"b", background=True)
    assert claim(engine, one) is job
    assert claim(engine, other) is job
    assert stranger.woken == 0


def test_the_first_completion_completes_the_job(
    engine: Engine, watcher: RecordingWatcher, journal: RecordingJournal
) -> None:
    one, two, three = crowd(engine, 3)
    job = spread(engine, [one, two, three], watcher)
    engine.complete(two, job, b"yes")
    assert watcher.words == [("complete", b"yes")]
    assert job.state is JobState.DONE
    assert [worker.running.jobs() for worker in (one, two, three)] == [[], [], []]
    assert one.is_forgiven(job.handle)
    assert three.is_forgiven(job.handle)
    assert not two.is_forgiven(job.handle), "who answered has nothing to be excused for"
    assert (engine.running, engine.functions[b"b"].total) == (0, 0)
    assert journal.names == ["accepted", "finished"]
    assert engine.find(job.handle) is None
    assert not engine.unique_jobs


@pytest.mark.parametrize("end", ["complete", "fail", "raise_exception"])
def test_the_journal_gets_the_worker_that_ended_the_broadcast(
    engine: Engine, watcher: RecordingWatcher, journal: RecordingJournal, end: str
) -> None:
    one, two = crowd(engine, 2)
    job = spread(engine, [one, two], watcher)
    engine.fail(one, job)
    if end == "fail":
        engine.fail(two, job)
    else:
        getattr(engine, end)(two, job, b"words")
    assert journal.names == ["accepted", "finished"]
    assert journal.entries[-1].worker is two


@pytest.mark.parametrize("retry", [False, True])
def test_only_the_last_failure_fails_the_job(engine: Engine, watcher: RecordingWatcher, retry: bool) -> None:
    one, two = crowd(engine, 2)
    job = spread(engine, [one, two], watcher)
    engine.fail(one, job, "no idea", retry=retry)
    assert not one.running
    assert job.state is JobState.RUNNING
    assert watcher.words == []
    engine.fail(two, job, "me neither", retry=retry)
    assert watcher.words == [("fail", "me neither")]
    assert job.state is JobState.FAILED


def test_only_the_last_exception_reaches_the_client(engine: Engine, watcher: RecordingWatcher) -> None:
    one, two = crowd(engine, 2)
    job = spread(engine, [one, two], watcher)
    engine.raise_exception(one, job, b"first")
    assert watcher.words == []
    engine.raise_exception(two, job, b"second")
    assert watcher.words == [("exception", b"second")]
    assert job.state is JobState.FAILED


def test_a_copy_that_is_rescheduled_is_given_up(engine: Engine, watcher: RecordingWatcher) -> None:
    one, two = crowd(engine, 2)
    job = spread(engine, [one, two], watcher)
    engine.reschedule(one, job, NOW + 10)
    assert job.state is JobState.RUNNING
    engine.reschedule(two, job, NOW + 10)
    assert job.state is JobState.FAILED


def test_a_failure_then_a_completion_is_a_completion(engine: Engine, watcher: RecordingWatcher) -> None:
    one, two = crowd(engine, 2)
    job = spread(engine, [one, two], watcher)
    engine.fail(one, job)
    engine.complete(two, job, b"yes")
    assert watcher.words == [("complete", b"yes")]


def test_lost_workers_give_up_their_copies_and_the_last_one_fails_the_job(
    engine: Engine, watcher: RecordingWatcher
) -> None:
    one, two, three = crowd(engine, 3)
    job = engine.submit(b"b", background=True, watcher=watcher)
    assert claim(engine, one) is job
    assert claim(engine, two) is job
    engine.remove_worker(one)
    engine.remove_worker(three)  # woken, but it never came
    assert job.state is JobState.RUNNING
    engine.unregister(two, b"b")
    assert job.state is JobState.FAILED
    assert watcher.words == [("fail", "no worker of the broadcast is left")]
    assert engine.running == 0
    assert engine.broadcasts.copies == {}


def test_progress_and_data_of_every_copy_reach_the_client(engine: Engine, watcher: RecordingWatcher) -> None:
    one, two = crowd(engine, 2)
    job = spread(engine, [one, two], watcher)
    engine.data(job, b"from one")
    engine.data(job, b"from two")
    assert watcher.words == [("data", b"from one"), ("data", b"from two")]


def test_a_worker_that_claims_too_late_gets_nothing(engine: Engine) -> None:
    one, two = crowd(engine, 2)
    job = engine.submit(b"b", background=True)
    assert claim(engine, one) is job
    engine.complete(one, job, b"")
    assert engine.claim(two) is None
    assert not two.running
    assert not two.is_forgiven(job.handle), "it never had it"


def test_a_copy_of_an_earlier_run_is_not_claimed(engine: Engine) -> None:
    engine.policy.failures = FailureAction.DEAD
    one, two = crowd(engine, 2, timeout=5.0)
    job = engine.submit(b"b", background=True)
    assert claim(engine, one) is job
    engine.tick(NOW + 5)
    engine.retry(job)
    assert claim(engine, one) is job
    assert engine.claim(two) is None, "its copy was of the run that has failed"
    assert engine.broadcasts.copies == {job: {one}}


def test_a_worker_that_sleeps_with_a_copy_in_its_inbox_is_woken(engine: Engine) -> None:
    one, two = crowd(engine, 2)
    job = engine.submit(b"b", background=True)
    claim(engine, one)
    engine.sleep(two)
    assert two.woken == 2
    assert not two.idle
    assert claim(engine, two) is job


def test_a_worker_with_a_copy_in_its_inbox_gets_no_second_one(engine: Engine) -> None:
    one, two = crowd(engine, 2)
    first = engine.submit(b"b", background=True)
    claim(engine, one)
    second = engine.submit(b"b", background=True)
    assert claim(engine, one) is second
    assert claim(engine, two) is first
    assert engine.claim(two) is None


def test_without_idle_workers_a_broadcast_has_one_copy(engine: Engine, watcher: RecordingWatcher) -> None:
    lonely = hire(engine, b"b", broadcast=True)
    job = engine.submit(b"b", background=True, watcher=watcher)
    assert claim(engine, lonely) is job
    engine.remove_worker(lonely)
    assert job.state is JobState.FAILED


def test_an_expired_lease_fails_the_broadcast_for_all_workers(engine: Engine, watcher: RecordingWatcher) -> None:
    workers = crowd(engine, 3, timeout=5.0)
    job = spread(engine, workers, watcher)
    engine.tick(NOW + 5)
    assert job.state is JobState.FAILED
    assert watcher.words == [("fail", "broadcast timed out after 5.0 s")]
    assert all(not worker.running for worker in workers)
    assert engine.tick(NOW + 6) == float("inf")


def test_cancelling_a_broadcast_ends_every_copy(engine: Engine, watcher: RecordingWatcher) -> None:
    workers = crowd(engine, 3)
    job = spread(engine, workers, watcher)
    engine.cancel(job)
    assert job.state is JobState.CANCELLED
    assert watcher.words == [("fail", "cancelled")]
    assert all(not worker.running for worker in workers)
    assert all(worker.is_forgiven(job.handle) for worker in workers)


@pytest.mark.parametrize("how", ["cancelled", "expired"])
def test_every_worker_with_a_copy_gets_revoked(engine: Engine, watcher: RecordingWatcher, how: str) -> None:
    one, two, late = crowd(engine, 3, timeout=5.0)
    job = spread(engine, [one, two], watcher)
    if how == "cancelled":
        engine.cancel(job)
    else:
        engine.tick(NOW + 5)
    assert (one.taken, two.taken) == ([job.handle], [job.handle])
    assert late.taken == [], "it never came for its copy"


def test_a_worker_that_stopped_offering_the_function_gets_no_copy(engine: Engine, watcher: RecordingWatcher) -> None:
    one, two = crowd(engine, 2)
    engine.register(two, b"other")
    job = engine.submit(b"b", background=True, watcher=watcher)
    assert claim(engine, one) is job
    engine.unregister(two, b"b")
    assert engine.claim(two) is None
    engine.fail(one, job, "the only copy")
    assert job.state is JobState.FAILED


def test_the_last_registration_decides_whether_a_function_broadcasts(engine: Engine) -> None:
    crowd(engine, 2)
    plain = hire(engine, b"b", on_timeout=Expiry.FAIL)
    job = engine.submit(b"b", background=True)
    assert claim(engine, plain) is job
    assert job.owner is plain


def test_a_claim_does_not_return_a_finished_job(engine: Engine) -> None:
    first, quick = crowd(engine, 2)
    quick.react = lambda: engine.complete(quick, claim(engine, quick), b"quick")
    job = engine.submit(b"b", background=True)
    assert engine.claim(first) is None
    assert job.state is JobState.DONE
    assert first.running.jobs() == quick.running.jobs() == []
    first.react = int
    engine.sleep(quick)
    quick.react = int
    again = engine.submit(b"b", background=True)
    assert claim(engine, quick) is again
