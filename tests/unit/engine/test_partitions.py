"""Partitions take turns: within a function and priority, by time inside each of them."""

import pytest

from geartrain.engine.engine import Engine
from geartrain.engine.job import LiveJob
from geartrain.engine.limits import FlowLimits
from geartrain.engine.policy import FunctionPolicy
from geartrain.errors import InvalidNameError
from geartrain.model import Priority
from tests.unit.engine.recording import RecordingWorker


class PartitionScene:
    """A worker that claims jobs of one function, named by their payloads."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.worker = RecordingWorker()
        engine.register(self.worker, b"mail")

    def submit(self, payload: bytes, partition: bytes = b"", priority: int = Priority.NORMAL) -> LiveJob:
        return self.engine.submit(
            b"mail", payload=payload, background=True, partition=partition, priority=int(priority)
        )

    def fill(self, partition: bytes, count: int) -> None:
        for number in range(count):
            self.submit(b"%s%d" % (partition, number), partition)

    def claimed(self, count: int) -> list[bytes]:
        jobs = [self.engine.claim(self.worker) for _ in range(count)]
        return [job.payload for job in jobs if job is not None]


@pytest.fixture
def scene(engine: Engine) -> PartitionScene:
    return PartitionScene(engine)


def test_partitions_take_turns(scene: PartitionScene) -> None:
    scene.fill(b"a", 5)
    scene.fill(b"b", 2)
    assert scene.claimed(8) == [b"a0", b"b0", b"a1", b"b1", b"a2", b"a3", b"a4"]


def test_few_jobs_do_not_wait_for_many(scene: PartitionScene) -> None:
    scene.fill(b"large", 1000)
    scene.fill(b"small", 10)
    turns = scene.claimed(20)
    assert [payload for payload in turns if payload.startswith(b"small")] == [b"small%d" % i for i in range(10)]


def test_jobs_without_a_partition_take_turns_with_the_others(scene: PartitionScene) -> None:
    """Those that were queued before the first partition, too."""
    for payload in (b"1", b"2"):
        scene.submit(payload)
    scene.fill(b"a", 2)
    scene.submit(b"3")
    assert scene.claimed(5) == [b"1", b"a0", b"2", b"a1", b"3"]


def test_priority_goes_before_turns(scene: PartitionScene) -> None:
    scene.fill(b"a", 2)
    scene.submit(b"high1", b"b", Priority.HIGH)
    scene.submit(b"high2", b"b", Priority.HIGH)
    assert scene.claimed(4) == [b"high1", b"high2", b"a0", b"a1"]


def test_inside_a_partition_the_time_counts(scene: PartitionScene) -> None:
    scene.submit(b"later", b"a")
    scene.submit(b"other", b"b")
    scene.engine.submit(b"mail", payload=b"earlier", background=True, partition=b"a", run_at=5.0)
    assert scene.claimed(3) == [b"earlier", b"other", b"later"]


def test_a_listing_has_the_order_of_the_turns(scene: PartitionScene) -> None:
    scene.fill(b"a", 3)
    scene.fill(b"b", 1)
    function = scene.engine.functions[b"mail"]
    assert [job.payload for job in function.queued_jobs()] == [b"a0", b"b0", b"a1", b"a2"]
    assert [job.payload for job in reversed(function.queues[Priority.NORMAL])] == [b"a2", b"a1", b"b0", b"a0"]
    assert function.queued == 4
    assert scene.claimed(4) == [b"a0", b"b0", b"a1", b"a2"]


def test_a_cancelled_job_leaves_its_partition(scene: PartitionScene) -> None:
    scene.fill(b"a", 1)
    gone = scene.submit(b"gone", b"b")
    scene.fill(b"c", 1)
    scene.engine.cancel(gone)
    assert scene.claimed(3) == [b"a0", b"c0"]


def test_partitions_without_jobs_are_forgotten(scene: PartitionScene) -> None:
    for number in range(100):
        scene.fill(b"tenant%d" % number, 1)
    partitions = scene.engine.functions[b"mail"].partitions
    assert partitions is not None
    assert len(partitions.by_name) == 100
    assert len(scene.claimed(100)) == 100
    assert partitions.by_name == {}


def test_the_oldest_job_of_all_partitions(scene: PartitionScene) -> None:
    scene.engine.now = 2000.0
    scene.fill(b"a", 1)
    scene.engine.now = 2001.0
    scene.fill(b"b", 1)
    function = scene.engine.functions[b"mail"]
    assert function.oldest_ready_at() == 2000.0
    scene.claimed(1)
    assert function.oldest_ready_at() == 2001.0


def test_a_requeued_job_goes_to_its_partition(scene: PartitionScene) -> None:
    scene.fill(b"a", 2)
    scene.fill(b"b", 2)
    job = scene.engine.claim(scene.worker)
    assert job is not None
    scene.engine.hand_back(scene.worker, job)
    assert (job.payload, job.partition) == (b"a0", b"a")
    assert scene.claimed(4) == [b"b0", b"a1", b"b1", b"a0"]


def test_a_scheduled_job_that_is_claimed_early_is_the_one_that_was_asked_for(scene: PartitionScene) -> None:
    scene.fill(b"a", 2)
    scene.fill(b"b", 2)
    wanted = scene.engine.submit(b"mail", payload=b"wanted", background=True, partition=b"b", run_at=9000.0)
    assert scene.engine.claim_scheduled(scene.worker, wanted) is wanted


def test_the_partition_can_come_from_the_unique_key(scene: PartitionScene) -> None:
    scene.engine.configure(b"mail", FunctionPolicy(limits=FlowLimits(separator=b":")))
    for key in (b"acme:1", b"acme:2", b"bits:1", b"none"):
        scene.engine.submit(b"mail", unique=key, payload=key, background=True)
    own = scene.engine.submit(b"mail", unique=b"acme:3", payload=b"own", background=True, partition=b"bits")
    assert own.partition == b"bits"
    assert scene.claimed(5) == [b"acme:1", b"bits:1", b"none", b"acme:2", b"own"]


def test_a_name_that_is_too_long_is_refused(scene: PartitionScene) -> None:
    with pytest.raises(InvalidNameError, match="a partition has at most 255 bytes; this one has 256"):
        scene.submit(b"", b"x" * 256)
    assert len(scene.engine.jobs) == 0
