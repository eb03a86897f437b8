"""What a worker runs is found by its handle, whether it is one job or many."""

from hypothesis import given
from hypothesis import strategies as st

from geartrain.engine.job import LiveJob
from geartrain.engine.job_table import HeldJobs

JOBS = [LiveJob(id, b"H:host:%d" % id, b"f", b"", b"", 1, True, 0.0, 0.0, "test") for id in range(4)]


@given(st.lists(st.sampled_from(JOBS)))
def test_it_is_what_a_dictionary_would_be(steps: list[LiveJob]) -> None:
    held = HeldJobs()
    model: dict[bytes, LiveJob] = {}
    for job in steps:  # each comes and goes in turn
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
