"""Jobs of other servers that this one runs. They count at their home, where they are running, and not here."""

from typing import Final, NamedTuple

from geartrain.engine.engine import Engine
from geartrain.engine.lifecycle import RUNNING


class BorrowedCounts(NamedTuple):
    """Borrowed jobs by their state at the borrower."""

    queued: int = 0
    running: int = 0
    by_priority: tuple[int, ...] = (0, 0, 0)  # queued ones, where they are counted by function


NONE: Final = BorrowedCounts()


def counts(engine: Engine) -> BorrowedCounts:
    """Of all functions."""
    if not engine.borrowed:
        return NONE
    running = sum(_is_running(engine, id) for id in engine.borrowed)
    return BorrowedCounts(len(engine.borrowed) - running, running)


def by_function(engine: Engine) -> dict[bytes, BorrowedCounts]:
    """Of the functions that have some."""
    found: dict[bytes, BorrowedCounts] = {}
    for id in engine.borrowed:
        job = engine.jobs.get(id)
        if job is not None:
            queued, running, by_priority = found.get(job.function, NONE)
            is_running = job.state is RUNNING
            if not is_running:
                by_priority = tuple(count + (priority == job.priority) for priority, count in enumerate(by_priority))
            found[job.function] = BorrowedCounts(queued + (not is_running), running + is_running, by_priority)
    return found


def _is_running(engine: Engine, id: int) -> bool:
    job = engine.jobs.get(id)
    return job is not None and job.state is RUNNING
