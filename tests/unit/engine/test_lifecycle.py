"""The table of transitions is the law, and the diagram says the same as the table."""

import itertools

import pytest

from geartrain.engine import lifecycle
from geartrain.engine.job import LiveJob
from geartrain.errors import LifecycleError
from geartrain.model import JobState

PAIRS = list(itertools.product(JobState, JobState))


def job_in(state: JobState) -> LiveJob:
    job = LiveJob(1, b"H:test:1", b"f", b"", b"", 1, False, 0.0, 0.0, "test")
    job.state = state
    return job


def test_every_state_is_in_the_table() -> None:
    assert set(lifecycle.TRANSITIONS) == set(JobState)


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_enter_allows_what_the_table_allows_and_nothing_else(before: JobState, after: JobState) -> None:
    job = job_in(before)
    if after in lifecycle.TRANSITIONS[before]:
        lifecycle.enter(job, after)
        assert job.state is after
    else:
        with pytest.raises(LifecycleError, match=f"{before.name} to {after.name}"):
            lifecycle.enter(job, after)
        assert job.state is before


def test_the_error_names_the_job() -> None:
    with pytest.raises(LifecycleError, match="H:test:1"):
        lifecycle.enter(job_in(JobState.DONE), JobState.RUNNING)


def test_a_job_that_is_done_stays_done() -> None:
    assert not lifecycle.TRANSITIONS[JobState.DONE]


def test_a_failed_job_can_only_be_retried() -> None:
    assert lifecycle.TRANSITIONS[JobState.FAILED] == {JobState.QUEUED, JobState.BLOCKED}


@pytest.mark.parametrize("state", [JobState.CANCELLED, JobState.EXPIRED])
def test_a_cancelled_or_expired_job_can_only_be_retried_with_its_workflow(state: JobState) -> None:
    assert lifecycle.TRANSITIONS[state] == {JobState.BLOCKED}


def test_a_job_that_reserves_its_key_is_not_run_before_it_is_queued() -> None:
    assert JobState.RUNNING not in lifecycle.TRANSITIONS[JobState.RESERVING]


def test_only_a_queued_job_can_become_running() -> None:
    before_running = {state for state, after in lifecycle.TRANSITIONS.items() if JobState.RUNNING in after}
    assert before_running == {JobState.QUEUED}


def test_every_state_can_be_reached() -> None:
    reached = {JobState.SCHEDULED, JobState.QUEUED, JobState.RESERVING}
    for _ in JobState:
        reached |= {after for state in reached for after in lifecycle.TRANSITIONS[state]}
    assert reached == set(JobState)


def test_the_diagram_has_one_arrow_per_transition() -> None:
    lines = [line.strip() for line in lifecycle.diagram().splitlines()]
    assert lines[0] == "stateDiagram-v2"
    arrows = {tuple(line.split(" --> ")) for line in lines[1:]}
    table = {
        (before.name.lower(), after.name.lower())
        for before, followers in lifecycle.TRANSITIONS.items()
        for after in followers
    }
    ends = {("done", "[*]"), ("failed", "[*]"), ("cancelled", "[*]"), ("expired", "[*]")}
    assert arrows == table | ends | {("[*]", "scheduled"), ("[*]", "queued"), ("[*]", "reserving"), ("[*]", "blocked")}
    assert len(arrows) == len(lines) - 1, "no arrow twice"
