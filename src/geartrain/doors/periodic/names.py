"""What a job is called here: by its function and a name.

A Periodic job's name is its unique key. A job of another door that has none, or one that does not fit, is called
by its handle.
"""

from typing import Final

from geartrain.engine.engine import Engine
from geartrain.engine.job import LiveJob
from geartrain.wire import periodic as wire

LONGEST: Final = 255  # bytes of a function or a name


def name(job: LiveJob) -> bytes:
    """What a job is called beside its function."""
    return job.unique if 0 < len(job.unique) <= LONGEST else job.handle


def find(engine: Engine, function: bytes, name: bytes) -> LiveJob | None:
    """The job of that function and name, while it waits or runs."""
    home = engine.functions.get(function)
    job = home.unique_jobs.get(name) if home is not None else None
    if job is None:
        job = engine.find(name)
    return job if job is not None and job.function == function else None


def travelling(job: LiveJob, timeout: int) -> wire.PeriodicJob:
    """A job as it travels; `timeout` is for one that has none of its own."""
    return wire.PeriodicJob(
        job.function, name(job), job.payload, int(job.run_at), job.count, int(job.timeout) or timeout
    )
