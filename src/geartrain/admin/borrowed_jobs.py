"""Jobs of other servers that this one runs. They count at their home, where they are running, and not here."""

from typing import Final, NamedTuple

from geartrain.engine.engine import Engine
from geartrain.engine.lifecycle import RUNNING


class BorrowedCounts(NamedTuple):
    """Borrowed jobs by their state at the borrower."""

    queued: int = 0
    running: int = 0


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
            queued, running = found.get(job.function, NONE)
            is_running = job.state is RUNNING
            found[job.function] = BorrowedCounts(queued + (not is_running), running + is_running)
    return found


def _is_running(engine: Engine, id: int) -> bool:
    job = engine.jobs.get(id)
    return job is not None and job.state is RUNNING
