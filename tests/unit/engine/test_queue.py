"""JobQueue: ordered by time, then by submission; stale entries are skipped."""

import pytest

from geartrain.engine.job import LiveJob
from geartrain.engine.queue import JobQueue
from geartrain.model import JobState


class QueueScene:
    """A queue and the jobs that were put into it, by id."""

    def __init__(self) -> None:
        self.queue = JobQueue(1)
        self.jobs: dict[int, LiveJob] = {}

    def put(self, id: int, run_at: float = 10.0) -> LiveJob:
        job = LiveJob(id, b"H:test:%d" % id, b"f", b"", b"", 1, False, run_at, 0.0, "test")
        self.jobs[id] = job
        self.queue.put(job)
        return job

    def cancel(self, id: int) -> None:
        """Do what the engine does with a queued job that ends."""
        self.jobs[id].state = JobState.CANCELLED
        self.queue.remove(self.jobs[id])

    def take(self) -> int:
        """Do what the engine does with the first job."""
        job = self.queue.take()
        job.state = JobState.RUNNING
        return job.id

    def drain(self) -> list[int]:
        return [self.take() for _ in range(self.queue.size)]

    def listed(self) -> list[int]:
        return [job.id for job in self.queue]


@pytest.fixture
def scene() -> QueueScene:
    return QueueScene()


def entry_count(queue: JobQueue) -> int:
    """How many jobs the queue holds in memory, stale entries included."""
    return len(list(queue._linked())) + len(queue._early or ())


def test_an_empty_queue(scene: QueueScene) -> None:
    assert scene.queue.size == 0
    assert scene.queue.first() is None
    assert scene.listed() == []


def test_first_come_first_served_at_one_time(scene: QueueScene) -> None:
    for id in range(1, 6):
        scene.put(id)
    assert scene.queue.size == 5
    assert scene.listed() == [1, 2, 3, 4, 5]
    assert scene.drain() == [1, 2, 3, 4, 5]
    assert scene.queue.size == 0


def test_a_requeued_job_with_the_same_time_is_last(scene: QueueScene) -> None:
    for id in (1, 2, 3):
        scene.put(id)
    back = scene.queue.take()
    scene.queue.put(back)
    scene.put(4)
    assert scene.drain() == [2, 3, 1, 4]


def test_earlier_times_come_first(scene: QueueScene) -> None:
    for id, run_at in ((1, 10.0), (2, 5.0), (3, 7.0), (4, 11.0), (5, 1.0)):
        scene.put(id, run_at)
    assert scene.listed() == [5, 2, 3, 1, 4]
    assert scene.drain() == [5, 2, 3, 1, 4]


def test_equal_earlier_times_keep_the_order_of_submission(scene: QueueScene) -> None:
    for id, run_at in ((1, 10.0), (2, 5.0), (3, 5.0), (4, 5.0)):
        scene.put(id, run_at)
    assert scene.drain() == [2, 3, 4, 1]


def test_earlier_times_between_two_takes(scene: QueueScene) -> None:
    scene.put(1, 10.0)
    scene.put(2, 20.0)
    scene.put(3, 5.0)
    assert scene.take() == 3
    scene.put(4, 15.0)
    assert scene.take() == 1
    scene.put(5, 20.0)
    assert scene.drain() == [4, 2, 5]


def test_first_is_what_take_returns(scene: QueueScene) -> None:
    for id, run_at in ((1, 10.0), (2, 5.0), (3, 7.0), (4, 10.0)):
        scene.put(id, run_at)
    scene.cancel(2)
    seen = []
    while (first := scene.queue.first()) is not None:
        assert scene.queue.first() is first, "looking changes nothing"
        seen.append(first.id)
        assert scene.take() == first.id
    assert seen == [3, 1, 4]


@pytest.mark.parametrize("gone", [1, 2, 3, 4, 5])
def test_removed_jobs_are_skipped(scene: QueueScene, gone: int) -> None:
    for id, run_at in ((1, 10.0), (2, 11.0), (3, 12.0), (4, 5.0), (5, 6.0)):
        scene.put(id, run_at)
    scene.cancel(gone)
    left = [id for id in (4, 5, 1, 2, 3) if id != gone]
    assert scene.queue.size == 4
    assert scene.listed() == left
    assert scene.drain() == left


def test_removing_the_last_job_keeps_the_order(scene: QueueScene) -> None:
    scene.put(1, 10.0)
    scene.put(2, 30.0)
    scene.cancel(2)
    scene.put(3, 20.0)
    scene.put(4, 15.0)
    scene.put(5, 25.0)
    assert scene.drain() == [1, 4, 3, 5]


def test_jobs_can_be_put_after_all_were_removed(scene: QueueScene) -> None:
    for id in (1, 2, 3):
        scene.put(id)
    scene.put(4, 1.0)
    for id in (1, 2, 3, 4):
        scene.cancel(id)
    assert scene.queue.size == 0
    assert scene.queue.first() is None
    scene.put(5, 9.0)
    scene.put(6, 8.0)
    assert scene.drain() == [6, 5]


def test_stale_entries_are_removed_before_they_outnumber_the_jobs(scene: QueueScene) -> None:
    for id in range(1000):
        scene.put(id, 10.0 if id % 2 else 5.0 + id / 1000)
    for id in range(990):
        scene.cancel(id)
        assert entry_count(scene.queue) <= 2 * scene.queue.size + 65
    assert scene.drain() == [990, 992, 994, 996, 998, 991, 993, 995, 997, 999]


def test_the_order_is_right_after_stale_entries_are_removed(scene: QueueScene) -> None:
    for id in range(200):
        scene.put(id, float(200 - id) if id % 3 else 300.0)
    for id in range(0, 200, 2):
        scene.cancel(id)
    expected = sorted((id for id in range(1, 200, 2)), key=lambda id: (scene.jobs[id].run_at, id))
    assert scene.listed() == expected
    assert scene.drain() == expected
