"""A live job: its order among others, and what it starts with."""

from geartrain.engine.job import LiveJob, Progress
from geartrain.model import Attempt, JobState


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


def test_only_jobs_that_need_them_have_the_rare_fields() -> None:
    plain, special = job(1, 1.0), job(2, 1.0)
    plain.expires_at = plain.keep_for = plain.count = plain.code = 0
    plain.reducer, plain.reason, plain.failed_attempts = b"", "", None
    assert plain.rare is None
    attempts = [Attempt(1.0, 2.0, "test", b"", "lost")]
    special.expires_at, special.keep_for, special.count, special.code = 5.0, 6.0, 7, 8
    special.reducer, special.reason, special.failed_attempts = b"r", "why", attempts
    numbers = (special.expires_at, special.keep_for, special.count, special.code)
    assert (*numbers, special.reducer, special.reason, special.failed_attempts) == (
        5.0,
        6.0,
        7,
        8,
        b"r",
        "why",
        attempts,
    )
    special.expires_at, special.reason, special.failed_attempts = 0.0, "", None
    assert (special.expires_at, special.reason, special.failed_attempts, special.count) == (0.0, "", None, 7)


def test_progress_defaults() -> None:
    assert Progress(1, 4) == (1, 4, 0, b"")
