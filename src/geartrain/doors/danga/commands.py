"""Every packet that a server receives: what it does, and the table of all of them.

Requests of applications are carried out in their order (`request_order.py`); packets of workers at once.
"""

import functools
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from geartrain.doors.danga import completion, request_order
from geartrain.engine.job import Progress
from geartrain.errors import RequestError, WireError
from geartrain.model import id_from_handle
from geartrain.wire import danga as wire

if TYPE_CHECKING:
    from geartrain.doors.danga.connection import DangaConnection
    from geartrain.doors.danga.worker import DangaWorker

HandlerFunction = Callable[["DangaConnection", bytes], None]

_DOOR: Final = "danga"


class Handler:
    """Handles one type of packet. An object, because mypyc calls a method directly, without packing arguments."""

    __slots__ = ()

    def handle(self, connection: "DangaConnection", body: bytes) -> None:
        """Do what the packet says."""
        raise NotImplementedError


class FunctionHandler(Handler):
    """Calls a function, for packets that are not sent for every job."""

    __slots__ = ("function",)

    def __init__(self, function: HandlerFunction) -> None:
        self.function = function

    def handle(self, connection: "DangaConnection", body: bytes) -> None:
        """Call it."""
        self.function(connection, body)


class JobCreateHandler(Handler):
    """job_create_req."""

    __slots__ = ()

    def handle(self, connection: "DangaConnection", body: bytes) -> None:
        """Create a job. The flags are reserved, and ignored."""
        name, key, _, type, args = wire.creation(body)
        passes = type != wire.SYNC_WAIT
        if connection.requests.may_pass(passes):
            _create(connection, name, key, type, args)  # as most are: nothing has to be kept for later
        else:
            step = functools.partial(_create, connection, name, key, type, args)
            connection.carry_out(step, len(body), passes_sync_job=passes)


def job_status_req(connection: "DangaConnection", body: bytes) -> None:
    """Answer with the progress of a job. The seconds left are the worker's own estimate."""
    step = functools.partial(_send_status, connection, wire.handle(body))
    connection.carry_out(step, len(body))


def job_complete_req(connection: "DangaConnection", body: bytes) -> None:
    """Answer with the result of a job."""
    step = functools.partial(_send_completion, connection, wire.handle(body))
    connection.carry_out(step, len(body))


def _create(connection: "DangaConnection", name: bytes, key: bytes, type: int, args: bytes) -> None:
    if type == wire.SYNC_WAIT:
        _create_sync(connection, name, key, args)
    else:
        _create_async(connection, name, key, args, type == wire.ASYNC_HANDLE)


def _create_sync(connection: "DangaConnection", name: bytes, key: bytes, args: bytes) -> None:
    try:
        job = connection.engine.submit(name, key, args, watcher=connection.watch(), door=_DOOR)
    except RequestError as error:
        _refuse_job(connection, error)
        return
    connection.requests.state = request_order.SYNC_JOB
    connection.write(wire.job_create_res(job.handle))


def _create_async(connection: "DangaConnection", name: bytes, key: bytes, args: bytes, keeps_result: bool) -> None:
    try:
        job = connection.engine.submit(name, key, args, background=True, door=_DOOR, keeps_result=keeps_result)
    except RequestError as error:
        _refuse_job(connection, error)
        return
    if keeps_result:
        connection.engine.keep_result(job)
    connection.acknowledge_job(job, wire.job_create_res, wire.REFUSED_PACKET)


def _refuse_job(connection: "DangaConnection", error: RequestError) -> None:
    """An empty handle: the draft has no packet for errors."""
    connection.log(logging.WARNING, "job refused", str(error))
    connection.write(wire.REFUSED_PACKET)


def _send_status(connection: "DangaConnection", handle: bytes) -> None:
    if handle == wire.HEARTBEAT:
        connection.write(wire.job_status_res(round(connection.work().heartbeat() * 1000), 1000))
        return
    job = connection.engine.visible(connection.engine.find(handle))
    if job is None and id_from_handle(handle):  # a handle of ours: its record has the last status
        connection.look_up(handle, status=True)
        return
    progress = job.progress if job is not None else None
    numbers = progress[:3] if progress is not None else (0, 0, 0)
    connection.write(wire.job_status_res(*numbers))


