"""What each packet of a worker does: parse, one engine verb, answer."""

from typing import TYPE_CHECKING

from geartrain.engine.job import Progress
from geartrain.errors import WireError
from geartrain.wire import danga as wire

if TYPE_CHECKING:
    from geartrain.doors.danga.connection import DangaConnection
    from geartrain.doors.danga.worker import DangaWorker


def worker_connect(connection: "DangaConnection", body: bytes) -> None:
    """Here is what I can do. Said again, it takes the place of what was said before."""
    worker = connection.work()
    names = wire.job_names(body)
    for name in names:
        connection.engine.register(worker, name)
    for name in worker.abilities.keys() - set(names):
        connection.engine.unregister(worker, name)


def worker_disconnect(connection: "DangaConnection", body: bytes) -> None:
    """Goodbye. A job that it still has goes back to its queue."""
    if connection.worker is not None:
        connection.engine.remove_worker(connection.worker)
    connection.close()


def worker_sleep(connection: "DangaConnection", body: bytes) -> None:
    """I am about to sleep. A noop wakes it, at once if there is a job for it."""
    connection.engine.sleep(_without_job(connection, "sleeps"))


def job_assign_req(connection: "DangaConnection", body: bytes) -> None:
    """Got a job for me?"""
    worker = _without_job(connection, "asks for a job")
    job = connection.engine.claim(worker)
    if job is None:
        connection.write(wire.NO_JOB_PACKET)
        return
    worker.assigned = job
    connection.write(wire.job_assign_res(job.function, job.payload))


def job_status_announce(connection: "DangaConnection", body: bytes) -> None:
    """I am so far now."""
    numerator, denominator, seconds_left = wire.status(body)
    job = _with_job(connection, "job_status_announce").job
    if job is not None:
        connection.engine.progress(job, Progress(numerator, denominator, seconds_left))


def job_complete_announce(connection: "DangaConnection", body: bytes) -> None:
    """I have completed my job: with success, or with an error code of the worker's own."""
    worker = _with_job(connection, "job_complete_announce")
    job = worker.job
    worker.assigned = None
    if job is None:
        return
    code, result = wire.outcome(body)
    if code == wire.SUCCESS:
        connection.engine.complete(worker, job, result)
    else:
        connection.engine.raise_exception(worker, job, result, code)


def _without_job(connection: "DangaConnection", does: str) -> "DangaWorker":
    """Its worker, which must have completed what it was handed."""
    worker = connection.work()
    if worker.assigned is not None:
        handle = worker.assigned.handle.decode()
        raise WireError("OUT_OF_TURN", f"a worker {does} while it has job {handle}")
    return worker


def _with_job(connection: "DangaConnection", packet: str) -> "DangaWorker":
    """Its worker, which must have been handed a job."""
    worker = connection.worker
    if worker is None or worker.assigned is None:
        raise WireError("OUT_OF_TURN", f"{packet} came from a worker that has no job")
    return worker
