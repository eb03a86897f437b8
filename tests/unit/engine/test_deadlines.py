"""Deadline heaps: jobs are due in the order of their times, and stale entries are skipped."""

import pytest

from geartrain.engine.deadlines import NEVER, DeadlineHeap, Leases, ScheduledJobs
from geartrain.engine.job import LiveJob
from geartrain.model import JobState


def scheduled(id: int, run_at: float) -> LiveJob:
    job = LiveJob(id, b"H:test:%d" % id, b"f", b"", b"", 1, False, run_at, 0.0, "test")
    job.state = JobState.SCHEDULED
    return job


def leased(id: int, deadline: float) -> LiveJob:
    job = LiveJob(id, b"H:test:%d" % id, b"f", b"", b"", 1, False, 0.0, 0.0, "test")
    job.state = JobState.RUNNING
    job.deadline = deadline
    return job


def planned(*times: float) -> tuple[ScheduledJobs, list[LiveJob]]:
    """A schedule with one job per time."""
    schedule, jobs = ScheduledJobs(), []
    for id, run_at in enumerate(times, 1):
        job = scheduled(id, run_at)
        schedule.add(run_at, job)
        jobs.append(job)
    return schedule, jobs


def due_ids(heap: DeadlineHeap, now: float) -> list[int]:
    """Take what is due, as the engine does."""
    ids = []
    while (job := heap.pop_due(now)) is not None:
        job.state = JobState.QUEUED
        ids.append(job.id)
    return ids


def test_the_base_class_does_not_define_is_current() -> None:
    heap = DeadlineHeap()
    heap.add(1.0, scheduled(1, 1.0))
    with pytest.raises(NotImplementedError):
        heap.next_time()


@pytest.mark.parametrize("heap", [ScheduledJobs(), Leases()])
def test_an_empty_heap(heap: DeadlineHeap) -> None:
    assert heap.next_time() == NEVER
    assert heap.pop_due(1e12) is None
    assert len(heap) == 0
    assert heap.jobs() == []


def test_jobs_come_due_in_the_order_of_their_times() -> None:
    schedule, _ = planned(30.0, 10.0, 20.0)
    assert schedule.next_time() == 10.0
    assert due_ids(schedule, 9.999) == []
    assert due_ids(schedule, 10.0) == [2], "due at its time, not after it"
    assert schedule.next_time() == 20.0
    assert due_ids(schedule, 100.0) == [3, 1]
    assert schedule.next_time() == NEVER


def test_equal_times_come_due_in_the_order_of_submission() -> None:
    schedule, _ = planned(5.0, 5.0, 5.0)
    assert due_ids(schedule, 5.0) == [1, 2, 3]


def test_two_objects_with_one_handle_can_have_the_same_time() -> None:
    schedule, (old,) = planned(5.0)
    old.state = JobState.CANCELLED
    schedule.count_stale()
    schedule.add(5.0, scheduled(1, 5.0))
    assert len(schedule) == 1
    assert due_ids(schedule, 5.0) == [1]
    assert len(schedule) == 0


def test_the_length_counts_current_entries() -> None:
    schedule, jobs = planned(1.0, 2.0, 3.0)
    jobs[1].state = JobState.CANCELLED
    schedule.count_stale()
    assert len(schedule) == 2
    assert [job.id for job in schedule.jobs()] == [1, 3]
    assert due_ids(schedule, 1.0) == [1]
    assert schedule.next_time() == 3.0, "the stale entry is skipped"
    assert len(schedule) == 1


def test_jobs_are_listed_soonest_first() -> None:
    schedule, _ = planned(3.0, 1.0, 2.0)
    assert [job.id for job in schedule.jobs()] == [2, 3, 1]
    assert len(schedule) == 3, "listing removes nothing"


def test_a_rescheduled_job_is_due_only_at_its_new_time() -> None:
    schedule, (job,) = planned(5.0)
    assert schedule.pop_due(5.0) is job
    job.run_at = 8.0
    schedule.add(8.0, job)
    assert schedule.pop_due(7.0) is None
    assert schedule.pop_due(8.0) is job


def test_a_lease_is_current_while_the_job_runs_with_that_deadline() -> None:
    leases = Leases()
    job = leased(1, 50.0)
    leases.add(50.0, job)
    assert leases.next_time() == 50.0
    job.deadline = 0.0
    leases.count_stale()
    job.deadline = 70.0
    leases.add(70.0, job)
    assert leases.next_time() == 70.0
    assert leases.pop_due(60.0) is None
    assert leases.pop_due(70.0) is job
    assert len(leases) == 0


def test_a_job_that_is_rescheduled_to_the_same_time_is_listed_once() -> None:
    schedule, (job, *others) = planned(*[50.0] * 200)
    job.state = JobState.QUEUED
    schedule.count_stale()
    job.state = JobState.SCHEDULED
    schedule.add(50.0, job)
    assert len(schedule) == 200
    assert len(schedule.jobs()) == 200
    for other in others[:150]:
        other.state = JobState.CANCELLED
        schedule.count_stale()
    assert len(schedule) == len(schedule.jobs()) == 50
    assert due_ids(schedule, 50.0) == [1, *range(152, 201)]
    assert len(schedule) == 0
    assert schedule.next_time() == NEVER


def test_stale_entries_are_removed_before_they_outnumber_the_others() -> None:
    schedule, jobs = planned(*(float(n) for n in range(1, 1001)))
    for count, job in enumerate(jobs[5:], 1):
        job.state = JobState.CANCELLED
        schedule.count_stale()
        assert len(schedule) == 1000 - count
        assert len(schedule._entries) <= 2 * len(schedule) + 65
    assert due_ids(schedule, 1e9) == [1, 2, 3, 4, 5]


def test_the_order_is_right_after_stale_entries_are_removed() -> None:
    times = [float(n * 37 % 300) for n in range(300)]
    schedule, jobs = planned(*times)
    for job in jobs[::2] + jobs[1:100:2]:
        job.state = JobState.CANCELLED
        schedule.count_stale()
    left = [job for job in jobs if job.state is JobState.SCHEDULED]
    assert due_ids(schedule, 1e9) == [job.id for job in sorted(left)]
