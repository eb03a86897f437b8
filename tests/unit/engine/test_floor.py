"""What workers can do: offer, claim, sleep and be woken, report, lose jobs, leave."""

import pytest
from tests.unit.engine.recording import (
    NOW,
    RecordingJournal,
    RecordingWatcher,
    RecordingWorker,
    claim,
    hire,
    payloads,
)

from geartrain.engine.engine import Engine
from geartrain.model import Expiry, JobState

GRACE = 0.05  # the policy's default


def woken(*workers: RecordingWorker) -> list[int]:
    return [worker.woken for worker in workers]


# Offering


def test_enrolling_twice_counts_once_and_takes_the_last_word(engine: Engine) -> None:
    worker = hire(engine, b"f")
    engine.enroll(worker, b"f", timeout=9.0, on_timeout=Expiry.REQUEUE)
    assert engine.functions[b"f"].workers == 1
    assert (worker.abilities[b"f"].timeout, worker.abilities[b"f"].on_timeout) == (9.0, Expiry.REQUEUE)


def test_dismissing_what_was_not_offered_is_nothing(engine: Engine) -> None:
    worker = hire(engine, b"f")
    engine.dismiss(worker, b"unknown")
    engine.submit(b"g", background=True)
    engine.dismiss(worker, b"g")
    assert (engine.functions[b"f"].workers, engine.functions[b"g"].workers) == (1, 0)


def test_a_dismissed_function_is_no_longer_handed_out(engine: Engine) -> None:
    worker = hire(engine, b"f", b"g")
    engine.submit(b"f", payload=b"f", background=True)
    engine.submit(b"g", payload=b"g", background=True)
    engine.dismiss(worker, b"f")
    assert engine.functions[b"f"].workers == 0
    assert payloads(engine, worker) == [b"g"]


def test_a_worker_that_enrolls_between_claims_gets_the_new_function(engine: Engine) -> None:
    worker = hire(engine, b"f")
    engine.submit(b"g", background=True)
    assert engine.claim(worker) is None
    engine.enroll(worker, b"g")
    assert claim(engine, worker).function == b"g"


def test_without_functions_there_is_no_work(engine: Engine) -> None:
    worker = hire(engine)
    engine.submit(b"f", background=True)
    assert engine.claim(worker) is None
    engine.sleep(worker)
    assert worker.idle
    assert worker.woken == 0


# Claiming


def test_a_claimed_job_has_one_owner(engine: Engine) -> None:
    one, two = hire(engine, b"f"), hire(engine, b"f")
    job = engine.submit(b"f", background=True)
    engine.now = NOW + 2
    assert claim(engine, one) is job
    assert engine.claim(two) is None
    assert (job.state, job.owner, job.attempts, job.started_at) == (JobState.RUNNING, one, 1, NOW + 2)
    assert (one.running, two.running) == ({job.handle: job}, {})
    assert (engine.running, engine.functions[b"f"].running) == (1, 1)


def test_a_worker_may_run_many_jobs(engine: Engine) -> None:
    worker = hire(engine, b"f")
    jobs = [engine.submit(b"f", background=True) for _ in range(3)]
    assert [claim(engine, worker) for _ in jobs] == jobs
    assert list(worker.running.values()) == jobs
    engine.complete(worker, jobs[1], b"")
    assert list(worker.running.values()) == [jobs[0], jobs[2]]


# Sleeping and waking


def test_sleeping_with_work_wakes_at_once_every_time(engine: Engine) -> None:
    worker = hire(engine, b"f")
    engine.submit(b"f", background=True)
    engine.sleep(worker)
    assert (worker.woken, worker.idle) == (1, False)
    engine.sleep(worker)
    assert (worker.woken, worker.idle) == (2, False)


def test_sleeping_twice_is_sleeping_once(engine: Engine) -> None:
    worker = hire(engine, b"f", asleep=True)
    engine.sleep(worker)
    engine.submit(b"f", background=True)
    assert worker.woken == 1
    assert not worker.idle
    engine.submit(b"f", background=True)
    assert worker.woken == 1, "who is awake is not woken"


def test_one_job_wakes_one_sleeper_the_one_that_slept_longest(engine: Engine) -> None:
    workers = [hire(engine, b"f", asleep=True) for _ in range(4)]
    engine.submit(b"f", background=True)
    assert woken(*workers) == [1, 0, 0, 0]
    engine.submit(b"f", background=True)
    assert woken(*workers) == [1, 1, 0, 0]


