"""Every packet that a server receives: what it does, and the table of all of them.

A handler parses the packet, calls one verb of the engine, and answers. Texts of errors are gearmand's where gearmand
has that error. Real workers omit the NUL between a handle and empty data; that is accepted.

A WireError that is raised here is not fatal: the packet was complete, so the next one can be read.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from geartrain import escape
from geartrain.doors import distant_job
from geartrain.doors.gearman import scheduled_time, unique
from geartrain.engine import names
from geartrain.engine.interfaces import Watcher
from geartrain.engine.job import LiveJob, Progress
from geartrain.engine.lifecycle import RESERVING
from geartrain.errors import QueueFullError, WireError
from geartrain.model import Priority
from geartrain.runtime.other_servers import DistantJob, JobName
from geartrain.wire import gearman as wire

if TYPE_CHECKING:
    from geartrain.doors.gearman.connection import GearmanConnection

HandlerFunction = Callable[["GearmanConnection", bytes, int, int], None]

_DOOR: Final = "gearman"
_LAST_EPOCH: Final = 2**63 - 1
_NORMAL: Final = int(Priority.NORMAL)
_UINT32: Final = 0xFFFFFFFF
_LONG_MAX: Final = 2**63 - 1
_LAST_TIMEOUT: Final = 2**31  # in either unit; a longer one can only be a mistake
_SHORTEST_TIMEOUT: Final = 1.0  # gearmand's floor

# gearmand's texts when a worker reports on a job that it does not run.
_NO_SUCH_RESULT: Final = "Job given in work result not found"
_NO_SUCH_JOB: Final = "Job does not exist on server"
_NO_SUCH_EXCEPTION: Final = "An exception was received for a job that does not exist"
_HANDLE_TOO_LONG: Final = "Error occurred due to GEARMAND_JOB_HANDLE_SIZE being too small from snprintf"
# What gearmand answers when its queue plugin fails.
_NOT_DURABLE: Final = wire.about_job(wire.ERROR, b"QUEUE_ERROR", b"QUEUE_ERROR")


class Handler:
    """Handles one type of packet. An object, because mypyc calls a method directly, without packing arguments."""

    __slots__ = ()

    def handle(self, connection: "GearmanConnection", data: bytes, start: i64, end: i64) -> None:
        """Do what the packet says. Its body lies in `data` from `start` to `end`."""
        raise NotImplementedError


class FunctionHandler(Handler):
    """Calls a function, for packets that are not sent a hundred thousand times a second."""

    __slots__ = ("function",)

    def __init__(self, function: HandlerFunction) -> None:
        self.function = function

    def handle(self, connection: "GearmanConnection", data: bytes, start: i64, end: i64) -> None:
        """Call it."""
        self.function(connection, data, start, end)


class Submit(Handler):
    """One of the six SUBMIT_JOB packets."""

    __slots__ = ("background", "kind", "priority")

    def __init__(self, kind: int, priority: Priority, background: bool) -> None:
        self.kind = kind
        self.priority = int(priority)
        self.background = background

    def handle(self, connection: "GearmanConnection", data: bytes, start: i64, end: i64) -> None:
        """Create the job, and answer JOB_CREATED: at once, or when a background job is durable."""
        first = wire.nul(data, start, end)
        second = wire.nul(data, first + 1, end) if first >= 0 else first
        if second < 0:
            raise wire.too_few_fields(self.kind)
        payload = data[second + 1 : end]
        key = unique.key(data[first + 1 : second], payload) if second > first + 1 else b""
        background = self.background
        watcher = None if background else connection.watch()
        try:
            job = connection.engine.submit(
                data[start:first], key, payload, self.priority, background, watcher, 0.0, _DOOR
            )
        except QueueFullError:
            connection.error("QUEUE_ERROR", "Job queue is full")
            return
        if job.state is RESERVING:
            if background:
                connection.acknowledge_job(job, _created, _NOT_DURABLE)
            else:
                connection.write_handle(job, _created)
            return
        created = wire.CREATED_HEADERS[len(job.handle)] + job.handle
        if background:
            connection.acknowledge(created, _NOT_DURABLE)
        else:
            connection.write(created)


def submit_at_epoch(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """SUBMIT_JOB_EPOCH: as with gearmand, what is not a number counts as 0, and 0 or a past time means now."""
    function, key, when, payload = wire.fields(wire.SUBMIT_JOB_EPOCH, data, start, end)
    run_at = wire.number(when)
    if run_at > _LAST_EPOCH:
        raise WireError("INVALID_PACKET", "The epoch time is out of range", fatal=False)
    _create(connection, function, key, payload, run_at=float(run_at) if run_at > connection.engine.now else 0.0)


def submit_at_scheduled_time(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """SUBMIT_JOB_SCHED: once, at the next minute that matches."""
    function, key, *times, payload = wire.fields(wire.SUBMIT_JOB_SCHED, data, start, end)
    run_at = scheduled_time.next_match(times, connection.engine.now)
    _create(connection, function, key, payload, run_at=run_at)


def submit_reduce(kind: int, background: bool) -> HandlerFunction:
    """The handler of SUBMIT_REDUCE_JOB and its background twin; the fifth field is data, the fourth unused."""

    def handle(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
        function, key, reducer, _, payload = wire.fields(kind, data, start, end)
        watcher = None if background else connection.watch()
        _create(connection, function, key, payload, background=background, watcher=watcher, reducer=reducer)

    return handle


def get_status(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """GET_STATUS: whether a handle is known, runs, and how far it is."""
    handle = wire.only_argument(data, start, end)
    if len(handle) > wire.MAX_HANDLE:
        raise WireError("ARGUMENT_TOO_LARGE", f"A handle has at most {wire.MAX_HANDLE} bytes", fatal=False)
    job = connection.engine.find(handle)
    if job is None and connection.tick_loop.others.exist:
        distant_job.answer(
            connection,
            JobName(handle=handle),
            lambda found: wire.about_job(wire.STATUS_RES, handle, _distant_status(found)),
        )
        return
    job = connection.engine.visible(job)
    connection.write(wire.about_job(wire.STATUS_RES, handle, _status(job)))


def get_status_unique(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """GET_STATUS_UNIQUE: the same for a unique ID, with the number of waiting clients."""
    key = wire.only_argument(data, start, end)
    if len(key) > wire.MAX_UNIQUE:
        raise unique.too_large()
    job = connection.engine.find_unique(key) if key else None
    if job is None and b"%00" in key:  # perhaps the escaped form of a key that another protocol's client chose
        job = connection.engine.find_unique(escape.unescape(key))
    if job is None and key and connection.tick_loop.others.exist:
        distant_job.answer(
            connection,
            JobName(unique=key),
            lambda found: _status_of_key(key, _distant_status(found), found.clients if found is not None else 0),
        )
        return
    job = connection.engine.visible(job)
    clients = len(job.watchers or ()) if job is not None else 0
    connection.write(_status_of_key(key, _status(job), clients))


def _status_of_key(key: bytes, status: bytes, clients: int) -> bytes:
    return wire.about_job(wire.STATUS_RES_UNIQUE, key, b"%b\0%d" % (status, clients))


def echo(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """ECHO_REQ: the same bytes back. From a worker with a lease it is a heartbeat."""
    worker = connection.worker
    if worker is not None and worker.lease is not None:
        worker.lease.renew()
    connection.write(wire.response(wire.ECHO_RES, data[start:end]))


def set_option(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """OPTION_REQ: gearmand's one option, and our own. The name comes back as it was written."""
    option = data[start:end]
    name = option.removesuffix(b"\0").lower()
    if name == b"exceptions":
        connection.wants_exceptions = True
    elif name == wire.GEARTRAIN_WORKER:
        lease = connection.work().announce()
        option = b"%b\0%b" % (name, f"{lease:g}".encode())
    elif name != wire.GEARTRAIN:
        connection.error("UNKNOWN_OPTION", "Server does not recognize given option")
        return
    connection.write(wire.response(wire.OPTION_RES, option))


