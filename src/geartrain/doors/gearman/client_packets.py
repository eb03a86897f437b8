"""What each packet of a client does: parse, one engine verb, answer."""

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from geartrain.doors.gearman import dates, unique
from geartrain.doors.gearman.handler import Function, Handler
from geartrain.engine.interfaces import Watcher
from geartrain.engine.job import LiveJob
from geartrain.errors import QueueFullError, WireError
from geartrain.model import Priority
from geartrain.wire import gearman as wire

if TYPE_CHECKING:
    from geartrain.doors.gearman.connection import GearmanConnection

_DOOR: Final = "gearman"
_LAST_EPOCH: Final = 2**63 - 1
_NORMAL: Final = int(Priority.NORMAL)
# What gearmand says when its queue plugin fails.
_NOT_DURABLE: Final = wire.about_job(wire.ERROR, b"QUEUE_ERROR", b"QUEUE_ERROR")


class Submit(Handler):
    """One of the six SUBMIT_JOB packets."""

    __slots__ = ("background", "kind", "priority")

    def __init__(self, kind: int, priority: Priority, background: bool) -> None:
        self.kind = kind
        self.priority = int(priority)
        self.background = background

    def handle(self, connection: "GearmanConnection", data: bytes, start: i64, end: i64) -> None:
        """Create the job, and say so: at once, or when it is durable."""
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
        created = wire.CREATED_HEADERS[len(job.handle)] + job.handle
        if background:
            connection.acknowledge(created, _NOT_DURABLE)
        else:
            connection.write(created)


def submit_later(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """SUBMIT_JOB_EPOCH: not a number means 0, and 0 or a past time means now, as with gearmand."""
    function, key, when, payload = wire.fields(wire.SUBMIT_JOB_EPOCH, data, start, end)
    run_at = wire.number(when)
    if run_at > _LAST_EPOCH:
        raise WireError("INVALID_PACKET", "The epoch time is out of range")
    _create(connection, function, key, payload, run_at=float(run_at) if run_at > connection.engine.now else 0.0)


def submit_by_calendar(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """SUBMIT_JOB_SCHED: once, at the next minute that matches."""
    function, key, *times, payload = wire.fields(wire.SUBMIT_JOB_SCHED, data, start, end)
    run_at = dates.next_match(times, connection.engine.now)
    _create(connection, function, key, payload, run_at=run_at)


def submit_reduce(kind: int, background: bool) -> Function:
    """The handler of SUBMIT_REDUCE_JOB and its background twin; the fifth field is data, the fourth unused."""

    def handle(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
        function, key, reducer, _, payload = wire.fields(kind, data, start, end)
        watcher = None if background else connection.watch()
        _create(connection, function, key, payload, background=background, watcher=watcher, reducer=reducer)

    return handle


def get_status(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """GET_STATUS: what is known of a handle."""
    handle = wire.only_argument(data, start, end)
    if len(handle) > wire.MAX_HANDLE:
        raise WireError("ARGUMENT_TOO_LARGE", f"A handle has at most {wire.MAX_HANDLE} bytes")
    job = connection.engine.find(handle)
    connection.write(wire.about_job(wire.STATUS_RES, handle, _status(job)))


def get_status_unique(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """GET_STATUS_UNIQUE: the same for a unique ID, with the number of waiting clients."""
    key = wire.only_argument(data, start, end)
    if len(key) > wire.MAX_UNIQUE:
        raise WireError("ARGUMENT_TOO_LARGE", "Unique value too large")
    job = connection.engine.find_unique(key) if key else None
    clients = len(job.watchers or ()) if job is not None else 0
    connection.write(wire.about_job(wire.STATUS_RES_UNIQUE, key, b"%b\0%d" % (_status(job), clients)))


def echo(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """ECHO_REQ: the same bytes back."""
    connection.write(wire.response(wire.ECHO_RES, data[start:end]))


def set_option(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    """OPTION_REQ: there is one option, and its name comes back as it was written."""
    option = data[start:end]
    if option.removesuffix(b"\0").lower() != b"exceptions":
        connection.error("UNKNOWN_OPTION", "Server does not recognize given option")
        return
    connection.wants_exceptions = True
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
    """Submit what is not submitted a hundred thousand times a second."""
    key = unique.key(key, payload)
    try:
        job = connection.engine.submit(
            function, key, payload, _NORMAL, background, watcher, run_at, _DOOR, reducer=reducer
        )
    except QueueFullError:
        connection.error("QUEUE_ERROR", "Job queue is full")
        return
    created = wire.response(wire.JOB_CREATED, job.handle)
    if background:
        connection.acknowledge(created, _NOT_DURABLE)
    else:
        connection.write(created)


def _status(job: LiveJob | None) -> bytes:
    """Known, running, numerator and denominator, as the status packets have them."""
    if job is None:
        return b"0\x000\x000\x000"
    progress = job.progress
    numerator, denominator = (progress.numerator, progress.denominator) if progress else (0, 0)
    return b"1\0%d\0%d\0%d" % (job.owner is not None, numerator, denominator)
