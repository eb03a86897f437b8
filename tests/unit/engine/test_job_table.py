"""JobTable and HeldJobs behave like dictionaries."""

from hypothesis import given
from hypothesis import strategies as st

from geartrain.engine.job import LiveJob
from geartrain.engine.job_table import HeldJobs, JobTable

IDS = st.one_of(st.integers(0, 300), st.integers(2**40, 2**40 + 70), st.integers(0, 2**62 - 1))


def made(id: int) -> LiveJob:
    return LiveJob(id, b"H:host:%d" % id, b"f", b"", b"", 1, True, 0.0, 0.0, "test")


@given(st.lists(IDS))
def test_job_table_behaves_like_a_dictionary(ids: list[int]) -> None:
    table = JobTable()
    model: dict[int, LiveJob] = {}
    for id in ids:  # add and remove in turn
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


def test_many_jobs_are_added_and_removed() -> None:
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
        assert table.most == 1024, "whole blocks"
        table.shrink()
        assert table.most == 0


def test_jobs_that_pass_one_by_one_take_the_room_of_one_block() -> None:
    table = JobTable()
    for id in range(1000):
        job = made(id)
        table.add(job)
        table.remove(job)
        assert (list(table), table.most) == ([], 64)


def test_invalid_ids_are_not_found() -> None:
    table = JobTable()
    table.add(made(5))
    assert [id for id in (-1, -59, 0, 5 + 64, 10**30, -(10**30)) if id in table] == []


def test_a_replaced_job_can_be_added_under_the_same_id() -> None:
    table = JobTable()
    old, new = made(7), made(7)
    table.add(old)
    table.remove(old)
    table.add(new)
    assert table.get(7) is new
    assert len(table) == 1


JOBS = [made(id) for id in range(4)]


@given(st.lists(st.sampled_from(JOBS)))
def test_held_jobs_behave_like_a_dictionary(steps: list[LiveJob]) -> None:
    held = HeldJobs()
    model: dict[bytes, LiveJob] = {}
    for job in steps:  # add and remove in turn
        if job.handle in model:
            assert held.remove(job)
            del model[job.handle]
        else:
            held.add(job)
            model[job.handle] = job
        assert held.jobs() == list(model.values())
        assert len(held) == len(model)
        for other in JOBS:
            assert held.get(other.handle) is model.get(other.handle)
            assert (other.handle in held) == (other.handle in model)
            if other.handle not in model:
                assert not held.remove(other)