@pytest.mark.parametrize(("count", "expected"), [(1, 1), (2, 2), (3, 3), (50, 4)])
def test_one_job_wakes_as_many_as_the_policy_says(engine: Engine, count: int, expected: int) -> None:
    engine.policy.wake_count = count
    workers = [hire(engine, b"f", asleep=True) for _ in range(4)]
    engine.submit(b"f", background=True)
    assert sum(woken(*workers)) == expected


def test_only_those_who_offer_the_function_are_woken(engine: Engine) -> None:
    other, right = hire(engine, b"g", asleep=True), hire(engine, b"f", b"g", asleep=True)
    engine.submit(b"f", background=True)
    assert woken(other, right) == [0, 1]


def test_crews_take_turns_in_being_woken(engine: Engine) -> None:
    crew_one = [hire(engine, b"f", asleep=True) for _ in range(2)]
    crew_two = [hire(engine, b"f", b"g", asleep=True) for _ in range(2)]
    order = []
    for _ in range(4):
        before = woken(*crew_one, *crew_two)
        engine.submit(b"f", background=True)
        order.append([b - a for a, b in zip(before, woken(*crew_one, *crew_two), strict=True)].index(1))
    assert order == [0, 2, 1, 3]


def test_the_next_sleeper_is_woken_if_the_first_does_not_come(engine: Engine) -> None:
    one, two, three = (hire(engine, b"f", asleep=True) for _ in range(3))
    job = engine.submit(b"f", background=True)
    assert engine.tick(NOW) == NOW + GRACE
    assert engine.tick(NOW + GRACE / 2) == NOW + GRACE
    assert woken(one, two, three) == [1, 0, 0]
    assert engine.tick(NOW + GRACE) == NOW + GRACE + GRACE
    assert woken(one, two, three) == [1, 1, 0]
    assert claim(engine, two) is job
    assert engine.tick(NOW + 2 * GRACE) == float("inf")
    assert woken(one, two, three) == [1, 1, 0]


def test_nobody_else_is_woken_for_a_job_that_was_fetched(engine: Engine) -> None:
    one, two = hire(engine, b"f", asleep=True), hire(engine, b"f", asleep=True)
    engine.submit(b"f", background=True)
    claim(engine, one)
    assert engine.tick(NOW + GRACE) == float("inf")
    assert two.woken == 0
    assert two.idle


def test_leftovers_wake_one_sleeper_for_each_job(engine: Engine) -> None:
    engine.pause(b"f")
    workers = [hire(engine, b"f", asleep=True) for _ in range(5)]
    for _ in range(3):
        engine.submit(b"f", background=True)
    assert sum(woken(*workers)) == 0
    engine.resume(b"f")
    assert woken(*workers) == [1, 1, 1, 0, 0]
    engine.tick(NOW + GRACE)
    assert woken(*workers) == [1, 1, 1, 1, 1]


def test_no_timer_runs_when_there_is_nobody_to_wake(engine: Engine) -> None:
    one = hire(engine, b"f", asleep=True)
    engine.submit(b"f", background=True)
    engine.submit(b"f", background=True)
    engine.tick(NOW + GRACE)
    assert engine.tick(NOW + GRACE) == float("inf")
    engine.sleep(one)
    assert one.woken == 2, "who sleeps again finds the work"


def test_a_woken_worker_that_leaves_does_not_strand_the_job(engine: Engine) -> None:
    one, two = hire(engine, b"f", asleep=True), hire(engine, b"f", asleep=True)
    engine.submit(b"f", background=True)
    engine.leave(one)
    engine.tick(NOW + GRACE)
    assert two.woken == 1


def test_a_job_whose_time_has_come_wakes_somebody(engine: Engine) -> None:
    worker = hire(engine, b"f", asleep=True)
    engine.submit(b"f", background=True, run_at=NOW + 5)
    assert worker.woken == 0
    engine.tick(NOW + 5)
    assert worker.woken == 1


def test_a_requeued_job_wakes_somebody_else(engine: Engine) -> None:
    first = hire(engine, b"f")
    engine.submit(b"f", background=True)
    claim(engine, first)
    second = hire(engine, b"f", asleep=True)
    engine.leave(first)
    assert second.woken == 1


