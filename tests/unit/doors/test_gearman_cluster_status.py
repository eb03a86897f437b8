"""Borrowed jobs are left out of the numbers of the server that runs them."""

from geartrain.admin import borrowed_jobs
from geartrain.doors.gearman.cluster_status import StatusCounts, own_counts
from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Loan
from geartrain.engine.job import LiveJob
from geartrain.model import Priority


def test_borrowed_jobs_count_at_their_home_whatever_their_priority() -> None:
    engine = Engine()
    for priority in Priority:
        engine.submit(b"f", priority=int(priority), background=True)
        borrowed = LiveJob(1000 + priority, b"H:x:%d" % priority, b"f", b"", b"", int(priority), False, 0.0, 0.0, "")
        assert engine.borrow(borrowed, Loan())
    counts = own_counts(engine.functions[b"f"], borrowed_jobs.by_function(engine)[b"f"])
    assert counts == StatusCounts(total=3, running=0, high=1, normal=1, low=1)
