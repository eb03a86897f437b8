"""What each command of a client does: parse, one engine verb, answer."""

import logging
from typing import TYPE_CHECKING, Final

from geartrain.doors.periodic import names
from geartrain.doors.periodic.watcher import DataWatcher, RunWatcher
from geartrain.engine.job import LiveJob
from geartrain.errors import QueueFullError
from geartrain.model import Duplicate, Priority
from geartrain.wire import periodic as wire

if TYPE_CHECKING:
    from geartrain.doors.periodic.connection import PeriodicConnection

_NORMAL: Final = int(Priority.NORMAL)
_LOOPBACK: Final = ("127.", "::1", "::ffff:127.")


def ping(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """PING: PONG."""
    connection.answer(message_id, wire.PONG)


def submit(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """SUBMIT_JOB: queue a job, in the place of one of its name that still waits."""
    if _submit(connection, arguments.job(), None) is None:
        connection.answer(message_id, wire.UNKNOWN)
    else:
        connection.answer_durably(message_id)


def run(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """RUN_JOB: the same, and its result is the answer."""
    _wait_for(connection, message_id, arguments.job(), RunWatcher(connection, message_id))


def receive(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """RECV_DATA: every part of a job's result is an answer. Clients send it just before they submit the job."""
    work = arguments.job()
    if _nobody_offers(connection, work.function):
        connection.answer(message_id, wire.NO_WORKER)
        return
    watcher = DataWatcher(connection, message_id)
    connection.waiters.add(watcher)
    job = names.find(connection.engine, work.function, work.name)
    if job is not None:
        connection.engine.watch(job, watcher, first=True)
    else:
        connection.periodic.expect(work.function, work.name, watcher)
    connection.answer(message_id, wire.SUCCESS)


def status(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """STATUS: one line per function."""
    door = connection.periodic
    door.calendar.look()
    locked = door.locks.waiting() if connection.dialect.locked_column else {}
    lines = []
    for function in connection.engine.functions.values():
        first = door.calendar.first(function)
        row: list[object] = [function.workers, function.total, function.running]
        if connection.dialect.locked_column:
            row.append(locked.get(function.name, 0))
        row.append(int(first if first is not None else connection.engine.now))
        lines.append(function.name + b"," + ",".join(map(str, row)).encode())
    connection.answer_data(message_id, b"\n".join(lines))


def drop_function(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """DROP_FUNC: forget a function that nobody offers, and its jobs that wait."""
    function = connection.engine.functions.get(arguments.short())
    if function is not None and not function.workers:
        for job in [job for job in connection.engine.jobs.values() if job.function == function.name]:
            if job.owner is None:
                connection.engine.cancel(job, "its function was dropped")
        connection.engine.drop(function.name)
    connection.answer_durably(message_id)


def remove(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """REMOVE_JOB: whether it waits, runs or does not exist."""
    job = names.find(connection.engine, arguments.short(), arguments.short())
    if job is not None:
        connection.engine.cancel(job, "removed")
    connection.answer_durably(message_id)


def dump(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """DUMP: every job that is not over and whose function can be said here."""
    everything = connection.engine.jobs.values()
    jobs = [names.travelling(job, 0) for job in everything if len(job.function) <= names.LONGEST]
    connection.answer_data(message_id, wire.jobs(jobs))


def load(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """LOAD: submit every job of a dump; UNKNOWN if a full queue has refused some."""
    jobs = [_submit(connection, work, None) for work in arguments.jobs()]
    connection.answer_durably(message_id, wire.UNKNOWN if None in jobs else wire.SUCCESS)


def get_config(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """CONFIG_GET: a value."""
    found = connection.periodic.config.get(arguments.short())
    connection.answer(message_id, wire.CONFIG, wire.value(found))


def set_config(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """CONFIG_SET: change a value; an unknown one changes nothing."""
    key, value = arguments.short(), arguments.value()
    if connection.periodic.config.set(key, value):
        connection.log(logging.INFO, "configuration changed", f"{key.decode('utf-8', 'replace')} = {value}")
        connection.periodic.apply_config()
    connection.answer_durably(message_id)


def shutdown(connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
    """SHUTDOWN: no answer; for admins on the server's own machine."""
    if connection.by_socket_file or connection.peer.startswith(_LOOPBACK):
        connection.periodic.control.shutdown(graceful=False)
    else:
        connection.log(logging.WARNING, "shutdown refused", "it came from another machine")


def _submit(connection: "PeriodicConnection", work: wire.PeriodicJob, watcher: RunWatcher | None) -> LiveJob | None:
    try:
        job = connection.engine.submit(
            work.function, work.name, work.payload, _NORMAL, watcher is None, watcher, float(max(work.run_at, 0)),
            "periodic", float(max(work.timeout, 0)), Duplicate.REPLACE, work.steps,
        )  # fmt: skip
    except QueueFullError:
        return None
    for expecting in connection.periodic.expecting(work.function, work.name):
        connection.engine.watch(job, expecting, first=True)
    return job


def _wait_for(connection: "PeriodicConnection", message_id: bytes, work: wire.PeriodicJob, watcher: RunWatcher) -> None:
    """Submit a job and wait for it."""
    nobody = connection.dialect.says_no_worker and _nobody_offers(connection, work.function)
    if nobody or _submit(connection, work, watcher) is None:
        if connection.dialect.says_no_worker:
            connection.answer(message_id, wire.NO_WORKER)
        else:
            connection.answer_data(message_id, b"")  # whatever is answered here is taken for a result
        return
    connection.waiters.add(watcher)
    if work.timeout > 0:
        watcher.expire_in(work.timeout)


def _nobody_offers(connection: "PeriodicConnection", name: bytes) -> bool:
    return not connection.engine.worker_count(name)
