"""What each command of a worker does: parse, one engine verb, answer."""

from typing import TYPE_CHECKING, Final

from geartrain.doors.periodic.watcher import RunWatcher
from geartrain.engine.job import LiveJob
from geartrain.wire import periodic as wire

if TYPE_CHECKING:
    from geartrain.doors.periodic.connection import PeriodicConnection

_SHORTEST_PATIENCE: Final = 1.0  # seconds; a job that is put off for less would ask for its lock again and again


def can_do(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """CAN_DO: the worker offers a function; each job of it goes to one worker."""
    connection.engine.register(connection.work(), arguments.short())


def broadcast(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """BROADCAST: the same, and each job goes to every worker that waits."""
    connection.engine.register(connection.work(), arguments.short(), broadcast=True)


def cant_do(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """CANT_DO: the worker offers a function no longer."""
    worker, function = connection.work(), arguments.short()
    jobs = [job for job in worker.running.jobs() if job.function == function]
    connection.engine.unregister(worker, function)
    for job in jobs:
        worker.done(job)


def sleep(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """SLEEP: NOOP at once, as the original answers; grabs wait by themselves."""
    connection.answer(message_id, wire.NOOP)


def grab(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """GRAB_JOB: a job as soon as there is one."""
    connection.work().grab(message_id)


def done(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """WORK_DONE: the job is done; the rest of the frame is its result."""
    job = connection.handle_of(arguments)
    connection.confirm(wire.WORK_DONE, message_id)
    if job is not None:
        worker = connection.work()
        connection.engine.complete(worker, job, arguments.rest())
        worker.done(job)


def fail(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """WORK_FAIL: to be tried again after a while.

    For a foreground job it is the end, and the clients that wait for it are told, as its own server does; except
    that clients of the document know nothing but results, and wait until there is one.
    """
    job = connection.handle_of(arguments)
    connection.confirm(wire.WORK_FAIL, message_id)
    if job is not None:
        worker = connection.work()
        connection.engine.fail(worker, job, retry=job.background or _is_patiently_awaited(job))
        worker.done(job)


def later(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """SCHED_LATER: run it again after so many seconds, and add a step to its count.

    It is confirmed when it is on disk: the job is submitted anew by it.
    """
    job = connection.handle_of(arguments)
    delay, step = arguments.later()
    confirmed = connection.confirms(wire.SCHED_LATER, message_id)
    if job is not None:
        worker = connection.work()
        connection.engine.reschedule(worker, job, connection.engine.now + max(delay, 0), step)
        worker.done(job)
    if confirmed:
        connection.answer_durably(message_id, otherwise=wire.SUCCESS)


def data(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """WORK_DATA: a part of the result."""
    job = connection.handle_of(arguments)
    if job is not None:
        connection.engine.data(job, arguments.rest())


def acquire(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """ACQUIRE: a lock for a job; if others have it, the job is taken back and waits."""
    name, limit = arguments.short(), arguments.limit()
    job = connection.handle_of(arguments)
    granted = True
    if job is not None:
        worker = connection.work()
        door = connection.periodic
        patience = max(float(door.config.get(b"lock-timeout")), _SHORTEST_PATIENCE)
        granted = door.locks.acquire(name, limit, worker, job, patience)
        if not granted:
            worker.done(job)
    connection.answer(message_id, wire.ACQUIRED, bytes((granted,)))


def release(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """RELEASE: the lock is free for another."""
    name = arguments.short()
    job = connection.handle_of(arguments)
    if job is not None:
        connection.periodic.locks.release(name, job)


def assigned(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """JOB_ASSIGNED: the job arrived, which is taken for granted until the connection breaks."""


def unassigned(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """JOB_UNASSIGNED: the worker cannot take the job that this grab got."""
    worker = connection.work()
    job = worker.assigned.get(message_id)
    if job is not None:
        worker.done(job)
        connection.engine.hand_back(worker, job)


def _is_patiently_awaited(job: LiveJob) -> bool:
    """Whether a client of the document waits for it."""
    watchers = [watcher for watcher in job.watchers or () if isinstance(watcher, RunWatcher)]
    return any(watcher.connection.dialect is wire.DOCUMENT for watcher in watchers)
