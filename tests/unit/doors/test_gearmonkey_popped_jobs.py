"""The handles of popped jobs are bounded by the jobs that live."""

from geartrain.doors.gearmonkey.popped_jobs import PoppedJobs
from geartrain.engine.engine import Engine


def test_jobs_that_left_without_a_word_are_swept() -> None:
    engine = Engine()
    living = [engine.submit(b"f", background=True) for _ in range(10)]
    popped = PoppedJobs(engine)
    for job in living:
        popped.add(job.handle)
    for number in range(100_000):
        popped.add(b"H:gone:%d" % number)
    assert len(popped) < 2000
    assert all(job.handle in popped for job in living)


def test_many_living_jobs_stay() -> None:
    engine = Engine()
    popped = PoppedJobs(engine)
    living = [engine.submit(b"f", background=True) for _ in range(5000)]
    for job in living:
        popped.add(job.handle)
    assert len(popped) == len(living)
    popped.discard(living[0].handle)
    assert living[0].handle not in popped
