"""A live job: its order among others, and what it starts with."""

from geartrain.engine.job import LiveJob, Progress
from geartrain.model import JobState


def job(id: int, run_at: float) -> LiveJob:
    return LiveJob(id, b"H:test:%d" % id, b"f", b"", b"", 1, False, run_at, 0.0, "test")


def test_the_earlier_one_comes_first() -> None:
    assert job(2, 1.0) < job(1, 2.0)
    assert not job(1, 2.0) < job(2, 1.0)


def test_at_the_same_time_the_one_submitted_first_comes_first() -> None:
    assert job(1, 5.0) < job(2, 5.0)
    assert not job(2, 5.0) < job(1, 5.0)


def test_jobs_compare_by_identity() -> None:
    one, same_words = job(1, 1.0), job(1, 1.0)
    assert len({one, same_words}) == 2
    assert not one < same_words
    assert not same_words < one


def test_a_new_job_has_neither_owner_nor_watchers() -> None:
    new = job(1, 1.0)
    assert (new.state, new.owner, new.watchers, new.progress) == (JobState.QUEUED, None, None, None)
    assert (new.attempts, new.count, new.timeout, new.deadline, new.reason) == (0, 0, 0.0, 0.0, "")


def test_progress_defaults() -> None:
    assert Progress(1, 4) == (1, 4, 0, b"")