def _send_completion(connection: "DangaConnection", handle: bytes) -> None:
    engine = connection.engine
    if not handle or engine.find(handle) is not None:
        connection.write(wire.INCOMPLETE_PACKET)
    elif engine.visible(engine.find_dead(handle)) is not None:
        connection.acknowledge(completion.GIVEN_UP_PACKET, wire.INCOMPLETE_PACKET)
    else:
        connection.look_up(handle, status=False)


def worker_connect(connection: "DangaConnection", body: bytes) -> None:
    """Offer functions, in place of those that were offered before."""
    worker = connection.work()
    names = wire.job_names(body)
    for name in names:
        connection.engine.register(worker, name)
    for name in worker.abilities.keys() - set(names):
        connection.engine.unregister(worker, name)


def worker_disconnect(connection: "DangaConnection", body: bytes) -> None:
    """Disconnect. The worker's job is requeued."""
    if connection.worker is not None:
        connection.engine.remove_worker(connection.worker)
    connection.close()


def worker_sleep(connection: "DangaConnection", body: bytes) -> None:
    """Wait for a noop, which comes at once if there is a job."""
    connection.engine.sleep(_without_job(connection, "worker_sleep"))


class JobAssignHandler(Handler):
    """job_assign_req."""

    __slots__ = ()

    def handle(self, connection: "DangaConnection", body: bytes) -> None:
        """Assign a job, if there is one."""
        _without_job(connection, "job_assign_req").ask()


def job_status_announce(connection: "DangaConnection", body: bytes) -> None:
    """Report progress."""
    numerator, denominator, seconds_left = wire.status(body)
    job = _with_job(connection, "job_status_announce").job
    if job is not None:
        connection.engine.progress(job, Progress(numerator, denominator, seconds_left))


class JobCompleteHandler(Handler):
    """job_complete_announce."""

    __slots__ = ()

    def handle(self, connection: "DangaConnection", body: bytes) -> None:
        """End the worker's job: with success, or with an error code of the worker's own."""
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


def _without_job(connection: "DangaConnection", packet: str) -> "DangaWorker":
    """The connection's worker, which must have completed its last job."""
    worker = connection.work()
    if worker.is_asking:
        raise WireError("OUT_OF_TURN", f"{packet} came from a worker that waits for the answer to job_assign_req")
    if worker.assigned is not None:
        handle = worker.assigned.handle.decode()
        raise WireError("OUT_OF_TURN", f"{packet} came from a worker that has job {handle}")
    return worker


def _with_job(connection: "DangaConnection", packet: str) -> "DangaWorker":
    """The connection's worker, which must have been assigned a job."""
    worker = connection.worker
    if worker is None or worker.assigned is None:
        raise WireError("OUT_OF_TURN", f"{packet} came from a worker that has no job")
    return worker


def _refused(connection: "DangaConnection", body: bytes) -> None:
    raise AssertionError("the reader refuses packets that are for workers and applications")


_FREQUENT: Final[dict[int, Handler]] = {
    wire.JOB_CREATE_REQ: JobCreateHandler(),
    wire.JOB_ASSIGN_REQ: JobAssignHandler(),
    wire.JOB_COMPLETE_ANNOUNCE: JobCompleteHandler(),
}

_OTHERS: Final[dict[int, HandlerFunction]] = {
    wire.WORKER_CONNECT: worker_connect,
    wire.WORKER_DISCONNECT: worker_disconnect,
    wire.WORKER_SLEEP: worker_sleep,
    wire.JOB_STATUS_ANNOUNCE: job_status_announce,
    wire.JOB_STATUS_REQ: job_status_req,
    wire.JOB_COMPLETE_REQ: job_complete_req,
}

HANDLERS: Final[dict[int, Handler]] = {
    **_FREQUENT,
    **{kind: FunctionHandler(function) for kind, function in _OTHERS.items()},
}
BY_TYPE: Final = [HANDLERS.get(kind, FunctionHandler(_refused)) for kind in range(len(wire.PACKETS))]
