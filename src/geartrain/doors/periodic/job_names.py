"""Periodic names a job by its function and a name.

The name is the unique key. A job of another door without a unique key, or with one that is too long, has its handle as
its name.
"""

from typing import Final

from geartrain.engine.engine import Engine
from geartrain.engine.job import LiveJob
from geartrain.wire import periodic as wire

LONGEST: Final = 255  # bytes of a function or a name


def name(job: LiveJob) -> bytes:
    """The name of a job."""
    return job.unique if 0 < len(job.unique) <= LONGEST else job.handle


def find(engine: Engine, function: bytes, name: bytes) -> LiveJob | None:
    """The live job of that function and name."""
    job = engine.unique_jobs.get(function, name)
    if job is None:
        job = engine.find(name)
    return job if job is not None and job.function == function else None


def to_wire(job: LiveJob, timeout: int) -> wire.PeriodicJob:
    """A job for a frame; `timeout` is used if it has none of its own."""
    return wire.PeriodicJob(
        job.function, name(job), job.payload, int(job.run_at), job.count, int(job.timeout) or timeout
    )
