"""Counters and histograms of the engine, and the list of workers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geartrain.engine.counters import DurationHistogram
from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Timer
from geartrain.model import Duplicate, JobState
from tests.unit.engine.recording import NOW, claim, hire, job_in


def test_every_outcome_is_counted(engine: Engine) -> None:
    ends = [JobState.DONE, JobState.DONE, JobState.FAILED, JobState.CANCELLED, JobState.DEAD]
    for state in ends:
        job_in(engine, state, background=True)
        engine.policy.max_attempts = 10
    f = engine.functions[b"f"]
    assert (f.submitted, f.completed, f.failed) == (5, 2, 2)
    assert engine.submitted == 5
    for ended in (engine.outcomes, f.outcomes):
        assert (ended.done, ended.failed, ended.cancelled, ended.dead, ended.total) == (2, 1, 1, 1, 5)
    assert engine.dead_counts == {b"f": 1}


def test_coalescing_and_replacing_do_not_count_as_submissions(engine: Engine) -> None:
    for duplicate in (Duplicate.COALESCE, Duplicate.REPLACE):
        engine.submit(b"f", b"key", duplicate=duplicate)
        engine.submit(b"f", b"key", duplicate=duplicate)
    assert (engine.submitted, engine.functions[b"f"].submitted, engine.outcomes.total) == (1, 1, 0)


def test_a_retry_does_not_count_as_a_submission(engine: Engine) -> None:
    job, _ = job_in(engine, JobState.DEAD, background=True)
    engine.retry(job)
    assert (engine.submitted, engine.functions[b"f"].submitted) == (1, 1)
    assert engine.dead_counts == {}


def test_restored_jobs_do_not_count_as_submissions(engine: Engine) -> None:
    for number, state in enumerate((JobState.QUEUED, JobState.SCHEDULED, JobState.DEAD), 1):
        before = Engine(first_id=number)
        before.now = NOW
        engine.restore(job_in(before, state, background=True)[0])
    assert (engine.submitted, engine.functions[b"f"].submitted) == (0, 0)
    assert (engine.queued, engine.scheduled, engine.dead_counts) == (1, 1, {b"f": 1})


def test_dead_jobs_are_counted_when_their_function_is_dropped(engine: Engine) -> None:
    job, _ = job_in(engine, JobState.DEAD, background=True)
    assert engine.drop(b"f")
    assert engine.dead_counts == {b"f": 1}
    engine.delete(job)
    assert engine.dead_counts == {}


def test_oldest_ready_at_is_that_of_the_first_job(engine: Engine) -> None:
    assert engine.function(b"f").oldest_ready_at() == 0.0
    first = engine.submit(b"f", run_at=NOW - 500)  # a place ahead: it waits since now all the same
    engine.now = NOW + 10
    second = engine.submit(b"f", priority=0)
    f = engine.functions[b"f"]
    assert f.oldest_ready_at() == NOW
    engine.cancel(first)
    assert f.oldest_ready_at() == NOW + 10
    engine.cancel(second)
    assert f.oldest_ready_at() == 0.0


def test_oldest_ready_at_with_jobs_out_of_order(engine: Engine) -> None:
    late = engine.submit(b"f", run_at=NOW - 1)
    early = engine.submit(b"f", run_at=NOW - 2)
    engine.now = NOW + 5
    engine.submit(b"f", run_at=NOW - 3)
    f = engine.functions[b"f"]
    assert f.oldest_ready_at() == NOW
    engine.cancel(early)
    engine.cancel(late)
    assert f.oldest_ready_at() == NOW + 5


def test_wait_and_run_times_are_measured(engine: Engine) -> None:
    worker = hire(engine, b"f")
    engine.submit(b"f")
    engine.now = NOW + 0.25
    job = claim(engine, worker)
    engine.now = NOW + 1.25
    engine.complete(worker, job, b"")
    assert (measured(engine.wait_times), engine.wait_times.total_seconds) == ({18: 1}, 0.25)
    assert (measured(engine.run_times), engine.run_times.total_seconds) == ({20: 1}, 1.0)


def test_negative_durations_do_not_change_the_sums(engine: Engine) -> None:
    worker = hire(engine, b"f")
    engine.submit(b"f")
    engine.now = NOW - 3600
    job = claim(engine, worker)
    engine.now = NOW - 7200
    engine.complete(worker, job, b"")
    assert measured(engine.wait_times) == measured(engine.run_times) == {0: 1}
    assert engine.wait_times.total_seconds == engine.run_times.total_seconds == 0.0


NUMBERS = [float("-inf"), -1.0, 0.0, 1e-9, 1e-6, 1.0, 3600.0, 4e12 - 1, 4e12, 1e300, float("inf"), float("nan")]


def test_every_float_has_a_bucket() -> None:
    meter = DurationHistogram()
    for number in NUMBERS:
        meter.add(number)
    assert measured(meter) == {0: 8, 1: 1, 20: 1, 32: 1, 62: 1}


@given(st.lists(st.sampled_from(NUMBERS[1:7])), st.data())
def test_add_and_remove_cancel_out_in_any_order(numbers: list[float], data: st.DataObject) -> None:
    meter = DurationHistogram()
    for number in numbers:
        meter.add(number)
    assert sum(meter.counts()) == len(numbers)
    for number in data.draw(st.permutations(numbers)):
        meter.remove(number)
    assert measured(meter) == {}
    assert meter.total_seconds == pytest.approx(0.0, abs=1e-6)


def measured(meter: DurationHistogram) -> dict[int, int]:
    """What it has counted, without empty buckets."""
    return {bucket: count for bucket, count in enumerate(meter.counts()) if count}


def test_workers_are_listed_from_their_first_function_until_they_are_removed(engine: Engine) -> None:
    first, second = hire(engine, b"f"), hire(engine, b"f", b"g")
    assert engine.workers == {1: first, 2: second}
    assert (first.number, first.since) == (1, NOW)
    engine.unregister(first, b"f")
    assert engine.workers == {1: first, 2: second}
    engine.remove_worker(first)
    engine.now = NOW + 5
    assert engine.workers == {2: second}
    engine.register(first, b"f")
    assert engine.workers == {1: first, 2: second}
    assert first.since == NOW


def test_timers_are_part_of_the_deadline_and_fire_at_every_tick(engine: Engine) -> None:
    class Recording(Timer):
        def __init__(self) -> None:
            super().__init__()
            self.looks: list[float] = []

        def fire(self, now: float) -> None:
            self.looks.append(now)

    timer = Recording()
    engine.timers.append(timer)
    assert engine.deadline() == float("inf")
    timer.at = NOW + 7
    assert engine.deadline() == NOW + 7
    engine.tick(NOW + 1)
    engine.tick(NOW + 7)
    assert timer.looks == [NOW + 1, NOW + 7]
