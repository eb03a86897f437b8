"""Idle workers: who is woken for a job, and when."""

import pytest

from geartrain.engine.engine import Engine
from tests.unit.engine.recording import (
    NOW,
    RecordingWorker,
    claim,
    hire,
)

GRACE = 0.05  # the policy's default


def woken(*workers: RecordingWorker) -> list[int]:
    return [worker.woken for worker in workers]


def test_a_worker_that_sleeps_is_woken_at_once_if_there_are_jobs(engine: Engine) -> None:
    worker = hire(engine, b"f")
    engine.submit(b"f", background=True)
    engine.sleep(worker)
    assert (worker.woken, worker.idle) == (1, False)
    engine.sleep(worker)
    assert (worker.woken, worker.idle) == (2, False)


def test_sleeping_twice_is_the_same_as_once(engine: Engine) -> None:
    worker = hire(engine, b"f", asleep=True)
    engine.sleep(worker)
    engine.submit(b"f", background=True)
    assert worker.woken == 1
    assert not worker.idle
    engine.submit(b"f", background=True)
    assert worker.woken == 1, "who is awake is not woken"


def test_one_job_wakes_the_worker_that_has_been_idle_longest(engine: Engine) -> None:
    workers = [hire(engine, b"f", asleep=True) for _ in range(4)]
    engine.submit(b"f", background=True)
    assert woken(*workers) == [1, 0, 0, 0]
    engine.submit(b"f", background=True)
    assert woken(*workers) == [1, 1, 0, 0]


def test_workers_that_linger_get_jobs_before_those_that_sleep(engine: Engine) -> None:
    asleep = hire(engine, b"f", asleep=True)
    lingering = [hire(engine, b"f") for _ in range(2)]
    for worker in lingering:
        engine.sleep(worker, lingers=True)
    assert [worker.idle for worker in lingering] == [True, True]
    for expected in ([0, 1, 0], [0, 1, 1], [1, 1, 1]):
        engine.submit(b"f", background=True)
        assert woken(asleep, *lingering) == expected
    assert not any(worker.lingers for worker in lingering)


def test_a_worker_that_no_longer_lingers_has_its_turn_as_one_that_sleeps(engine: Engine) -> None:
    one, two, three = (hire(engine, b"f") for _ in range(3))
    engine.sleep(one, lingers=True)
    engine.sleep(two)
    engine.stop_sleeping(one)
    assert (one.idle, one.lingers) == (False, False)
    engine.sleep(one)
    engine.sleep(three, lingers=True)
    engine.remove_worker(three)
    for expected in ([0, 1, 0], [1, 1, 0]):
        engine.submit(b"f", background=True)
        assert woken(one, two, three) == expected


@pytest.mark.parametrize(("count", "expected"), [(1, 1), (2, 2), (3, 3), (50, 4)])
def test_one_job_wakes_as_many_as_the_policy_says(engine: Engine, count: int, expected: int) -> None:
    engine.policy.wake_count = count
    workers = [hire(engine, b"f", asleep=True) for _ in range(4)]
    engine.submit(b"f", background=True)
    assert sum(woken(*workers)) == expected


def test_only_workers_of_the_function_are_woken(engine: Engine) -> None:
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


def test_another_worker_is_woken_if_the_first_does_not_claim(engine: Engine) -> None:
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


def test_no_other_worker_is_woken_for_a_job_that_was_claimed(engine: Engine) -> None:
    one, two = hire(engine, b"f", asleep=True), hire(engine, b"f", asleep=True)
    engine.submit(b"f", background=True)
    claim(engine, one)
    assert engine.tick(NOW + GRACE) == float("inf")
    assert two.woken == 0
    assert two.idle


def test_after_the_grace_one_worker_is_woken_for_each_queued_job(engine: Engine) -> None:
    engine.pause(b"f")
    workers = [hire(engine, b"f", asleep=True) for _ in range(5)]
    for _ in range(3):
        engine.submit(b"f", background=True)
    assert sum(woken(*workers)) == 0
    engine.resume(b"f")
    assert woken(*workers) == [1, 1, 1, 0, 0]
    engine.tick(NOW + GRACE)
    assert woken(*workers) == [1, 1, 1, 1, 1]


