"""What each packet of a worker does: parse, one engine verb, answer.

Where a handle should be followed by a NUL and more, nothing more counts as empty: real workers send that.
"""

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from geartrain.doors.gearman.handler import Handler
from geartrain.engine.job import LiveJob, Progress
from geartrain.errors import WireError
from geartrain.wire import gearman as wire

if TYPE_CHECKING:
    from geartrain.doors.gearman.connection import GearmanConnection

_UINT32: Final = 0xFFFFFFFF
_LONG_MAX: Final = 2**63 - 1
_LAST_TIMEOUT: Final = 2**31  # of either unit; what is longer can only be a mistake
_SHORTEST_TIMEOUT: Final = 1.0  # gearmand's floor

# gearmand's words when a worker reports on a job that it does not have.
_NO_SUCH_RESULT: Final = "Job given in work result not found"
_NO_SUCH_JOB: Final = "Job does not exist on server"
_NO_SUCH_EXCEPTION: Final = "An exception was received for a job that does not exist"
_HANDLE_TOO_LONG: Final = "Error occurred due to GEARMAND_JOB_HANDLE_SIZE being too small from snprintf"


def can_do(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """CAN_DO: the worker offers a function."""
    connection.engine.register(connection.work(), data[start:end])


def can_do_timeout(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """CAN_DO_TIMEOUT: the same, and its jobs may take so long; 0 or not a number means no limit."""
    function, text = wire.fields(wire.CAN_DO_TIMEOUT, data, start, end)
    options = connection.gearman.options
    count = wire.number(text)
    if count > _LAST_TIMEOUT:
        raise WireError("ARGUMENT_TOO_LARGE", f"A timeout has at most {_LAST_TIMEOUT} {options.timeout_unit}")
    seconds = count / 1000 if options.timeout_unit == "milliseconds" else float(count)
    timeout = max(seconds, _SHORTEST_TIMEOUT) if seconds > 0 else 0.0
    connection.engine.register(connection.work(), function, timeout, options.timeout_action)


def cant_do(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """CANT_DO: the worker offers a function no longer."""
    if connection.worker is not None:
        connection.engine.unregister(connection.worker, data[start:end])


def reset_abilities(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """RESET_ABILITIES: the worker offers nothing any more; if it sleeps, it sleeps on."""
    worker = connection.worker
    if worker is not None:
        asleep = worker.idle
        connection.engine.remove_worker(worker)
        if asleep:
            connection.engine.sleep(worker)


def pre_sleep(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """PRE_SLEEP: the worker waits for NOOP, which it gets at once if there is a job."""
    connection.engine.sleep(connection.work())


def all_yours(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """ALL_YOURS: the worker has no other server, and may be handed jobs unasked when it sleeps."""
    connection.work().all_yours = True


def set_client_id(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """SET_CLIENT_ID: a name for people, cut where gearmand cuts it."""
    connection.client_id = data[start:end][: wire.MAX_CLIENT_ID]
    if connection.worker is not None:
        connection.worker.name = connection.client_id


class Grab(Handler):
    """One of the three GRAB_JOB packets."""

    __slots__ = ("kind",)

    def __init__(self, kind: int) -> None:
        self.kind = kind

    def handle(self, connection: "GearmanConnection", data: bytes, start: i64, end: i64) -> None:
        """Hand out a job; if there is none, say so at once or after a moment."""
        worker = connection.work()
        job = connection.engine.claim(worker)
        if job is not None:
            worker.assign(job, self.kind)
        elif not connection.gearman.lingers.hold(worker, self.kind):
            connection.write(wire.NO_JOB_PACKET)


class WorkComplete(Handler):
    """WORK_COMPLETE."""

    __slots__ = ()

    def handle(self, connection: "GearmanConnection", data: bytes, start: i64, end: i64) -> None:
        """The job is done."""
        separator = wire.nul(data, start, end)
        worker = connection.work()
        if separator < 0:  # Perl's workers leave the NUL away when the result is empty
            handle, result = data[start:end], b""
        else:
            # Never from behind `end`: compiled, a slice whose start lies behind its end is an error and not empty.
            handle, result = data[start:separator], data[separator + 1 : end]
        job = worker.running.get(handle)
        if job is not None:
            connection.engine.complete(worker, job, result)
        elif not worker.is_forgiven(handle):
            connection.error("JOB_NOT_FOUND", _NO_SUCH_RESULT)


def work_fail(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """WORK_FAIL: the job failed, finally."""
    handle = wire.only_argument(data, start, end)
    if len(handle) > wire.MAX_HANDLE:
        raise WireError("ARGUMENT_TOO_LARGE", _HANDLE_TOO_LONG)
    worker = connection.work()
    job = worker.running.get(handle)
    if job is not None:
        connection.engine.fail(worker, job)
    elif not worker.is_forgiven(handle):
        connection.error("JOB_NOT_FOUND", _NO_SUCH_RESULT)


def work_exception(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """WORK_EXCEPTION: the job failed, with words. Perl's workers say WORK_FAIL after it, which is passed over."""
    handle, _, words = data[start:end].partition(b"\0")
    worker = connection.work()
    job = _running(connection, handle, _NO_SUCH_EXCEPTION)
    if job is not None:
        connection.engine.raise_exception(worker, job, words)
        worker.forgive_late(handle)


def work_status(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """WORK_STATUS: how far the job is. Perl's workers may leave the denominator away."""
    handle, _, verbatim = data[start:end].partition(b"\0")
    numerator, separator, denominator = verbatim.partition(b"\0")
    job = _running(connection, handle, _NO_SUCH_RESULT)
    if job is not None:
        if not separator:
            verbatim, denominator = numerator + b"\x000", b"0"
        connection.engine.progress(job, Progress(_uint32(numerator), _uint32(denominator), 0, verbatim))


def work_data(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """WORK_DATA: a part of the result."""
    handle, _, part = data[start:end].partition(b"\0")
    job = _running(connection, handle, _NO_SUCH_JOB)
    if job is not None:
        connection.engine.data(job, part)


def work_warning(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """WORK_WARNING: a warning."""
    handle, _, warning = data[start:end].partition(b"\0")
    job = _running(connection, handle, _NO_SUCH_JOB)
    if job is not None:
        connection.engine.warning(job, warning)


def _uint32(text: bytes) -> int:
    """A number as gearmand keeps it: C's atoi, cut to 32 bits."""
    return max(min(wire.number(text), _LONG_MAX), -_LONG_MAX - 1) & _UINT32


def _running(connection: "GearmanConnection", handle: bytes, complaint: str) -> LiveJob | None:
    """The job of that handle if this worker has it; otherwise the worker is told so."""
    worker = connection.work()
    job = worker.running.get(handle)
    if job is None and handle not in (worker.forgiven or ()):
        connection.error("JOB_NOT_FOUND", complaint)
    return job