def test_a_sleeper_that_enrolls_a_function_with_jobs_is_woken(engine: Engine) -> None:
    worker = hire(engine, b"f", asleep=True)
    engine.submit(b"g", background=True)
    engine.enroll(worker, b"g")
    assert (worker.woken, worker.idle) == (1, False)


def test_a_sleeper_that_enrolls_a_function_without_jobs_sleeps_on(engine: Engine) -> None:
    worker = hire(engine, b"f", asleep=True)
    engine.enroll(worker, b"g")
    assert (worker.woken, worker.idle) == (0, True)
    engine.submit(b"g", background=True)
    assert worker.woken == 1


def test_a_sleeper_that_dismisses_a_function_sleeps_on_for_the_others(engine: Engine) -> None:
    worker = hire(engine, b"f", b"g", asleep=True)
    engine.dismiss(worker, b"g")
    engine.submit(b"g", background=True)
    assert (worker.woken, worker.idle) == (0, True)
    engine.submit(b"f", background=True)
    assert worker.woken == 1


def test_claiming_ends_the_sleep(engine: Engine) -> None:
    worker = hire(engine, b"f", asleep=True)
    assert engine.claim(worker) is None
    assert not worker.idle
    engine.submit(b"f", background=True)
    assert worker.woken == 0


def test_rousing_ends_the_sleep_without_a_word(engine: Engine) -> None:
    worker, other = hire(engine, b"f", asleep=True), hire(engine, b"f", asleep=True)
    engine.rouse(worker)
    engine.rouse(worker)
    assert (worker.idle, worker.woken) == (False, 0)
    engine.submit(b"f", background=True)
    assert woken(worker, other) == [0, 1]
    engine.rouse(RecordingWorker())  # who never asked for anything


def test_a_paused_function_wakes_nobody(engine: Engine) -> None:
    engine.pause(b"f")
    worker = hire(engine, b"f", asleep=True)
    engine.submit(b"f", background=True)
    engine.tick(NOW + 1)
    assert (worker.woken, worker.idle) == (0, True)
    engine.rouse(worker)
    engine.sleep(worker)
    assert worker.woken == 0


def test_a_worker_that_comes_at_once_when_woken_gets_the_job(engine: Engine) -> None:
    worker = hire(engine, b"f", asleep=True)
    got = []
    worker.react = lambda: got.append(engine.claim(worker))
    job = engine.submit(b"f", background=True)
    assert got == [job]
    assert engine.tick(NOW) == float("inf"), "the job was fetched: no need to look again"


def test_workers_that_come_at_once_share_the_leftovers(engine: Engine) -> None:
    engine.policy.wake_count = 3
    workers = [hire(engine, b"f", asleep=True) for _ in range(3)]
    got = []

    def fetch(worker: RecordingWorker) -> None:
        got.append(engine.claim(worker))
        engine.sleep(worker)

    for worker in workers:
        worker.react = lambda worker=worker: fetch(worker)  # type: ignore[misc]
    job = engine.submit(b"f", background=True)
    assert got == [job, None, None]
    assert all(worker.idle for worker in workers)


# Lost workers


@pytest.mark.parametrize("how", ["leave", "dismiss"])
def test_a_lost_job_goes_to_the_end_of_its_lane(engine: Engine, how: str) -> None:
    worker = hire(engine, b"f")
    for payload in (b"1", b"2"):
        engine.submit(b"f", payload=payload, background=True)
    job = claim(engine, worker)
    engine.submit(b"f", payload=b"3", background=True)
    if how == "leave":
        engine.leave(worker)
    else:
        engine.dismiss(worker, b"f")
    assert (job.state, job.attempts, job.owner, job.progress) == (JobState.QUEUED, 1, None, None)
    assert (worker.running, engine.running) == ({}, 0)
    engine.submit(b"f", payload=b"4", background=True)
    assert payloads(engine, hire(engine, b"f")) == [b"2", b"3", b"1", b"4"]
    assert job.attempts == 2


