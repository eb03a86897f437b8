"""MemoDB over NNG: `memodb+tcp://host:port`, `memodb+ipc:///path`, `memodb+ws://host:port/path`.

A client sends a request and receives the result, or nothing: the protocol has no messages for acknowledgement, progress
or failure. A broker that drops a request closes its pipe, if nothing else depends on it; the client then sends the
request again, as every NNG client does. So a job may run more than once, and for a job that fails no answer arrives:
wait with a timeout.
"""

import asyncio
import math
from typing import Final

from geartrain.address import Address
from geartrain.client.job_events import Completed
from geartrain.client.order import Acceptance, Capabilities, Order
from geartrain.client.protocols.base import ClientProtocol, JobListener, Lost
from geartrain.client.protocols.memodb.pipe import RESEND_SECONDS, RequestPipe, unsupported_name
from geartrain.errors import ClientError, ServerGoneError, WireError
from geartrain.wire import memodb as wire
from geartrain.wire import memodb_client
from geartrain.wire.memodb import Message

CLIENT: Final = Capabilities(timeout=True)

# Milliseconds for a job without a time limit: the largest number that every broker can handle.
_NO_LIMIT: Final = 2**31 - 1
# A pipe that breaks at once is not dialled more often than this; NNG does the same.
_REDIAL_SECONDS: Final = 1.0
# A request is not sent again before its time limit and this grace are over.
_GRACE_SECONDS: Final = 30.0


class Client(ClientProtocol):
    """A client: a REQ socket with a context for each job."""

    capabilities = CLIENT

    def __init__(self, address: Address, lost: Lost) -> None:
        super().__init__(address, lost)
        self._pipe = RequestPipe(address, self._broken)
        self._waiting: dict[JobListener, bytes] = {}  # request ids
        self._dialled_at = 0.0
        self._redial: asyncio.Task[None] | None = None
        self._over = False

    @classmethod
    def unsupported_reason(cls, order: Order) -> str:
        """Names are UTF-8 text."""
        return unsupported_name(order.function)

    async def open(self) -> None:
        """Dial, and wait for the greeting."""
        self._dialled_at = asyncio.get_running_loop().time()
        await self._pipe.open(self.tls)

    def submit(self, order: Order, listener: JobListener) -> None:
        """JOB. There is no acknowledgement, so the job is accepted when it is sent."""
        header = memodb_client.job(order.function, _milliseconds(order.timeout))
        resend_after = max(RESEND_SECONDS, order.timeout + _GRACE_SECONDS if order.timeout else 0.0)

        def reply(message: Message, payload: bytes) -> None:
            self._waiting.pop(listener, None)
            if message.kind != wire.RESULT:
                listener.gone(ServerGoneError(f"the broker answered a job with a message of type {message.kind}"))
                raise WireError("OUT_OF_TURN", f"a client is answered with RESULT, not with type {message.kind}")
            listener.event(Completed(payload))

        self._waiting[listener] = self._pipe.request(header, order.payload, reply, resend_after)
        listener.accepted(Acceptance(b"", order.function))

    def forget(self, listener: JobListener) -> None:
        """Do not send the request again; the protocol has no message for it."""
        id = self._waiting.pop(listener, None)
        if id is not None:
            self._pipe.requests.pop(id, None)

    async def close(self) -> None:
        """Close the connection."""
        self._over = True
        if self._redial is not None:
            self._redial.cancel()
            await asyncio.gather(self._redial, return_exceptions=True)
        await self._pipe.close()
        self._waiting.clear()

    def _broken(self, error: Exception) -> None:
        """Dial again if requests wait: the broker may have dropped one. Otherwise report the loss."""
        if self._waiting and not isinstance(error, WireError):
            self._redial = asyncio.get_running_loop().create_task(self._dial_again())
        else:
            self._give_up(error)

    async def _dial_again(self) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(max(self._dialled_at + _REDIAL_SECONDS - loop.time(), 0.0))
        self._dialled_at = loop.time()
        self._pipe = RequestPipe(self.address, self._broken, self._pipe.requests)
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


def _milliseconds(seconds: float) -> int:
    return min(max(math.ceil(seconds * 1000), 1), _NO_LIMIT) if seconds else _NO_LIMIT
