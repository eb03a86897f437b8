"""Every command that a server receives: what it does, and the table of all of them.

A handler reads the arguments, calls one verb of the engine, and answers.
"""

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from geartrain.doors.periodic import failed_attempts, job_names
from geartrain.doors.periodic.distant_data import DistantData
from geartrain.doors.periodic.long_request import DropRequest, LoadRequest
from geartrain.doors.periodic.operator_command import OperatorCommand
from geartrain.doors.periodic.shared_locks import LockRequest
from geartrain.doors.periodic.submission_answer import SubmissionAnswer
from geartrain.doors.periodic.watcher import DataWatcher, RunWatcher
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import RESERVING
from geartrain.errors import RequestError
from geartrain.model import Duplicate, Priority
from geartrain.rights import ADMIN, READ, SUBMIT
from geartrain.runtime.other_servers import JobName, UnreachableError
from geartrain.wire import periodic as wire

if TYPE_CHECKING:
    from geartrain.doors.periodic.connection import PeriodicConnection
    from geartrain.doors.periodic.worker import PeriodicWorker

Handler = Callable[["PeriodicConnection", bytes, wire.Arguments], None]

_NORMAL: Final = int(Priority.NORMAL)
_SHORTEST_LOCK_WAIT: Final = 1.0  # seconds; a job that waits for less would ask for its lock again and again


