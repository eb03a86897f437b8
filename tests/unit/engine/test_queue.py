"""One waiting line: by time, first come first served, and void places do no harm."""

import pytest

from geartrain.engine.job import LiveJob
from geartrain.engine.queue import JobQueue
from geartrain.model import JobState


class Line:
    """A lane and the jobs that were put into it, by number."""

    def __init__(self) -> None:
        self.queue = JobQueue()
        self.jobs: dict[int, LiveJob] = {}

    def put(self, id: int, run_at: float = 10.0) -> LiveJob:
        job = LiveJob(id, b"H:test:%d" % id, b"f", b"", b"", 1, False, run_at, 0.0, "test")
        self.jobs[id] = job
        self.queue.put(job)
        return job

    def cancel(self, id: int) -> None:
        """What the engine does with a queued job that is over."""
        self.jobs[id].state = JobState.CANCELLED
        self.queue.remove(self.jobs[id])

    def take(self) -> int:
        """What the engine does with the first job."""
        job = self.queue.take()
        job.state = JobState.RUNNING
        return job.id

    def drain(self) -> list[int]:
        return [self.take() for _ in range(self.queue.size)]

    def listed(self) -> list[int]:
        return [job.id for job in self.queue]


@pytest.fixture
def line() -> Line:
    return Line()


def places(queue: JobQueue) -> int:
    """How many jobs the lane still holds in memory, void places included."""
    return len(list(queue._linked())) + len(queue._early or ())


def test_an_empty_lane(line: Line) -> None:
    assert line.queue.size == 0
    assert line.queue.first() is None
    assert line.listed() == []


def test_first_come_first_served_at_one_time(line: Line) -> None:
    for id in range(1, 6):
        line.put(id)
    assert line.queue.size == 5
    assert line.listed() == [1, 2, 3, 4, 5]
    assert line.drain() == [1, 2, 3, 4, 5]
    assert line.queue.size == 0


def test_a_job_that_comes_back_at_the_same_time_stands_last(line: Line) -> None:
    for id in (1, 2, 3):
        line.put(id)
    back = line.queue.take()
    line.queue.put(back)
    line.put(4)
    assert line.drain() == [2, 3, 1, 4]


def test_past_times_go_ahead_in_their_order(line: Line) -> None:
    for id, run_at in ((1, 10.0), (2, 5.0), (3, 7.0), (4, 11.0), (5, 1.0)):
        line.put(id, run_at)
    assert line.listed() == [5, 2, 3, 1, 4]
    assert line.drain() == [5, 2, 3, 1, 4]


def test_past_times_that_are_equal_stand_in_the_order_of_submission(line: Line) -> None:
    for id, run_at in ((1, 10.0), (2, 5.0), (3, 5.0), (4, 5.0)):
        line.put(id, run_at)
    assert line.drain() == [2, 3, 4, 1]


def test_past_times_may_come_between_two_hand_outs(line: Line) -> None:
    line.put(1, 10.0)
    line.put(2, 20.0)
    line.put(3, 5.0)
    assert line.take() == 3
    line.put(4, 15.0)
    assert line.take() == 1
    line.put(5, 20.0)
    assert line.drain() == [4, 2, 5]


def test_first_is_what_take_gives(line: Line) -> None:
    for id, run_at in ((1, 10.0), (2, 5.0), (3, 7.0), (4, 10.0)):
        line.put(id, run_at)
    line.cancel(2)
    seen = []
    while (first := line.queue.first()) is not None:
        assert line.queue.first() is first, "looking changes nothing"
        seen.append(first.id)
        assert line.take() == first.id
    assert seen == [3, 1, 4]


@pytest.mark.parametrize("gone", [1, 2, 3, 4, 5])
def test_whoever_leaves_is_passed_over(line: Line, gone: int) -> None:
    for id, run_at in ((1, 10.0), (2, 11.0), (3, 12.0), (4, 5.0), (5, 6.0)):
        line.put(id, run_at)
    line.cancel(gone)
    left = [id for id in (4, 5, 1, 2, 3) if id != gone]
    assert line.queue.size == 4
    assert line.listed() == left
    assert line.drain() == left


def test_a_void_last_place_does_not_disturb_the_order(line: Line) -> None:
    line.put(1, 10.0)
    line.put(2, 30.0)
    line.cancel(2)
    line.put(3, 20.0)
    line.put(4, 15.0)
    line.put(5, 25.0)
    assert line.drain() == [1, 4, 3, 5]


def test_all_may_leave_and_others_come(line: Line) -> None:
    for id in (1, 2, 3):
        line.put(id)
    line.put(4, 1.0)
    for id in (1, 2, 3, 4):
        line.cancel(id)
    assert line.queue.size == 0
    assert line.queue.first() is None
    line.put(5, 9.0)
    line.put(6, 8.0)
    assert line.drain() == [6, 5]


def test_void_places_are_swept_before_they_outnumber_the_jobs(line: Line) -> None:
    for id in range(1000):
        line.put(id, 10.0 if id % 2 else 5.0 + id / 1000)
    for id in range(990):
        line.cancel(id)
        assert places(line.queue) <= 2 * line.queue.size + 65
    assert line.drain() == [990, 992, 994, 996, 998, 991, 993, 995, 997, 999]


def test_the_order_survives_a_sweep(line: Line) -> None:
    for id in range(200):
        line.put(id, float(200 - id) if id % 3 else 300.0)
    for id in range(0, 200, 2):
        line.cancel(id)
    expected = sorted((id for id in range(1, 200, 2)), key=lambda id: (line.jobs[id].run_at, id))
    assert line.listed() == expected
    assert line.drain() == expected
