"""The roster is what a dictionary by id would be, whatever the order in which jobs come and go."""

from hypothesis import given
from hypothesis import strategies as st

from geartrain.engine.job import LiveJob
from geartrain.engine.job_table import JobTable

IDS = st.one_of(st.integers(0, 300), st.integers(2**40, 2**40 + 70), st.integers(0, 2**62 - 1))


def made(id: int) -> LiveJob:
    return LiveJob(id, b"H:host:%d" % id, b"f", b"", b"", 1, True, 0.0, 0.0, "test")


@given(st.lists(IDS))
def test_it_is_what_a_dictionary_would_be(ids: list[int]) -> None:
    roster = JobTable()
    model: dict[int, LiveJob] = {}
    for id in ids:  # each comes and goes in turn
        if id in model:
            roster.drop(model.pop(id))
        else:
            model[id] = made(id)
            roster.add(model[id])
        assert len(roster) == len(model)
        assert bool(roster) == bool(model)
        assert roster.get(id) is model.get(id)
        assert (id in roster) == (id in model)
    assert sorted(roster) == sorted(model)
    assert {job.id: job for job in roster.values()} == model


def test_queue_of_many_jobs_comes_and_goes() -> None:
    roster = JobTable()
    jobs = [made(id) for id in range(1000)]
    for _ in range(2):
        for job in jobs:
            roster.add(job)
        assert list(roster.values()) == jobs
        for job in jobs:
            roster.drop(job)
        assert not roster
        assert list(roster) == []
        roster.clear()


def test_ids_that_no_job_can_have_are_not_there() -> None:
    roster = JobTable()
    roster.add(made(5))
    assert [id for id in (-1, -59, 0, 5 + 64, 10**30, -(10**30)) if id in roster] == []


def test_a_new_job_takes_the_place_of_the_old_one() -> None:
    roster = JobTable()
    old, new = made(7), made(7)
    roster.add(old)
    roster.drop(old)
    roster.add(new)
    assert roster.get(7) is new
    assert len(roster) == 1
