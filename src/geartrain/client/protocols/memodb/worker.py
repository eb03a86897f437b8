"""A MemoDB worker: one pipe for each job that may run at once.

Closing its pipe is the only way for a worker to give back a job that failed, or to leave while it has no job.
"""

from typing import Final, cast

from geartrain.client.order import Capabilities
from geartrain.client.protocols.base import Assignment
from geartrain.client.protocols.connection_per_job import ConnectionPerJobWorker, JobConnection
from geartrain.client.protocols.memodb.pipe import RequestPipe, unsupported_name
from geartrain.errors import WireError
from geartrain.wire import memodb as wire
from geartrain.wire import memodb_client
from geartrain.wire.memodb import Message

WORKER: Final = Capabilities()


class MemodbJobConnection(JobConnection):
    """A pipe with one worker. The broker's first answer has the worker's id."""

    def __init__(self, worker: ConnectionPerJobWorker) -> None:
        super().__init__(worker)
        self._pipe = RequestPipe(worker.address, self.broken)
        self._id = b""
        self._stale = False  # the broker does not know the current functions

    async def open(self) -> None:
        """Dial, and wait for the greeting."""
        await self._pipe.open(self.worker.tls)

    def start(self) -> None:
        """READY, which a broker answers when it has a job, or after a while."""
        self._send_ready()

    def refresh(self) -> None:
        """Replace the connection: the functions are part of READY and cannot be changed."""
        if self.job is None:
            self.worker.renew(self)
        else:
            self._stale = True

    def stop_fetching(self) -> None:
        """Close the pipe: there is no other way for a worker without a job to leave."""
        if self.job is None:
            self.leaving = True
            self._pipe.abandon()
            self.worker.connections.discard(self)

    def abandon(self) -> None:
        """Close the pipe at once."""
        self._pipe.abandon()

    async def close(self) -> None:
        """Close the pipe after the last message has left."""
        await self._pipe.close()

    def complete(self, result: bytes) -> None:
        """RESULT, which also requests the next job."""
        self.job = None
        last = self._stale or self.worker.stopped_fetching
        if self.worker.stopped_fetching:
            self.leaving = True
        self._ask(memodb_client.result(self._id, last), result)

    def _send_ready(self) -> None:
        self._stale = False
        self._id = b""
        self._ask(memodb_client.ready(self.worker.functions))

    def _ask(self, header: bytes, payload: bytes = b"") -> None:
        self._pipe.request(header, payload, self._answered)

    def _answered(self, message: Message, payload: bytes) -> None:
        self._id = message.id
        if message.kind == wire.JOB:
            self.assign(message.service, payload)
        elif message.kind == wire.HEARTBEAT:
            self._ask(memodb_client.heartbeat(self._id))
        elif message.kind == wire.DISCONNECT:
            self._disconnected()
        else:
            raise WireError("OUT_OF_TURN", f"the broker answered a worker with type {message.kind}")

    def _disconnected(self) -> None:
        if self.leaving:
            self._pipe.abandon()
            self.worker.connections.discard(self)
        else:
            self._send_ready()


class Worker(ConnectionPerJobWorker):
    """A worker with a pipe for each job that may run at once."""

    capabilities = WORKER
    connection_class = MemodbJobConnection

    @classmethod
    def unsupported_reason(cls, function: bytes) -> str:
        """Names are UTF-8 text."""
        return unsupported_name(function)

    def complete(self, job: Assignment, result: bytes) -> None:
        """RESULT."""
        cast(MemodbJobConnection, self.connection_of(job)).complete(result)

    def fail(self, job: Assignment, reason: str, data: bytes = b"", code: int = 1) -> None:
        """Give the job back by closing its pipe: the protocol has no message for a failure. The server retries it."""
        self.renew(self.connection_of(job))