def test_losing_a_worker_says_nothing_to_the_client(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f")
    job = engine.submit(b"f", watcher=watcher)
    claim(engine, worker)
    engine.leave(worker)
    assert watcher.heard == []
    assert job.watchers == [watcher]


def test_dismissing_loses_only_the_jobs_of_that_function(engine: Engine) -> None:
    worker = hire(engine, b"f", b"g")
    f, g = engine.submit(b"f", background=True), engine.submit(b"g", background=True)
    claim(engine, worker)
    claim(engine, worker)
    engine.dismiss(worker, b"f")
    assert (f.state, g.state) == (JobState.QUEUED, JobState.RUNNING)
    assert worker.running == {g.handle: g}


def test_an_abandoned_job_of_a_lost_worker_is_dropped(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f")
    job = engine.submit(b"f", b"key", watcher=watcher)
    claim(engine, worker)
    engine.forget(watcher)
    engine.leave(worker)
    assert job.state is JobState.CANCELLED
    assert (engine.jobs, engine.dead, engine.running) == ({}, {}, 0)
    assert engine.functions[b"f"].unique == {}


def test_after_too_many_lost_workers_the_job_is_dead(engine: Engine, watcher: RecordingWatcher) -> None:
    engine.policy.max_attempts = 3
    job = engine.submit(b"f", b"key", watcher=watcher, background=True)
    for attempt in range(1, 4):
        assert job.state is JobState.QUEUED
        worker = hire(engine, b"f")
        claim(engine, worker)
        assert job.attempts == attempt
        engine.leave(worker)
    assert job.state is JobState.DEAD
    assert job.reason == "given to 3 workers in vain, the last time because its worker left"
    assert watcher.words == [("fail", job.reason)]
    assert watcher.heard[0].state is JobState.DEAD
    assert (engine.jobs, engine.dead, engine.running) == ({}, {job.handle: job}, 0)
    assert engine.functions[b"f"].total == 0
    assert engine.functions[b"f"].unique == {}


def test_without_a_limit_a_job_never_dies(engine: Engine) -> None:
    engine.policy.max_attempts = 0
    job = engine.submit(b"f", background=True)
    for _ in range(50):
        worker = hire(engine, b"f")
        claim(engine, worker)
        engine.leave(worker)
    assert (job.state, job.attempts) == (JobState.QUEUED, 50)


def test_leaving_takes_everything_back(engine: Engine) -> None:
    worker = hire(engine, b"f", b"g", asleep=True)
    engine.leave(worker)
    assert (worker.idle, worker.crew, worker.abilities) == (False, None, {})
    assert (engine.functions[b"f"].workers, engine.functions[b"g"].workers) == (0, 0)
    engine.submit(b"f", background=True)
    assert worker.woken == 0
    engine.leave(worker)  # twice does no harm
    assert engine.functions[b"f"].workers == 0


def test_a_worker_that_left_may_come_back(engine: Engine) -> None:
    worker = hire(engine, b"f")
    engine.leave(worker)
    engine.submit(b"g", background=True)
    engine.enroll(worker, b"g")
    assert claim(engine, worker).function == b"g"


# Reports


def test_completing_ends_the_job(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f", timeout=5.0)
    job = engine.submit(b"f", b"key", watcher=watcher)
    claim(engine, worker)
    engine.complete(worker, job, b"out")
    assert (job.state, job.owner, worker.running, engine.jobs) == (JobState.DONE, None, {}, {})
    assert watcher.words == [("complete", b"out")]
    assert (engine.running, engine.functions[b"f"].total, len(engine.leases)) == (0, 0, 0)
    assert engine.functions[b"f"].unique == {}


def test_failing_is_final_unless_the_worker_asks_for_a_retry(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f")
    job = engine.submit(b"f", watcher=watcher, background=True)
    claim(engine, worker)
    engine.fail(worker, job, "cannot")
    assert (job.state, job.reason) == (JobState.FAILED, "cannot")
    assert watcher.words == [("fail", "cannot")]
    assert engine.jobs == engine.dead == {}


def test_a_retry_waits_longer_every_time_until_the_job_is_dead(engine: Engine, watcher: RecordingWatcher) -> None:
    engine.policy.max_attempts = 4
    worker = hire(engine, b"f")
    job = engine.submit(b"f", watcher=watcher, background=True)
    delays = []
    while job.state is not JobState.DEAD:
        assert claim(engine, worker) is job
        engine.fail(worker, job, "again", retry=True)
        if job.state is JobState.SCHEDULED:
            assert watcher.heard == []
            assert engine.claim(worker) is None
            delays.append(engine.deadline() - engine.now)
            engine.tick(engine.deadline())
    assert delays == [1.0, 2.0, 4.0]
    assert job.reason == "failed 4 times, the last time: again"
    assert watcher.words == [("fail", job.reason)]
    assert engine.dead == {job.handle: job}


@pytest.mark.parametrize("exhausted", [False, True])
def test_nobody_waits_for_an_abandoned_job_to_be_tried_again(
    engine: Engine, watcher: RecordingWatcher, exhausted: bool
) -> None:
    engine.policy.max_attempts = 1 if exhausted else 5
    worker = hire(engine, b"f")
    job = engine.submit(b"f", watcher=watcher)
    claim(engine, worker)
    engine.forget(watcher)
    engine.fail(worker, job, retry=True)
    assert job.state is JobState.CANCELLED
    assert engine.jobs == engine.dead == {}


def test_an_exception_is_a_failure_with_words(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f")
    job = engine.submit(b"f", watcher=watcher)
    claim(engine, worker)
    engine.raise_exception(worker, job, b"\xffoh" + b"x" * 2000)
    assert job.state is JobState.FAILED
    assert job.reason.startswith("\ufffdoh")
    assert len(job.reason) <= 1000
    assert watcher.words == [("exception", b"\xffoh" + b"x" * 2000)]


def test_rescheduling_counts_steps_and_forgets_attempts(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f")
    job = engine.submit(b"f", watcher=watcher, count=5)
    claim(engine, worker)
    engine.reschedule(worker, job, NOW + 30, step=2)
    assert (job.state, job.count, job.attempts, job.run_at) == (JobState.SCHEDULED, 7, 0, NOW + 30)
    assert (worker.running, engine.running, engine.functions[b"f"].scheduled) == ({}, 0, 1)
    assert watcher.heard == []
    engine.tick(NOW + 30)
    assert claim(engine, worker) is job
    assert job.attempts == 1
    engine.reschedule(worker, job, NOW + 60)
    assert job.count == 7


@pytest.mark.parametrize("run_at", [NOW - 5, NOW, 0.0])
def test_rescheduling_for_the_past_is_due_at_once(engine: Engine, run_at: float) -> None:
    worker = hire(engine, b"f")
    job = engine.submit(b"f", background=True)
    claim(engine, worker)
    engine.reschedule(worker, job, run_at)
    assert engine.deadline() <= NOW
    engine.tick(NOW)
    assert claim(engine, worker) is job


def test_rescheduling_an_abandoned_job_ends_it(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f")
    job = engine.submit(b"f", watcher=watcher)
    claim(engine, worker)
    engine.forget(watcher)
    engine.reschedule(worker, job, NOW + 30)
    assert job.state is JobState.CANCELLED
    assert engine.jobs == {}


# Leases


def test_an_ability_that_fails_on_timeout(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f", timeout=5.0)
    job = engine.submit(b"f", watcher=watcher, background=True)
    claim(engine, worker)
    assert engine.tick(NOW + 4.9) == NOW + 5
    assert job.state is JobState.RUNNING
    engine.tick(NOW + 5)
    assert job.state is JobState.FAILED
    assert watcher.words == [("fail", "it did not finish within the 5 seconds that its worker allows")]
    assert worker.taken == [job.handle]
    assert worker.running == {}
    assert not worker.excuse(job.handle), "it is the worker's own fault"
    assert len(engine.leases) == 0


def test_an_ability_that_requeues_on_timeout(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f", timeout=5.0, on_timeout=Expiry.REQUEUE)
    job = engine.submit(b"f", watcher=watcher)
    claim(engine, worker)
    engine.tick(NOW + 5)
    assert (job.state, job.attempts, job.run_at) == (JobState.QUEUED, 1, NOW + 5)
    assert watcher.heard == []
    assert worker.taken == [job.handle]
    assert claim(engine, worker) is job
    assert engine.tick(NOW + 5) == NOW + 10


def test_the_timeout_of_a_job_requeues_it(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f")
    job = engine.submit(b"f", watcher=watcher, timeout=3.0)
    claim(engine, worker)
    assert engine.tick(NOW) == NOW + 3
    engine.tick(NOW + 3)
    assert job.state is JobState.QUEUED
    assert worker.taken == [job.handle]


@pytest.mark.parametrize(
    ("of_job", "of_ability", "after", "state"),
    [
        (3.0, 5.0, 3.0, JobState.QUEUED),
        (5.0, 3.0, 3.0, JobState.FAILED),
        (4.0, 4.0, 4.0, JobState.FAILED),
        (0.0, 3.0, 3.0, JobState.FAILED),
        (3.0, 0.0, 3.0, JobState.QUEUED),
    ],
)
def test_the_smaller_timeout_wins(
    engine: Engine, of_job: float, of_ability: float, after: float, state: JobState
) -> None:
    worker = hire(engine, b"f", timeout=of_ability, on_timeout=Expiry.FAIL)
    job = engine.submit(b"f", background=True, timeout=of_job)
    claim(engine, worker)
    assert engine.tick(NOW) == NOW + after
    engine.tick(NOW + after)
    assert job.state is state


def test_without_a_timeout_there_is_no_lease(engine: Engine) -> None:
    worker = hire(engine, b"f")
    engine.submit(b"f", background=True)
    claim(engine, worker)
    assert engine.tick(NOW + 1e9) == float("inf")


def test_running_out_of_time_too_often_is_death(engine: Engine, watcher: RecordingWatcher) -> None:
    engine.policy.max_attempts = 2
    worker = hire(engine, b"f", timeout=1.0, on_timeout=Expiry.REQUEUE)
    job = engine.submit(b"f", watcher=watcher, background=True)
    for second in (1, 2):
        claim(engine, worker)
        engine.tick(NOW + second)
    assert job.state is JobState.DEAD
    assert job.reason == ("given to 2 workers in vain, the last time because it did not finish within 1.0 seconds")
    assert worker.taken == [job.handle] * 2


def test_an_abandoned_job_whose_time_is_up_is_dropped(engine: Engine, watcher: RecordingWatcher) -> None:
    worker = hire(engine, b"f", timeout=1.0, on_timeout=Expiry.REQUEUE)
    job = engine.submit(b"f", watcher=watcher)
    claim(engine, worker)
    engine.forget(watcher)
    engine.tick(NOW + 1)
    assert job.state is JobState.CANCELLED
    assert worker.taken == [job.handle]


def test_a_new_lease_does_not_end_with_the_old_one(engine: Engine) -> None:
    one, two = hire(engine, b"f", timeout=5.0), hire(engine, b"f", timeout=5.0)
    job = engine.submit(b"f", background=True)
    claim(engine, one)
    engine.now = NOW + 3
    engine.leave(one)
    claim(engine, two)
    assert engine.tick(NOW + 5) == NOW + 8
    assert job.owner is two


def test_each_job_of_a_worker_has_its_own_lease(engine: Engine) -> None:
    worker = hire(engine, b"f", timeout=5.0)
    jobs = []
    for second in range(3):
        engine.now = NOW + second
        engine.submit(b"f", background=True)
        jobs.append(claim(engine, worker))
    for second in range(3):
        assert engine.deadline() == NOW + 5 + second
        engine.tick(NOW + 5 + second)
        assert [job.state for job in jobs].count(JobState.FAILED) == second + 1


def test_a_lease_is_not_shortened_by_enrolling_again(engine: Engine) -> None:
    worker = hire(engine, b"f", timeout=5.0)
    job = engine.submit(b"f", background=True)
    claim(engine, worker)
    engine.enroll(worker, b"f", timeout=1.0)
    engine.tick(NOW + 1)
    assert job.state is JobState.RUNNING
    engine.tick(NOW + 5)
    assert job.state is JobState.FAILED


def test_a_job_that_was_claimed_again_at_the_same_moment_has_one_lease(engine: Engine) -> None:
    one, two = hire(engine, b"f", timeout=5.0), hire(engine, b"f", timeout=5.0)
    job = engine.submit(b"f", background=True)
    claim(engine, one)
    engine.leave(one)
    claim(engine, two)
    assert len(engine.leases) == 1
    engine.complete(two, job, b"")
    assert len(engine.leases) == 0
    assert engine.tick(NOW + 5) == float("inf")


def test_a_worker_whose_time_is_up_may_be_given_the_job_again_at_once(
    engine: Engine, journal: RecordingJournal
) -> None:
    worker = hire(engine, b"f", timeout=1.0, on_timeout=Expiry.REQUEUE)
    job = engine.submit(b"f", background=True)
    claim(engine, worker)
    engine.sleep(worker)
    order = []
    worker.react = lambda: order.append((engine.claim(worker), list(worker.taken)))
    engine.tick(NOW + 1)
    assert order == [(job, [job.handle])], "told that it lost the job before it is given it again"
    assert worker.running == {job.handle: job}
    assert journal.names == ["accepted", "changed"]
