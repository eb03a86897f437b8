"""Every message that a broker receives: what it does, and the table of all of them."""

import logging
from typing import TYPE_CHECKING, Final

from geartrain.doors.memodb.watcher import MemodbWatcher
from geartrain.doors.memodb.worker import MemodbWorker
from geartrain.errors import RequestError
from geartrain.model import Priority
from geartrain.wire import memodb as wire

if TYPE_CHECKING:
    from geartrain.doors.memodb.connection import MemodbConnection

_DOOR: Final = "memodb"
_NORMAL: Final = int(Priority.NORMAL)


class Handler:
    """Handles one type of message. An object, because mypyc calls a method directly, without packing arguments."""

    __slots__ = ()

    def handle(self, connection: "MemodbConnection", backtrace: bytes, message: wire.Message, payload: bytes) -> None:
        """Do what the message says, which came as the request with this backtrace."""
        raise NotImplementedError


class ReadyHandler(Handler):
    """READY."""

    __slots__ = ()

    def handle(self, connection: "MemodbConnection", backtrace: bytes, message: wire.Message, payload: bytes) -> None:
        """Register a worker, which gets an id."""
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


class JobHandler(Handler):
    """JOB."""

    __slots__ = ()

    def handle(self, connection: "MemodbConnection", backtrace: bytes, message: wire.Message, payload: bytes) -> None:
        """Submit a job for a client, which waits for the result."""
        watcher = MemodbWatcher(connection, backtrace, message.timeout)
        connection.outstanding[backtrace] = watcher
        try:
            job = connection.engine.submit(
                message.service, b"", payload, _NORMAL, False, watcher, 0.0, _DOOR, message.seconds
            )
        except RequestError as error:
            watcher.drop(str(error))
            return
        watcher.wait(job)


class ResultHandler(Handler):
    """RESULT."""

    __slots__ = ()

    def handle(self, connection: "MemodbConnection", backtrace: bytes, message: wire.Message, payload: bytes) -> None:
        """Complete the worker's job; it waits for the next one, or disconnects."""
        worker = _in_step(connection, backtrace, message)
        if worker is None:
            return
        worker.finish(payload)
        if message.disconnecting:
            worker.leave("it disconnected")
            connection.reply(backtrace, wire.disconnect(message.id))
        else:
            worker.wait(backtrace)


class HeartbeatHandler(Handler):
    """HEARTBEAT."""

    __slots__ = ()

    def handle(self, connection: "MemodbConnection", backtrace: bytes, message: wire.Message, payload: bytes) -> None:
        """The worker is alive, and waits for a job again."""
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
    wire.READY: ReadyHandler(),
    wire.JOB: JobHandler(),
    wire.RESULT: ResultHandler(),
    wire.HEARTBEAT: HeartbeatHandler(),
}