def _create(
    connection: "GearmanConnection",
    function: bytes,
    key: bytes,
    payload: bytes,
    background: bool = True,
    watcher: Watcher | None = None,
    run_at: float = 0.0,
    reducer: bytes = b"",
) -> None:
    """Submit a job for the packets that are sent less often."""
    key = unique.key(key, payload)
    try:
        job = connection.engine.submit(
            function, key, payload, _NORMAL, background, watcher, run_at, _DOOR, reducer=reducer
        )
    except QueueFullError:
        connection.error("QUEUE_ERROR", "Job queue is full")
        return
    if background:
        connection.acknowledge_job(job, _created, _NOT_DURABLE)
    else:
        connection.write_handle(job, _created)


def _created(handle: bytes) -> bytes:
    return wire.response(wire.JOB_CREATED, handle)


def _status(job: LiveJob | None) -> bytes:
    """Known, running, numerator and denominator, as in the status packets."""
    if job is None:
        return b"0\x000\x000\x000"
    progress = job.progress
    numerator, denominator = (progress.numerator, progress.denominator) if progress else (0, 0)
    return b"1\0%d\0%d\0%d" % (job.owner is not None, numerator, denominator)


def _distant_status(job: DistantJob | None) -> bytes:
    """The same of a job that another server has."""
    if job is None or job.is_dead:
        return _status(None)
    return b"1\0%d\0%d\0%d" % (job.is_running, job.numerator, job.denominator)


