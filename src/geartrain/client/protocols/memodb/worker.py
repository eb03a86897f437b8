"""A MemoDB worker: one pipe for each job that may run at once.

Closing its pipe is the only way for a worker to give back a job that failed, or to leave while it has no job.
"""

from typing import Final, cast

from geartrain.client.order import Capabilities
from geartrain.client.protocols.base import Assignment
from geartrain.client.protocols.connection_per_job import ConnectionPerJobWorker, JobConnection
from geartrain.client.protocols.memodb.pipe import Pipe, unspeakable
from geartrain.errors import WireError
from geartrain.wire import memodb as wire
from geartrain.wire import memodb_client
from geartrain.wire.memodb import Message

WORKER: Final = Capabilities()


class MemodbJobConnection(JobConnection):
    """A pipe with one worker on it. It knows its id from the broker's first answer."""

    def __init__(self, worker: ConnectionPerJobWorker) -> None:
        super().__init__(worker)
        self._pipe = Pipe(worker.address, self.broken)
        self._id = b""
        self._stale = False  # the broker does not know the functions of today

    async def open(self) -> None:
        """Dial, and be greeted."""
        await self._pipe.open(self.worker.tls)

    def start(self) -> None:
        """READY, which a broker answers when it has a job, or after a while."""
        self._introduce()

    def refresh(self) -> None:
        """The services stand in READY and cannot be changed: begin anew."""
        if self.job is None:
            self.worker.renew(self)
        else:
            self._stale = True

    def stop_fetching(self) -> None:
        """There is no goodbye for a worker without a job but to close the pipe."""
        if self.job is None:
            self.leaving = True
            self._pipe.abandon()
            self.worker.connections.discard(self)

    def hang_up(self) -> None:
        """At once."""
        self._pipe.abandon()

    async def close(self) -> None:
        """When the last words have left."""
        await self._pipe.close()

    def complete(self, result: bytes) -> None:
        """RESULT, and wait for the next."""
        self.job = None
        last = self._stale or self.worker.stopped_fetching
        if self.worker.stopped_fetching:
            self.leaving = True
        self._ask(memodb_client.result(self._id, last), result)

    def _introduce(self) -> None:
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
            raise WireError("OUT_OF_TURN", f"a worker was answered with type {message.kind}")

    def _disconnected(self) -> None:
        if self.leaving:
            self._pipe.abandon()
            self.worker.connections.discard(self)
        else:
            self._introduce()


class Worker(ConnectionPerJobWorker):
    """A pipe for each job that may run at once."""

    capabilities = WORKER
    connection_class = MemodbJobConnection

    @classmethod
    def unsupported_reason(cls, function: bytes) -> str:
        """Names are text."""
        return unspeakable(function)

    def complete(self, job: Assignment, result: bytes) -> None:
        """RESULT."""
        cast(MemodbJobConnection, self.connection_of(job)).complete(result)

    def fail(self, job: Assignment, reason: str, data: bytes = b"", code: int = 1) -> None:
        """Give it back, since no word says that it failed: the server tries it again, as often as it does."""
        self.renew(self.connection_of(job))
