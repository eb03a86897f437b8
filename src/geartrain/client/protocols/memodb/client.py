"""MemoDB over NNG: `memodb+tcp://host:port`, `memodb+ipc:///path`, `memodb+ws://host:port/path`.

A client asks and gets the result, or hears nothing: the protocol has no word for a failure, an acknowledgement or
anything in between. A broker that drops a request closes its pipe, if nothing else depends on it, so that the
client asks again at once; that is what a client does here too, as every NNG client would. So a job may run more than
once, and a job that fails is one that is never heard of. Who does not want to wait for ever says how long.

A worker has a pipe for each job that may run at once: to close it is the only way to give back a job that failed, or
to leave while there is none.
"""

import asyncio
import math
from typing import Final, cast

from geartrain.address import Address
from geartrain.client.job_events import Completed
from geartrain.client.order import Acceptance, Capabilities, Order
from geartrain.client.protocols.base import Assignment, ClientProtocol, JobListener, Lost
from geartrain.client.protocols.connection_per_job import ConnectionPerJobWorker, JobConnection
from geartrain.client.protocols.memodb.pipe import RESEND_SECONDS, Pipe, unspeakable
from geartrain.errors import ClientError, ServerGoneError, WireError
from geartrain.wire import memodb as wire
from geartrain.wire import memodb_client
from geartrain.wire.memodb import Message

CLIENT: Final = Capabilities(timeout=True)
WORKER: Final = Capabilities()

# What a broker is told of a job that may take as long as it likes: as much as every broker can count to.
_NO_LIMIT: Final = 2**31 - 1
# A pipe that breaks as soon as it stands is not dialled more often than NNG does.
_REDIAL_SECONDS: Final = 1.0
# A request whose worker takes all its time is not asked for again before that is over.
_GRACE_SECONDS: Final = 30.0


class Client(ClientProtocol):
    """A REQ socket with a context for each job."""

    capabilities = CLIENT

    def __init__(self, address: Address, lost: Lost) -> None:
        super().__init__(address, lost)
        self._pipe = Pipe(address, self._broken)
        self._waiting: dict[JobListener, bytes] = {}  # request ids
        self._dialled_at = 0.0
        self._redial: asyncio.Task[None] | None = None
        self._over = False

    @classmethod
    def objection(cls, order: Order) -> str:
        """Names are text."""
        return unspeakable(order.function)

    async def open(self) -> None:
        """Dial, and be greeted."""
        self._dialled_at = asyncio.get_running_loop().time()
        await self._pipe.open(self.tls)

    def submit(self, order: Order, listener: JobListener) -> None:
        """JOB. There is no acknowledgement: what is said counts as accepted."""
        header = memodb_client.job(order.function, _milliseconds(order.timeout))
        patience = max(RESEND_SECONDS, order.timeout + _GRACE_SECONDS if order.timeout else 0.0)

        def reply(message: Message, payload: bytes) -> None:
            self._waiting.pop(listener, None)
            if message.kind != wire.RESULT:
                listener.gone(ServerGoneError(f"the broker answered a job with a message of type {message.kind}"))
                raise WireError("OUT_OF_TURN", f"a client is answered with RESULT, not with type {message.kind}")
            listener.event(Completed(payload))

        self._waiting[listener] = self._pipe.request(header, order.payload, reply, patience)
        listener.accepted(Acceptance(b"", order.function))

    def forget(self, listener: JobListener) -> None:
        """It is not asked for again; the protocol cannot say more."""
        id = self._waiting.pop(listener, None)
        if id is not None:
            self._pipe.requests.pop(id, None)

    async def close(self) -> None:
        """Hang up."""
        self._over = True
        if self._redial is not None:
            self._redial.cancel()
            await asyncio.gather(self._redial, return_exceptions=True)
        await self._pipe.close()
        self._waiting.clear()

    def _broken(self, error: Exception) -> None:
        """A broker that dropped a request wants to be asked again; one that is gone cannot be."""
        if self._waiting and not isinstance(error, WireError):
            self._redial = asyncio.get_running_loop().create_task(self._dial_again())
        else:
            self._give_up(error)

    async def _dial_again(self) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(max(self._dialled_at + _REDIAL_SECONDS - loop.time(), 0.0))
        self._dialled_at = loop.time()
        self._pipe = Pipe(self.address, self._broken, self._pipe.requests)
        try:
            await self._pipe.open(self.tls)
        except (OSError, ClientError, WireError) as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        if self._over:
            return
        self._over = True
        listeners, self._waiting = list(self._waiting), {}
        for listener in listeners:
            listener.gone(error)
        self.lost(error)


class MemodbJobConnection(JobConnection):
    """A pipe with one worker on it. It knows its id from the broker's first answer."""

    def __init__(self, link: ConnectionPerJobWorker) -> None:
        super().__init__(link)
        self._pipe = Pipe(link.address, self.broken)
        self._id = b""
        self._stale = False  # the broker does not know the functions of today

    async def open(self) -> None:
        """Dial, and be greeted."""
        await self._pipe.open(self.link.tls)

    def start(self) -> None:
        """READY, which a broker answers when it has a job, or after a while."""
        self._introduce()

    def refresh(self) -> None:
        """The services stand in READY and cannot be changed: begin anew."""
        if self.job is None:
            self.link.renew(self)
        else:
            self._stale = True

    def rest(self) -> None:
        """There is no goodbye for a worker without a job but to close the pipe."""
        if self.job is None:
            self.leaving = True
            self._pipe.abandon()
            self.link.connections.discard(self)

    def hang_up(self) -> None:
        """At once."""
        self._pipe.abandon()

    async def close(self) -> None:
        """When the last words have left."""
        await self._pipe.close()

    def complete(self, result: bytes) -> None:
        """RESULT, and wait for the next."""
        self.job = None
        last = self._stale or self.link.resting
        if self.link.resting:
            self.leaving = True
        self._ask(memodb_client.result(self._id, last), result)

    def _introduce(self) -> None:
        self._stale = False
        self._id = b""
        self._ask(memodb_client.ready(self.link.functions))

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
            self.link.connections.discard(self)
        else:
            self._introduce()


class Worker(ConnectionPerJobWorker):
    """A pipe for each job that may run at once."""

    capabilities = WORKER
    connection = MemodbJobConnection

    async def open(self, functions: dict[bytes, float]) -> None:
        """Names are text."""
        for function in functions:
            _check(function)
        await super().open(functions)

    def offer(self, function: bytes, timeout: float) -> None:
        """Names are text."""
        _check(function)
        super().offer(function, timeout)

    def complete(self, job: Assignment, result: bytes) -> None:
        """RESULT."""
        cast(MemodbJobConnection, self.lane_of(job)).complete(result)

    def fail(self, job: Assignment, reason: str, data: bytes = b"", code: int = 1) -> None:
        """Give it back, since no word says that it failed: the server tries it again, as often as it does."""
        self.renew(self.lane_of(job))


def _check(function: bytes) -> None:
    problem = unspeakable(function)
    if problem:
        raise ClientError(problem)


def _milliseconds(seconds: float) -> int:
    return min(max(math.ceil(seconds * 1000), 1), _NO_LIMIT) if seconds else _NO_LIMIT