def can_do(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """CAN_DO: the worker offers a function."""
    action = connection.gearman.options.timeout_action  # of a limit that the function has on the server
    connection.engine.register(connection.work(), wire.only_argument(data, start, end), 0.0, action)


def can_do_timeout(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """CAN_DO_TIMEOUT: the same with a limit on the time of each job; 0 or not a number means no limit."""
    function, text = wire.fields(wire.CAN_DO_TIMEOUT, data, start, end)
    options = connection.gearman.options
    count = wire.number(text)
    if count > _LAST_TIMEOUT:
        limit = f"{_LAST_TIMEOUT} {options.timeout_unit}"
        raise WireError("ARGUMENT_TOO_LARGE", f"A timeout has at most {limit}", fatal=False)
    seconds = count / 1000 if options.timeout_unit == "milliseconds" else float(count)
    timeout = max(seconds, _SHORTEST_TIMEOUT) if seconds > 0 else 0.0
    connection.engine.register(connection.work(), function, timeout, options.timeout_action)


def cant_do(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """CANT_DO: the worker no longer offers a function."""
    if connection.worker is not None:
        connection.engine.unregister(connection.worker, wire.only_argument(data, start, end))


def reset_abilities(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """RESET_ABILITIES: the worker offers no function; if it was asleep, it stays asleep."""
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
    name = wire.only_argument(data, start, end)[: wire.MAX_CLIENT_ID]
    names.check_worker(name)
    connection.client_id = name
    if connection.worker is not None:
        connection.worker.name = connection.client_id


class Grab(Handler):
    """One of the three GRAB_JOB packets."""

    __slots__ = ("kind",)

    def __init__(self, kind: int) -> None:
        self.kind = kind

    def handle(self, connection: "GearmanConnection", data: bytes, start: i64, end: i64) -> None:
        """JOB_ASSIGN, or NO_JOB if there is none: at once, or after the grab has lingered."""
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
        """Complete the job: nearly always the only one that the worker runs, so its handle is known."""
        worker = connection.work()
        job = worker.running.single
        separator = start + len(job.handle) if job is not None else end
        if job is not None and separator < end and not data[separator] and data[start:separator] == job.handle:
            connection.engine.complete(worker, job, data[separator + 1 : end])
            return
        separator = wire.nul(data, start, end)
        if separator < 0:  # Perl's workers omit the NUL when the result is empty
            handle, result = data[start:end], b""
        else:
            # Never past `end`: compiled, a slice whose start is past its end is an error and not empty.
            handle, result = data[start:separator], data[separator + 1 : end]
        job = worker.running.get(handle)
        if job is not None:
            connection.engine.complete(worker, job, result)
        elif not worker.is_forgiven(handle):
            connection.error("JOB_NOT_FOUND", _NO_SUCH_RESULT)


def work_fail(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """WORK_FAIL: the job failed, and is not tried again."""
    handle = wire.only_argument(data, start, end)
    if len(handle) > wire.MAX_HANDLE:
        raise WireError("ARGUMENT_TOO_LARGE", _HANDLE_TOO_LONG, fatal=False)
    worker = connection.work()
    job = worker.running.get(handle)
    if job is not None:
        connection.engine.fail(worker, job)
    elif not worker.is_forgiven(handle):
        connection.error("JOB_NOT_FOUND", _NO_SUCH_RESULT)


def work_exception(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """WORK_EXCEPTION: the job failed, with data. Perl's workers send WORK_FAIL after it, which is ignored."""
    handle, _, exception = data[start:end].partition(b"\0")
    worker = connection.work()
    job = _running(connection, handle, _NO_SUCH_EXCEPTION)
    if job is not None:
        connection.engine.raise_exception(worker, job, exception)
        worker.forgive_late(handle)


def work_status(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """WORK_STATUS: the progress of the job. Perl's workers may omit the denominator."""
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
    """A number as gearmand stores it: C's atoi, truncated to 32 bits."""
    return max(min(wire.number(text), _LONG_MAX), -_LONG_MAX - 1) & _UINT32


def _running(connection: "GearmanConnection", handle: bytes, error: str) -> LiveJob | None:
    """The job of that handle if this worker runs it; otherwise None, and JOB_NOT_FOUND to the worker."""
    worker = connection.work()
    job = worker.running.get(handle)
    if job is None and handle not in (worker.forgiven or ()):
        connection.error("JOB_NOT_FOUND", error)
    return job


def _not_expected(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    connection.error("INVALID_COMMAND", "Command not expected")


_FREQUENT: Final[dict[int, Handler]] = {
    wire.SUBMIT_JOB: Submit(wire.SUBMIT_JOB, Priority.NORMAL, background=False),
    wire.GRAB_JOB: Grab(wire.GRAB_JOB),
    wire.WORK_COMPLETE: WorkComplete(),
    wire.SUBMIT_JOB_BG: Submit(wire.SUBMIT_JOB_BG, Priority.NORMAL, background=True),
    wire.SUBMIT_JOB_HIGH: Submit(wire.SUBMIT_JOB_HIGH, Priority.HIGH, background=False),
    wire.GRAB_JOB_UNIQ: Grab(wire.GRAB_JOB_UNIQ),
    wire.SUBMIT_JOB_HIGH_BG: Submit(wire.SUBMIT_JOB_HIGH_BG, Priority.HIGH, background=True),
    wire.SUBMIT_JOB_LOW: Submit(wire.SUBMIT_JOB_LOW, Priority.LOW, background=False),
    wire.SUBMIT_JOB_LOW_BG: Submit(wire.SUBMIT_JOB_LOW_BG, Priority.LOW, background=True),
    wire.GRAB_JOB_ALL: Grab(wire.GRAB_JOB_ALL),
}

_OTHERS: Final[dict[int, HandlerFunction]] = {
    wire.CAN_DO: can_do,
    wire.CANT_DO: cant_do,
    wire.RESET_ABILITIES: reset_abilities,
    wire.PRE_SLEEP: pre_sleep,
    wire.WORK_STATUS: work_status,
    wire.WORK_FAIL: work_fail,
    wire.GET_STATUS: get_status,
    wire.ECHO_REQ: echo,
    wire.SET_CLIENT_ID: set_client_id,
    wire.CAN_DO_TIMEOUT: can_do_timeout,
    wire.ALL_YOURS: all_yours,
    wire.WORK_EXCEPTION: work_exception,
    wire.OPTION_REQ: set_option,
    wire.WORK_DATA: work_data,
    wire.WORK_WARNING: work_warning,
    wire.SUBMIT_JOB_SCHED: submit_at_scheduled_time,
    wire.SUBMIT_JOB_EPOCH: submit_at_epoch,
    wire.SUBMIT_REDUCE_JOB: submit_reduce(wire.SUBMIT_REDUCE_JOB, background=False),
    wire.SUBMIT_REDUCE_JOB_BG: submit_reduce(wire.SUBMIT_REDUCE_JOB_BG, background=True),
    wire.GET_STATUS_UNIQUE: get_status_unique,
}


def _handler(kind: int) -> Handler:
    """What is in neither table is not for a server to receive."""
    return _FREQUENT.get(kind) or FunctionHandler(_OTHERS.get(kind, _not_expected))


HANDLERS: Final = [_handler(kind) for kind in range(wire.LAST_TYPE + 1)]