def test_no_wake_is_planned_without_idle_workers(engine: Engine) -> None:
    one = hire(engine, b"f", asleep=True)
    engine.submit(b"f", background=True)
    engine.submit(b"f", background=True)
    engine.tick(NOW + GRACE)
    assert engine.tick(NOW + GRACE) == float("inf")
    engine.sleep(one)
    assert one.woken == 2, "who sleeps again finds the work"


def test_a_job_is_not_lost_if_the_woken_worker_is_removed(engine: Engine) -> None:
    one, two = hire(engine, b"f", asleep=True), hire(engine, b"f", asleep=True)
    engine.submit(b"f", background=True)
    engine.remove_worker(one)
    engine.tick(NOW + GRACE)
    assert two.woken == 1


def test_a_due_job_wakes_a_worker(engine: Engine) -> None:
    worker = hire(engine, b"f", asleep=True)
    engine.submit(b"f", background=True, run_at=NOW + 5)
    assert worker.woken == 0
    engine.tick(NOW + 5)
    assert worker.woken == 1


def test_a_requeued_job_wakes_another_worker(engine: Engine) -> None:
    first = hire(engine, b"f")
    engine.submit(b"f", background=True)
    claim(engine, first)
    second = hire(engine, b"f", asleep=True)
    engine.remove_worker(first)
    assert second.woken == 1


def test_an_idle_worker_that_registers_a_function_with_jobs_is_woken(engine: Engine) -> None:
    worker = hire(engine, b"f", asleep=True)
    engine.submit(b"g", background=True)
    engine.register(worker, b"g")
    assert (worker.woken, worker.idle) == (1, False)


def test_an_idle_worker_that_registers_a_function_without_jobs_stays_idle(engine: Engine) -> None:
    worker = hire(engine, b"f", asleep=True)
    engine.register(worker, b"g")
    assert (worker.woken, worker.idle) == (0, True)
    engine.submit(b"g", background=True)
    assert worker.woken == 1


def test_an_idle_worker_that_unregisters_a_function_stays_idle_for_the_others(engine: Engine) -> None:
    worker = hire(engine, b"f", b"g", asleep=True)
    engine.unregister(worker, b"g")
    engine.submit(b"g", background=True)
    assert (worker.woken, worker.idle) == (0, True)
    engine.submit(b"f", background=True)
    assert worker.woken == 1


def test_a_worker_that_claims_is_no_longer_idle(engine: Engine) -> None:
    worker = hire(engine, b"f", asleep=True)
    assert engine.claim(worker) is None
    assert not worker.idle
    engine.submit(b"f", background=True)
    assert worker.woken == 0


def test_stop_sleeping_does_not_wake_the_worker(engine: Engine) -> None:
    worker, other = hire(engine, b"f", asleep=True), hire(engine, b"f", asleep=True)
    engine.stop_sleeping(worker)
    engine.stop_sleeping(worker)
    assert (worker.idle, worker.woken) == (False, 0)
    engine.submit(b"f", background=True)
    assert woken(worker, other) == [0, 1]
    engine.stop_sleeping(RecordingWorker())  # who never asked for anything


def test_a_paused_function_wakes_no_worker(engine: Engine) -> None:
    engine.pause(b"f")
    worker = hire(engine, b"f", asleep=True)
    engine.submit(b"f", background=True)
    engine.tick(NOW + 1)
    assert (worker.woken, worker.idle) == (0, True)
    engine.stop_sleeping(worker)
    engine.sleep(worker)
    assert worker.woken == 0


def test_a_worker_may_claim_from_wake(engine: Engine) -> None:
    worker = hire(engine, b"f", asleep=True)
    got = []
    worker.react = lambda: got.append(engine.claim(worker))
    job = engine.submit(b"f", background=True)
    assert got == [job]
    assert engine.tick(NOW) == float("inf"), "the job was fetched: no need to look again"


def test_workers_that_claim_from_wake_share_the_queued_jobs(engine: Engine) -> None:
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
