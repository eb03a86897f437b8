"""What a job is called here: by its function and a name.

A Periodic job's name is its unique key. A job of another door that has none, or one that does not fit, is called
by its handle.
"""

from geartrain.engine.job import LiveJob
from geartrain.wire import periodic as wire


def name(job: LiveJob) -> bytes:
    """What a job is called beside its function."""
    return job.unique if 0 < len(job.unique) < 256 else job.handle


def travelling(job: LiveJob, timeout: int) -> wire.Job:
    """A job as it travels; `timeout` is for one that has none of its own."""
    return wire.Job(
        job.function[:255], name(job), job.payload, int(job.run_at), job.count, int(job.timeout) or timeout
    )
