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


def argument(job: LiveJob, timeout: int) -> bytes:
    """A job in a frame; `timeout` is used if it has none of its own."""
    timeout = int(job.timeout) or timeout
    return wire.job_argument(job.function, name(job), job.payload, int(job.run_at), job.count, timeout)
