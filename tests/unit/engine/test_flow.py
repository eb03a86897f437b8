"""Limits of a function: how many of its jobs run, and how often one starts."""

import pytest

from geartrain.engine.engine import Engine
from geartrain.engine.job import LiveJob
from geartrain.engine.limits import FlowLimits
from geartrain.engine.policy import FunctionPolicy
from geartrain.rates import Rate
from tests.unit.engine.recording import NOW, RecordingWorker


class LimitScene:
    """Workers of a function with limits."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.worker = RecordingWorker()
        engine.register(self.worker, b"mail")

    def limit(self, limits: FlowLimits) -> None:
        self.engine.configure(b"mail", FunctionPolicy(limits=limits))

    def submit(self, count: int = 1, partition: bytes = b"") -> list[LiveJob]:
        return [
            self.engine.submit(b"mail", payload=b"%s%d" % (partition, number), background=True, partition=partition)
            for number in range(count)
        ]

    def claim_all(self) -> list[LiveJob]:
        jobs: list[LiveJob] = []
        while (job := self.engine.claim(self.worker)) is not None:
            jobs.append(job)
        return jobs

    def payloads(self) -> list[bytes]:
        return [job.payload for job in self.claim_all()]

    def idle_worker(self) -> RecordingWorker:
        worker = RecordingWorker()
        self.engine.register(worker, b"mail")
        assert self.engine.claim(worker) is None
        self.engine.sleep(worker)
        assert worker.idle
        return worker


@pytest.fixture
def scene(engine: Engine) -> LimitScene:
    return LimitScene(engine)


def test_no_more_run_than_may(scene: LimitScene) -> None:
    scene.limit(FlowLimits(max_running=2))
    scene.submit(5)
    first, second = scene.claim_all()
    scene.engine.complete(scene.worker, first, b"")
    (third,) = scene.claim_all()
    scene.engine.fail(scene.worker, second)
    scene.engine.hand_back(scene.worker, third)
    assert len(scene.claim_all()) == 2


def test_a_worker_whose_connection_ends_frees_its_places(scene: LimitScene) -> None:
    scene.limit(FlowLimits(max_running=2))
    scene.submit(2)
    assert len(scene.claim_all()) == 2
    scene.engine.remove_worker(scene.worker)
    scene.worker = RecordingWorker()
    scene.engine.register(scene.worker, b"mail")
    assert len(scene.claim_all()) == 2


def test_idle_workers_are_woken_when_a_place_is_free(scene: LimitScene) -> None:
    scene.limit(FlowLimits(max_running=1))
    scene.submit(3)
    (job,) = scene.claim_all()
    idle = scene.idle_worker()
    scene.submit(1)
    assert idle.woken == 0
    scene.engine.complete(scene.worker, job, b"")
    assert scene.engine.deadline() <= scene.engine.now
    scene.engine.tick(scene.engine.now)
    assert idle.woken == 1


def test_a_lower_limit_lets_running_jobs_go_on(scene: LimitScene) -> None:
    scene.submit(5)
    running = [scene.engine.claim(scene.worker) for _ in range(3)]
    scene.limit(FlowLimits(max_running=2))
    assert scene.claim_all() == []
    for job in running[:2]:
        assert job is not None
        scene.engine.complete(scene.worker, job, b"")
    assert len(scene.claim_all()) == 1


def test_a_limit_that_is_removed(scene: LimitScene) -> None:
    scene.limit(FlowLimits(max_running=1))
    scene.submit(3)
    assert len(scene.claim_all()) == 1
    idle = scene.idle_worker()
    scene.limit(FlowLimits())
    scene.engine.tick(scene.engine.now)
    assert idle.woken == 1
    assert len(scene.claim_all()) == 2


def test_a_paused_function_stays_paused_when_a_place_is_free(scene: LimitScene) -> None:
    scene.limit(FlowLimits(max_running=1))
    scene.submit(2)
    (job,) = scene.claim_all()
    scene.engine.pause(b"mail")
    scene.engine.complete(scene.worker, job, b"")
    assert scene.claim_all() == []
    scene.engine.resume(b"mail")
    assert len(scene.claim_all()) == 1


def test_a_function_at_its_limit_stays_there_when_it_is_resumed(scene: LimitScene) -> None:
    scene.limit(FlowLimits(max_running=1))
    scene.submit(2)
    assert len(scene.claim_all()) == 1
    scene.engine.pause(b"mail")
    scene.engine.resume(b"mail")
    assert scene.claim_all() == []


def test_a_partition_at_its_limit_is_passed_over(scene: LimitScene) -> None:
    scene.limit(FlowLimits(max_running_per_partition=1))
    scene.submit(2, b"a")
    scene.submit(2, b"b")
    first, second = scene.claim_all()
    assert [first.payload, second.payload] == [b"a0", b"b0"]
    scene.engine.complete(scene.worker, second, b"")
    assert scene.payloads() == [b"b1"]
    scene.engine.complete(scene.worker, first, b"")
    assert scene.payloads() == [b"a1"]


def test_jobs_that_run_when_partitions_are_limited_count(scene: LimitScene) -> None:
    scene.submit(3, b"a")
    scene.submit(1, b"b")
    running = scene.engine.claim(scene.worker)
    assert running is not None
    assert running.payload == b"a0"
    scene.limit(FlowLimits(max_running_per_partition=1))
    assert scene.payloads() == [b"b0"]
    scene.engine.complete(scene.worker, running, b"")
    assert scene.payloads() == [b"a1"]


def test_a_new_job_of_another_partition_is_assigned_although_all_others_are_held(scene: LimitScene) -> None:
    scene.limit(FlowLimits(max_running_per_partition=1))
    scene.submit(3, b"a")
    assert scene.payloads() == [b"a0"]
    idle = scene.idle_worker()
    scene.submit(1, b"a")
    assert idle.woken == 0
    scene.submit(1, b"b")
    assert idle.woken == 1
    assert scene.payloads() == [b"b0"]


def test_idle_workers_are_woken_when_a_partition_is_released(scene: LimitScene) -> None:
    scene.limit(FlowLimits(max_running_per_partition=1))
    scene.submit(2, b"a")
    (job,) = scene.claim_all()
    idle = scene.idle_worker()
    scene.engine.complete(scene.worker, job, b"")
    scene.engine.tick(scene.engine.now)
    assert idle.woken == 1


def test_limits_of_partitions_that_are_removed(scene: LimitScene) -> None:
    scene.limit(FlowLimits(max_running_per_partition=1))
    scene.submit(3, b"a")
    assert scene.payloads() == [b"a0"]
    scene.limit(FlowLimits())
    assert scene.payloads() == [b"a1", b"a2"]


def test_partitions_without_jobs_are_forgotten(scene: LimitScene) -> None:
    scene.limit(FlowLimits(max_running_per_partition=1, rate_per_partition=Rate(1.0)))
    (cancelled,) = scene.submit(1, b"a")
    scene.engine.cancel(cancelled)
    scene.submit(1, b"b")
    (job,) = scene.claim_all()
    scene.engine.complete(scene.worker, job, b"")
    partitions = scene.engine.functions[b"mail"].partitions
    assert partitions is not None
    assert list(partitions.by_name) == [b"b"]  # it has used its rate
    scene.engine.tick(NOW + 1.0)
    assert partitions.by_name == {}


@pytest.mark.parametrize("most", [1, 2])
def test_partitions_that_only_ran_are_forgotten(scene: LimitScene, most: int) -> None:
    """Whether their last job held them or not."""
    scene.limit(FlowLimits(max_running_per_partition=most))
    scene.submit(1, b"a")
    (job,) = scene.claim_all()
    partitions = scene.engine.functions[b"mail"].partitions
    assert partitions is not None
    assert list(partitions.by_name) == [b"a"]
    scene.engine.complete(scene.worker, job, b"")
    assert partitions.by_name == {}


def test_a_lower_limit_of_partitions_lets_running_jobs_go_on(scene: LimitScene) -> None:
    scene.limit(FlowLimits(max_running_per_partition=3))
    scene.submit(5, b"a")
    first, second, third = scene.claim_all()
    scene.limit(FlowLimits(max_running_per_partition=1))
    for job in (first, second):
        scene.engine.complete(scene.worker, job, b"")
        assert scene.payloads() == []
    scene.engine.complete(scene.worker, third, b"")
    assert scene.payloads() == [b"a3"]


def test_a_rate(scene: LimitScene) -> None:
    scene.limit(FlowLimits(rate=Rate.parse("2/s")))
    scene.submit(5)
    assert len(scene.claim_all()) == 1
    assert scene.engine.deadline() == NOW + 0.5
    scene.engine.tick(NOW + 0.4)
    assert scene.claim_all() == []
    scene.engine.tick(NOW + 0.5)
    assert len(scene.claim_all()) == 1
    scene.engine.tick(NOW + 30.0)
    assert len(scene.claim_all()) == 1


def test_a_burst(scene: LimitScene) -> None:
    scene.limit(FlowLimits(rate=Rate.parse("1/m", burst=3)))
    scene.submit(5)
    assert len(scene.claim_all()) == 3
    scene.engine.tick(NOW + 60.0)
    assert len(scene.claim_all()) == 1


def test_a_rate_wakes_idle_workers(scene: LimitScene) -> None:
    scene.limit(FlowLimits(rate=Rate.parse("1/s")))
    scene.submit(2)
    scene.claim_all()
    idle = scene.idle_worker()
    scene.engine.tick(NOW + 1.0)
    assert idle.woken == 1


def test_a_faster_rate_applies_at_once(scene: LimitScene) -> None:
    scene.limit(FlowLimits(rate=Rate.parse("1/h")))
    scene.submit(3)
    scene.claim_all()
    scene.limit(FlowLimits(rate=Rate.parse("1/s")))
    assert scene.engine.deadline() <= NOW + 1.0
    scene.engine.tick(scene.engine.deadline())
    assert len(scene.claim_all()) == 1


def test_a_rate_of_each_partition(scene: LimitScene) -> None:
    scene.limit(FlowLimits(rate_per_partition=Rate.parse("1/s")))
    scene.submit(2, b"a")
    scene.submit(1, b"b")
    assert scene.payloads() == [b"a0", b"b0"]
    scene.engine.tick(NOW + 1.0)
    assert scene.payloads() == [b"a1"]


def test_a_partition_that_was_empty_for_a_while_is_released_in_time(scene: LimitScene) -> None:
    """It is to be forgotten when its bucket is full, which is later than the next job may start."""
    scene.limit(FlowLimits(rate_per_partition=Rate(1.0, burst=3)))
    scene.submit(2, b"a")
    for job in scene.claim_all():
        scene.engine.complete(scene.worker, job, b"")
    scene.engine.now = NOW + 0.5
    scene.submit(2, b"a")
    assert scene.payloads() == [b"a0"]
    assert scene.engine.deadline() == NOW + 1.0
    scene.engine.tick(NOW + 1.0)
    assert scene.payloads() == [b"a1"]


def test_a_place_that_is_free_wakes_one_worker(scene: LimitScene) -> None:
    """Others would find no job, and a thousand of them may be idle."""
    scene.limit(FlowLimits(max_running=1))
    scene.submit(5)
    (job,) = scene.claim_all()
    idle = [scene.idle_worker() for _ in range(3)]
    scene.engine.complete(scene.worker, job, b"")
    scene.engine.tick(scene.engine.now)
    assert sum(worker.woken for worker in idle) == 1


def test_a_partition_that_is_released_wakes_as_many_workers_as_it_may_have(scene: LimitScene) -> None:
    scene.limit(FlowLimits(max_running_per_partition=2))
    scene.submit(9, b"a")
    first, second = scene.claim_all()
    idle = [scene.idle_worker() for _ in range(4)]
    scene.engine.complete(scene.worker, first, b"")
    scene.engine.complete(scene.worker, second, b"")
    scene.engine.tick(scene.engine.now)
    assert sum(worker.woken for worker in idle) == 2


def test_a_token_wakes_one_worker(scene: LimitScene) -> None:
    scene.limit(FlowLimits(rate=Rate(1.0, burst=2)))
    scene.submit(9)
    assert len(scene.claim_all()) == 2
    idle = [scene.idle_worker() for _ in range(3)]
    scene.engine.tick(NOW + 1.0)
    assert sum(worker.woken for worker in idle) == 1


def test_jobs_count_that_are_held_by_a_worker_without_functions(scene: LimitScene) -> None:
    """It stands for another server that runs a job whose home this one has become."""
    holder = RecordingWorker()
    job = LiveJob(7, b"H:localhost:7", b"mail", b"", b"", 1, True, NOW, NOW, "test")
    job.partition = b"a"
    scene.engine.restore(job, holder)
    scene.limit(FlowLimits(max_running_per_partition=1))
    scene.submit(1, b"a")
    assert scene.claim_all() == []
    scene.engine.complete(holder, job, b"")
    assert scene.payloads() == [b"a0"]


def test_a_rate_that_is_removed_and_set_again_begins_anew(scene: LimitScene) -> None:
    limits = FlowLimits(max_running=9, rate=Rate(60.0))
    scene.limit(limits)
    scene.submit(2)
    assert len(scene.claim_all()) == 1
    scene.limit(FlowLimits(max_running=9))
    scene.limit(limits)
    assert len(scene.claim_all()) == 1


def test_a_clock_that_is_set_changes_no_rate(scene: LimitScene) -> None:
    scene.limit(FlowLimits(rate=Rate.parse("1/m"), rate_per_partition=Rate.parse("1/m")))
    scene.submit(3, b"a")
    scene.claim_all()
    scene.engine.clock_moved(-500.0)
    scene.engine.tick(NOW - 500.0)
    assert scene.claim_all() == []
    scene.engine.tick(NOW - 440.0)
    assert len(scene.claim_all()) == 1


def test_a_worker_that_claims_when_it_is_woken(scene: LimitScene) -> None:
    """It may call the engine at once, in the middle of what woke it."""
    scene.limit(FlowLimits(max_running=1, max_running_per_partition=1))
    scene.submit(1, b"a")
    (job,) = scene.claim_all()
    idle = scene.idle_worker()
    claimed: list[LiveJob | None] = []
    idle.react = lambda: claimed.append(scene.engine.claim(idle))
    scene.submit(2, b"b")
    scene.engine.complete(scene.worker, job, b"")
    scene.engine.tick(scene.engine.now)
    assert [job.payload for job in claimed if job is not None] == [b"b0"]
    assert scene.claim_all() == []
