"""What each message does: one engine verb or two, and an answer now or later."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from geartrain.doors.memodb.watcher import MemodbWatcher
from geartrain.doors.memodb.worker import MemodbWorker
from geartrain.errors import QueueFullError
from geartrain.model import Priority
from geartrain.wire import memodb as wire

if TYPE_CHECKING:
    from geartrain.doors.memodb.connection import MemodbConnection

# The connection, the request's backtrace, its header and its payload.
Handler = Callable[["MemodbConnection", bytes, wire.Message, bytes], None]

_DOOR: Final = "memodb"
_NORMAL: Final = int(Priority.NORMAL)


def ready(connection: "MemodbConnection", backtrace: bytes, message: wire.Message, payload: bytes) -> None:
    """READY: a new worker, which gets an id."""
    if backtrace in connection.births:
        return  # a copy that crossed its answer: nobody would hear what a second worker is told
    worker = MemodbWorker(connection, backtrace, connection.memodb.new_id())
    for service in message.services:
        connection.engine.register(worker, service)
    worker.wait(connection, backtrace)


def job(connection: "MemodbConnection", backtrace: bytes, message: wire.Message, payload: bytes) -> None:
    """JOB: a client wants something done, and waits for it."""
    watcher = MemodbWatcher(connection, backtrace)
    connection.outstanding[backtrace] = watcher
    try:
        job = connection.engine.submit(
            message.service, b"", payload, _NORMAL, False, watcher, 0.0, _DOOR, wire.seconds(message.timeout)
        )
    except QueueFullError as error:
        watcher.drop(str(error))
        return
    watcher.wait(job)


def result(connection: "MemodbConnection", backtrace: bytes, message: wire.Message, payload: bytes) -> None:
    """RESULT: a worker is done, and asks for its next job or says goodbye."""
    worker = _in_step(connection, backtrace, message)
    if worker is None:
        return
    worker.finish(payload)
    if message.disconnecting:
        worker.leave("it said so")
        connection.reply(backtrace, wire.disconnect(message.id))
    else:
        worker.wait(connection, backtrace)


def heartbeat(connection: "MemodbConnection", backtrace: bytes, message: wire.Message, payload: bytes) -> None:
    """HEARTBEAT: a worker is still there, and asks again."""
    worker = _in_step(connection, backtrace, message)
    if worker is not None:
        worker.wait(connection, backtrace)


def _in_step(connection: "MemodbConnection", backtrace: bytes, message: wire.Message) -> MemodbWorker | None:
    """The worker, if this message is what it owes; otherwise it is told to start anew."""
    worker = connection.memodb.workers.get(message.id)
    if worker is not None:
        if worker.answered == backtrace and worker.connection is connection:
            return None  # a copy that crossed its answer: the answer is there, or on its way
        if worker.owes == message.kind:
            return worker
        worker.leave("it is out of step")
    connection.reply(backtrace, wire.disconnect(message.id))
    return None


HANDLERS: Final[dict[int, Handler]] = {
    wire.READY: ready,
    wire.JOB: job,
    wire.RESULT: result,
    wire.HEARTBEAT: heartbeat,
}
