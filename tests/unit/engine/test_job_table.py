"""The table is what a dictionary by id would be, whatever the order in which jobs come and go."""

from hypothesis import given
from hypothesis import strategies as st

from geartrain.engine.job import LiveJob
from geartrain.engine.job_table import JobTable

IDS = st.one_of(st.integers(0, 300), st.integers(2**40, 2**40 + 70), st.integers(0, 2**62 - 1))


def made(id: int) -> LiveJob:
    return LiveJob(id, b"H:host:%d" % id, b"f", b"", b"", 1, True, 0.0, 0.0, "test")


@given(st.lists(IDS))
def test_it_is_what_a_dictionary_would_be(ids: list[int]) -> None:
    table = JobTable()
    model: dict[int, LiveJob] = {}
    for id in ids:  # each comes and goes in turn
        if id in model:
            table.remove(model.pop(id))
        else:
            model[id] = made(id)
            table.add(model[id])
        assert len(table) == len(model)
        assert bool(table) == bool(model)
        assert table.get(id) is model.get(id)
        assert (id in table) == (id in model)
    assert sorted(table) == sorted(model)
    assert {job.id: job for job in table.values()} == model


def test_queue_of_many_jobs_comes_and_goes() -> None:
    table = JobTable()
    jobs = [made(id) for id in range(1000)]
    for _ in range(2):
        for job in jobs:
            table.add(job)
        assert list(table.values()) == jobs
        for job in jobs:
            table.remove(job)
        assert not table
        assert list(table) == []
        table.shrink()


def test_ids_that_no_job_can_have_are_not_there() -> None:
    table = JobTable()
    table.add(made(5))
    assert [id for id in (-1, -59, 0, 5 + 64, 10**30, -(10**30)) if id in table] == []


def test_a_new_job_takes_the_place_of_the_old_one() -> None:
    table = JobTable()
    old, new = made(7), made(7)
    table.add(old)
    table.remove(old)
    table.add(new)
    assert table.get(7) is new
    assert len(table) == 1