def ping(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """PING: PONG."""
    connection.answer(message_id, wire.PONG)


def submit_job(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """SUBMIT_JOB: queue a job, in place of a waiting job of the same name."""
    job = submit(connection, arguments.job(), None)
    if job is None:
        connection.answer(message_id, wire.UNKNOWN)
    elif job.state is RESERVING:
        SubmissionAnswer(connection, message_id, job)
    else:
        connection.answer_durably(message_id)


def run_job(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """RUN_JOB: the same, and the answer is the result."""
    _run(connection, message_id, arguments.job())


def receive_data(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """RECV_DATA: each part of the result is an answer. Clients send it just before they submit the job."""
    request = arguments.job()
    connection.engine.require(SUBMIT, request.function)
    if _has_no_worker(connection, request.function):
        connection.answer(message_id, wire.NO_WORKER)
        return
    watcher = DataWatcher(connection, message_id)
    connection.waiters.add(watcher)
    job = job_names.find(connection.engine, request.function, request.name)
    if job is not None and job.id not in connection.engine.borrowed:
        connection.engine.watch(job, watcher, first=True)
    else:
        connection.periodic.expect(request.function, request.name, watcher)
        others = connection.tick_loop.others
        if others.exist:
            named = JobName(request.name, request.name, request.function)
            others.start(DistantData(connection, named, watcher).begin())
            return
    connection.answer(message_id, wire.SUCCESS)


def status(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """STATUS: one line per function whose name does not break the lines."""
    connection.engine.require_somewhere(READ)
    connection.periodic.first_due.refresh()
    connection.answer_list(message_id, _status_lines(connection))


def _status_lines(connection: "PeriodicConnection") -> Iterator[bytes]:
    door = connection.periodic
    locked = door.locks.waiting() if connection.dialect.locked_column else {}
    separator = b""
    omitted = 0
    for function in list(connection.engine.functions.values()):
        if not connection.may_read(function.name):
            yield b""
            continue
        if not _fits_status(function.name):
            omitted += 1
            yield b""
            continue
        first = door.first_due.of(function)
        row: list[object] = [function.workers, function.total, function.running]
        if connection.dialect.locked_column:
            row.append(locked.get(function.name, 0))
        row.append(int(first if first is not None else connection.engine.now))
        yield separator + function.name + b"," + ",".join(map(str, row)).encode()
        separator = b"\n"
    if omitted != door.omitted_functions:  # not for every STATUS of a client that polls
        door.omitted_functions = omitted
        if omitted:
            connection.log(logging.WARNING, "functions omitted from status", f"{omitted} with unsuitable names")


def drop_function(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> str:
    """DROP_FUNC: drop a function that no worker offers, and cancel its waiting jobs."""
    name = arguments.short()
    connection.engine.require(ADMIN, name)
    DropRequest(connection, message_id, name).begin()
    return ""


def remove_job(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """REMOVE_JOB: cancel a job; SUCCESS also if there is none of that name."""
    function, name = arguments.short(), arguments.short()
    connection.engine.require(SUBMIT, function)  # whoever may submit a job may replace one of the same name as well
    job = job_names.find(connection.engine, function, name)
    others = connection.tick_loop.others
    if others.exist and (job is None or job.id in connection.engine.borrowed):
        others.start(_remove_elsewhere(connection, message_id, JobName(name, name, function)))
        return
    if job is not None:
        connection.engine.cancel(job, "removed")
    connection.answer_durably(message_id)


async def _remove_elsewhere(connection: "PeriodicConnection", message_id: bytes, name: JobName) -> None:
    """REMOVE_JOB of a job that another server may have. Answers need not come in the order of their requests."""
    others = connection.tick_loop.others
    word = wire.SUCCESS
    try:
        job = await others.find(name)
        if job is not None:
            await others.cancel(job, "removed")
    except UnreachableError:
        word = wire.UNKNOWN
    connection.begin_tick()
    if not connection.closing:
        connection.answer(message_id, word)


def dump(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> str:
    """DUMP: every live job whose function's name fits into the protocol."""
    connection.engine.require_somewhere(READ)
    connection.answer_list(message_id, _dumped_jobs(connection), counted=True)
    return ""


def _dumped_jobs(connection: "PeriodicConnection") -> Iterator[bytes]:
    for job in connection.engine.jobs.walk():
        dumped = len(job.function) <= job_names.LONGEST and connection.may_read(job.function)
        yield job_names.argument(job, 0) if dumped else b""


def load(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> str:
    """LOAD: submit every job of a dump; UNKNOWN if a queue was full for one of them."""
    connection.engine.require_everywhere(ADMIN)
    LoadRequest(connection, message_id, arguments).begin()
    return ""


def get_config(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """CONFIG_GET: the value of a key."""
    connection.engine.require_somewhere(READ)
    value = connection.periodic.config.get(arguments.short())
    connection.answer(message_id, wire.CONFIG, wire.value(value))


def set_config(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> str:
    """CONFIG_SET: set the value of a key; an unknown key is ignored."""
    connection.engine.require_everywhere(ADMIN)
    key, value = arguments.short(), arguments.value()
    if connection.periodic.config.set(key, value):
        connection.log(logging.INFO, "configuration changed", f"{key.decode('utf-8', 'replace')} = {value}")
        connection.periodic.apply_config()
    connection.answer_durably(message_id)
    return ""


def shutdown(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> str:
    """SHUTDOWN: stop the server, without an answer; only from the server's own machine."""
    connection.engine.require_everywhere(ADMIN)
    if connection.is_local:
        connection.periodic.control.shutdown(graceful=False)
        return ""
    why = "the peer is on another machine"
    connection.log(logging.WARNING, "shutdown refused", why)
    return why


def _fits_status(name: bytes) -> bool:
    """Whether clients can read a line with this name: they decode the text and split it at LF and comma."""
    if b"," in name or b"\n" in name:
        return False
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def submit(connection: "PeriodicConnection", request: wire.PeriodicJob, watcher: RunWatcher | None) -> LiveJob | None:
    """Submit a job; None if it was refused. Without a watcher it is a background job."""
    try:
        job = connection.engine.submit(
            request.function, request.name, request.payload, _NORMAL, watcher is None, watcher,
            float(max(request.run_at, 0)), failed_attempts.DOOR, float(max(request.timeout, 0)), Duplicate.REPLACE,
            request.steps,
        )  # fmt: skip
    except RequestError as error:
        connection.log(logging.WARNING, "job refused", str(error))
        return None
    for data_watcher in connection.periodic.take_expected(request.function, request.name):
        connection.engine.watch(job, data_watcher, first=True)
    return job


def _run(connection: "PeriodicConnection", message_id: bytes, request: wire.PeriodicJob) -> None:
    """Submit a job, and wait for its end."""
    watcher = RunWatcher(connection, message_id)
    no_worker = connection.dialect.says_no_worker and _has_no_worker(connection, request.function)
    if no_worker or submit(connection, request, watcher) is None:
        if connection.dialect.says_no_worker:
            connection.answer(message_id, wire.NO_WORKER)
        else:
            connection.answer_data(message_id, b"")  # its clients take every answer for a result
        return
    connection.waiters.add(watcher)
    if request.timeout > 0:
        watcher.expire_in(request.timeout)


def _has_no_worker(connection: "PeriodicConnection", function: bytes) -> bool:
    return not connection.engine.worker_count(function)


def can_do(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """CAN_DO: the worker offers a function; each job of it goes to one worker."""
    _offer(connection, wire.CAN_DO, message_id, arguments.short())


def broadcast(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """BROADCAST: the same, but each job goes to every idle worker."""
    _offer(connection, wire.BROADCAST, message_id, arguments.short())


def _offer(connection: "PeriodicConnection", command: int, message_id: bytes, function: bytes) -> None:
    """Register for a function; UNKNOWN, which no client takes for success, if that is refused."""
    worker = connection.work()
    confirmed = connection.confirms(command, message_id)
    try:
        connection.engine.check_ability(worker, function)
    except RequestError as error:
        connection.log(logging.WARNING, "worker refused", str(error))
        if confirmed:
            connection.answer(message_id, wire.UNKNOWN)
        return
    if confirmed:
        connection.answer(message_id, wire.SUCCESS)  # before a job that a waiting grab may get
    connection.engine.register(worker, function, broadcast=command == wire.BROADCAST)


def cant_do(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """CANT_DO: the worker no longer offers a function."""
    worker, function = connection.work(), arguments.short()
    jobs = [job for job in worker.running.jobs() if job.function == function]
    connection.engine.unregister(worker, function)
    for job in jobs:
        worker.done(job)


def sleep(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """SLEEP: NOOP at once, as from the original server; grabs wait by themselves."""
    connection.answer(message_id, wire.NOOP)


def grab_job(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """GRAB_JOB: JOB_ASSIGN as soon as there is a job."""
    connection.work().grab(message_id)


def work_done(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """WORK_DONE: complete the job; the rest of the frame is its result."""
    job = connection.job_of(arguments)
    connection.confirm(wire.WORK_DONE, message_id)
    if job is not None:
        worker = connection.work()
        connection.engine.complete(worker, job, arguments.rest())
        worker.done(job)


def work_fail(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """WORK_FAIL: retry the job later, or end it."""
    job = connection.job_of(arguments)
    connection.confirm(wire.WORK_FAIL, message_id)
    if job is not None:
        worker = connection.work()
        failed_attempts.fail(connection.engine, worker, job)
        worker.done(job)


def schedule_later(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """SCHED_LATER: run the job again after a delay, and add a step to its count. Confirmed when it is on disk."""
    job = connection.job_of(arguments)
    delay, step = arguments.later()
    confirmed = connection.confirms(wire.SCHED_LATER, message_id)
    if job is not None:
        worker = connection.work()
        run_at = connection.engine.now + max(delay, 0)
        failed_attempts.reschedule(connection.engine, worker, job, run_at, step)
        worker.done(job)
    if confirmed:
        connection.answer_durably(message_id, otherwise=wire.SUCCESS)


def work_data(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """WORK_DATA: a part of the result."""
    job = connection.job_of(arguments)
    if job is not None:
        connection.engine.data(job, arguments.rest())


def acquire(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """ACQUIRE: take a lock for a job; if it is held, the job is taken from the worker and waits."""
    name, limit = arguments.short(), arguments.limit()
    job = connection.job_of(arguments)
    granted = True
    if job is not None:
        worker = connection.work()
        door = connection.periodic
        longest_wait = max(float(door.config.get(b"lock-timeout")), _SHORTEST_LOCK_WAIT)
        if door.shared_locks is not None:
            answer = partial(_answer_lock, connection, message_id, worker, job)
            door.shared_locks.request(LockRequest(name, limit, worker, job, longest_wait, answer))
            return
        granted = door.locks.acquire(name, limit, worker, job, longest_wait)
        if not granted:
            worker.done(job)
    connection.answer(message_id, wire.ACQUIRED, bytes((granted,)))


def _answer_lock(
    connection: "PeriodicConnection", message_id: bytes, worker: "PeriodicWorker", job: LiveJob, granted: bool
) -> None:
    """The servers of the cluster have decided. The worker may be gone by now."""
    if not granted:
        worker.done(job)
    if not connection.closing:
        connection.answer(message_id, wire.ACQUIRED, bytes((granted,)))


def release(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """RELEASE: give a lock back."""
    name = arguments.short()
    job = connection.job_of(arguments)
    if job is not None:
        connection.periodic.locks.release(name, job)


def job_assigned(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """JOB_ASSIGNED: nothing to do, since every job counts as received until the connection breaks."""


def job_unassigned(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """JOB_UNASSIGNED: the worker does not take the job that this grab got."""
    worker = connection.work()
    job = worker.assigned.get(message_id)
    if job is not None:
        worker.done(job)
        connection.engine.hand_back(worker, job)


class Command:
    """A row of the table. A class: compiled, its attributes are read faster than those of a tuple."""

    __slots__ = ("confirmed_first", "handler")

    def __init__(self, handler: Handler, confirmed_first: bool = False) -> None:
        self.handler = handler
        # SUCCESS is sent before the command is carried out: that of a grab must come before the job. Handlers whose
        # answer depends on the outcome, or on the job, confirm by themselves.
        self.confirmed_first = confirmed_first

    def handle(self, connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
        """Carry it out. The commands that every job needs have classes that know which function that is, see below."""
        self.handler(connection, message_id, arguments)


class _SubmitJob(Command):
    __slots__ = ()

    def handle(self, connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
        submit_job(connection, message_id, arguments)


class _RunJob(Command):
    __slots__ = ()

    def handle(self, connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
        run_job(connection, message_id, arguments)


class _GrabJob(Command):
    __slots__ = ()

    def handle(self, connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
        grab_job(connection, message_id, arguments)


class _WorkDone(Command):
    __slots__ = ()

    def handle(self, connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
        work_done(connection, message_id, arguments)


COMMANDS: Final[dict[int, Command]] = {
    wire.PING: Command(ping),
    wire.SUBMIT_JOB: _SubmitJob(submit_job),
    wire.RUN_JOB: _RunJob(run_job),
    wire.RECV_DATA: Command(receive_data),
    wire.STATUS: Command(status),
    wire.DROP_FUNC: Command(OperatorCommand(drop_function, "drop_func", names_something=True)),
    wire.REMOVE_JOB: Command(remove_job),
    wire.DUMP: Command(OperatorCommand(dump, "dump")),
    wire.LOAD: Command(OperatorCommand(load, "load")),
    wire.SHUTDOWN: Command(OperatorCommand(shutdown, "shutdown")),
    wire.CONFIG_GET: Command(get_config),
    wire.CONFIG_SET: Command(OperatorCommand(set_config, "config_set", names_something=True)),
    wire.CAN_DO: Command(can_do),
    wire.CANT_DO: Command(cant_do, confirmed_first=True),
    wire.BROADCAST: Command(broadcast),
    wire.SLEEP: Command(sleep),
    wire.GRAB_JOB: _GrabJob(grab_job, confirmed_first=True),
    wire.WORK_DONE: _WorkDone(work_done),
    wire.WORK_FAIL: Command(work_fail),
    wire.SCHED_LATER: Command(schedule_later),
    wire.WORK_DATA: Command(work_data, confirmed_first=True),
    wire.ACQUIRE: Command(acquire),
    wire.RELEASE: Command(release, confirmed_first=True),
    wire.JOB_ASSIGNED: Command(job_assigned),
    wire.JOB_UNASSIGNED: Command(job_unassigned),
}

BY_NUMBER: Final = [COMMANDS.get(number) for number in range(wire.LAST_COMMAND + 1)]
