"""What Periodic's clients and workers have in common: coming in, asking, being answered, and staying awake.

Every request has a message id, and its answers carry the same one. A server closes connections that are silent, so
this side says something every now and then, and takes a server that does not answer for gone.
"""

import asyncio
import os
import ssl
from collections.abc import Callable
from typing import Final

from geartrain.address import Address
from geartrain.client.protocols.connection import ServerConnection
from geartrain.errors import RefusedError, ServerGoneError, WireError
from geartrain.wire import periodic as wire
from geartrain.wire import periodic_client

# The shortest that a server of today waits by default for a silent peer is 120 seconds.
PING_SECONDS: Final = 50.0
# What to show to a server that wants a token: the same variable that such a server of ours reads.
TOKEN_VARIABLE: Final = "GEARTRAIN_PERIODIC_TOKEN"
_LAST_ID: Final = 0x7FFFFFFF
_NAMED: Final = {wire.CLIENT: wire.NAMED_CLIENT, wire.WORKER: wire.NAMED_WORKER}

Heard = Callable[[int, wire.Arguments], None]  # an answer's command and its arguments


class Session:
    """One connection."""

    def __init__(self, address: Address, broken: Callable[[Exception], None]) -> None:
        self._address = address
        self._broken = broken
        self.connection = ServerConnection(self._received, self._ended)
        self.waiting: dict[int, Heard] = {}  # by message id
        self._answers = periodic_client.AnswerReader()
        self._last_id = 0
        self._came_in = False  # the server has said who we are
        self._ping_timer: asyncio.TimerHandle | None = None
        self._unanswered = 0  # the message id of a ping, until its PONG

    async def open(self, kind: int, name: bytes, tls: ssl.SSLContext | None) -> None:
        """Come in, and hear that the server is there."""
        token = os.environ.get(TOKEN_VARIABLE, "").encode()
        await self.connection.open(self._address, tls)
        self.connection.write(periodic_client.registration(_NAMED[kind] if name or token else kind, name, token))
        self._ping()
        await self.connection.answer()
        self._ping_timer = asyncio.get_running_loop().call_later(PING_SECONDS, self._stay_awake)

    def ask(self, command: int, arguments: bytes, heard: Heard) -> int:
        """Send a command; `heard` is called with every answer until its message id is no longer in `waiting`."""
        id = self.number()
        self.waiting[id] = heard
        self.connection.write(periodic_client.request(id, command, arguments))
        return id

    def tell(self, command: int, arguments: bytes = b"") -> None:
        """Send a command whose answer, if it has one, says nothing."""
        self.connection.write(periodic_client.request(self.number(), command, arguments))

    def number(self) -> int:
        """A message id that is not in use."""
        while True:
            self._last_id = self._last_id % _LAST_ID + 1
            if self._last_id not in self.waiting:
                return self._last_id

    async def close(self) -> None:
        """Hang up."""
        self._stop()
        await self.connection.close()

    def _received(self, data: bytes) -> None:
        answers = self._answers
        answers.feed(data)
        while answers.next() == wire.FRAME:
            if self._came_in:
                self._answered(answers.data, answers.start, answers.end)
            else:
                self._admitted(answers.data[answers.start : answers.end])

    def _answered(self, data: bytes, start: int, end: int) -> None:
        if end - start < 5:
            raise WireError("TRUNCATED", "an answer has a message id and a command")
        heard = self.waiting.get(int.from_bytes(data[start : start + 4], "big"))
        if heard is not None:
            heard(data[start + 4], wire.Arguments(data, start + 5, end))

    def _admitted(self, said: bytes) -> None:
        """The answer to the first frame: a connection id; or that there is none."""
        if said[:1] == bytes((wire.NO_WORKER,)) and len(said) == 1:
            self.connection.fail(
                RefusedError(f"the server does not let us in without its token (see {TOKEN_VARIABLE})")
            )
        self._came_in = True

    def _ping(self) -> None:
        self._unanswered = self.ask(wire.PING, b"", self._pong)

    def _pong(self, command: int, arguments: wire.Arguments) -> None:
        self.waiting.pop(self._unanswered, None)
        self._unanswered = 0
        self.connection.answered()

    def _stay_awake(self) -> None:
        if self._unanswered:
            self.connection.fail(ServerGoneError(f"the server did not answer a ping for {PING_SECONDS:g} seconds"))
            return
        self._ping()
        self._ping_timer = asyncio.get_running_loop().call_later(PING_SECONDS, self._stay_awake)

    def _ended(self, error: Exception) -> None:
        self._stop()
        self._broken(error)

    def _stop(self) -> None:
        if self._ping_timer is not None:
            self._ping_timer.cancel()
            self._ping_timer = None


def too_long(name: bytes, what: str) -> str:
    """Why this cannot be said, since names have one byte for their length; empty if it can."""
    if len(name) <= periodic_client.LONGEST_NAME:
        return ""
    return f"a {what} of periodic has at most {periodic_client.LONGEST_NAME} bytes, this one has {len(name)}"
