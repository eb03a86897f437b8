"""Every message that a broker receives: what it does, and the table of all of them."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from geartrain.doors.memodb.watcher import MemodbWatcher
from geartrain.doors.memodb.worker import MemodbWorker
from geartrain.errors import RequestError
from geartrain.model import Priority
from geartrain.wire import memodb as wire

if TYPE_CHECKING:
    from geartrain.doors.memodb.connection import MemodbConnection

# The connection, the request's backtrace, its header and its payload.
Handler = Callable[["MemodbConnection", bytes, wire.Message, bytes], None]

_DOOR: Final = "memodb"
_NORMAL: Final = int(Priority.NORMAL)


def ready(connection: "MemodbConnection", backtrace: bytes, message: wire.Message, payload: bytes) -> None:
    """READY: register a worker, which gets an id."""
    if backtrace in connection.ready_requests:
        return  # a copy that crossed its answer: the answer to a second worker would be discarded
    worker = MemodbWorker(connection, backtrace, connection.memodb.new_id())
    try:
        for service in message.services:
            connection.engine.register(worker, service)
    except RequestError as error:
        connection.log(logging.WARNING, "worker refused", str(error))
        worker.leave(str(error))
        connection.reply(backtrace, wire.disconnect(worker.id))
        return
    worker.wait(backtrace)


def job(connection: "MemodbConnection", backtrace: bytes, message: wire.Message, payload: bytes) -> None:
    """JOB: submit a job for a client, which waits for the result."""
    watcher = MemodbWatcher(connection, backtrace, message.timeout)
    connection.outstanding[backtrace] = watcher
    try:
        job = connection.engine.submit(
            message.service, b"", payload, _NORMAL, False, watcher, 0.0, _DOOR, wire.seconds(message.timeout)
        )
    except RequestError as error:
        watcher.drop(str(error))
        return
    watcher.wait(job)


def result(connection: "MemodbConnection", backtrace: bytes, message: wire.Message, payload: bytes) -> None:
    """RESULT: complete the worker's job; it waits for the next one, or disconnects."""
    worker = _in_step(connection, backtrace, message)
    if worker is None:
        return
    worker.finish(payload)
    if message.disconnecting:
        worker.leave("it disconnected")
        connection.reply(backtrace, wire.disconnect(message.id))
    else:
        worker.wait(backtrace)


def heartbeat(connection: "MemodbConnection", backtrace: bytes, message: wire.Message, payload: bytes) -> None:
    """HEARTBEAT: the worker is alive, and waits for a job again."""
    worker = _in_step(connection, backtrace, message)
    if worker is not None:
        worker.wait(backtrace)


def _in_step(connection: "MemodbConnection", backtrace: bytes, message: wire.Message) -> MemodbWorker | None:
    """The worker, if this is the message that it owes; otherwise None, and DISCONNECT to the worker.

    A worker stays on the pipe of its READY. To another pipe its id is unknown, so no other peer can answer for it.
    """
    worker = connection.memodb.workers.get(message.id)
    if worker is not None and worker.connection is connection:
        if worker.answered == backtrace:
            return None  # a copy that crossed its answer
        if worker.owes == message.kind:
            return worker
        worker.leave("it sent a message that it did not owe")
    connection.reply(backtrace, wire.disconnect(message.id))
    return None


HANDLERS: Final[dict[int, Handler]] = {
    wire.READY: ready,
    wire.JOB: job,
    wire.RESULT: result,
    wire.HEARTBEAT: heartbeat,
}
