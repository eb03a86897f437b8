"""A connection of a Periodic client or worker: registration, requests and their answers, and pings.

Every request has a message id, and its answers carry the same one. A server closes silent connections, so this side
sends a ping regularly, and closes the connection when it is not answered.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import Final

from geartrain.address import Address
from geartrain.client.protocols.base import authentication_error
from geartrain.client.protocols.connection import ServerConnection
from geartrain.errors import ServerGoneError, WireError
from geartrain.wire import periodic as wire
from geartrain.wire import periodic_client

# Current servers close a connection after 120 seconds of silence or more.
PING_SECONDS: Final = 50.0
_LAST_ID: Final = 0x7FFFFFFF
_NAMED: Final = {wire.CLIENT: wire.NAMED_CLIENT, wire.WORKER: wire.NAMED_WORKER}

OnAnswer = Callable[[int, wire.Arguments], None]  # called with an answer's command and arguments


class Session:
    """One connection, registered as a client or worker."""

    def __init__(self, address: Address, broken: Callable[[Exception], None]) -> None:
        self._address = address
        self._broken = broken
        self.connection = ServerConnection(self._received, self._ended)
        self.waiting: dict[int, OnAnswer] = {}  # by message id
        self._answers = periodic_client.AnswerReader()
        self._last_id = 0
        self._token = b""
        self._registered = False  # the server has answered the registration
        self._ping_timer: asyncio.TimerHandle | None = None
        self._unanswered = 0  # the message id of a ping, until its PONG

    async def open(self, kind: int, name: bytes, tls: ssl.SSLContext | None, secret: str) -> None:
        """Connect, register, and wait for the answer to a ping. The secret is the token; empty: none."""
        token = self._token = secret.encode()
        await self.connection.open(self._address, tls)
        self.connection.write(periodic_client.registration(_NAMED[kind] if name or token else kind, name, token))
        self._ping()
        await self.connection.answer()
        self._ping_timer = asyncio.get_running_loop().call_later(PING_SECONDS, self._send_ping)

    def ask(self, command: int, arguments: bytes, on_answer: OnAnswer) -> int:
        """Send a command; `on_answer` is called with every answer until its message id is no longer in `waiting`."""
        id = self.number()
        self.waiting[id] = on_answer
        self.connection.write(periodic_client.request(id, command, arguments))
        return id

    def send(self, command: int, arguments: bytes = b"") -> None:
        """Send a command whose answer, if any, is ignored."""
        self.connection.write(periodic_client.request(self.number(), command, arguments))

    def number(self) -> int:
        """A message id that is not in use."""
        while True:
            self._last_id = self._last_id % _LAST_ID + 1
            if self._last_id not in self.waiting:
                return self._last_id

    async def close(self) -> None:
        """Close the connection."""
        self._stop()
        await self.connection.close()

    def _received(self, data: bytes) -> None:
        answers = self._answers
        answers.feed(data)
        while answers.next() == wire.FRAME:
            if self._registered:
                self._answered(answers.data, answers.start, answers.end)
            else:
                self._registration_answered(answers.data[answers.start : answers.end])

    def _answered(self, data: bytes, start: int, end: int) -> None:
        if end - start < 5:
            raise WireError("TRUNCATED", "an answer has a message id and a command")
        on_answer = self.waiting.get(int.from_bytes(data[start : start + 4], "big"))
        if on_answer is not None:
            on_answer(data[start + 4], wire.Arguments(data, start + 5, end))

    def _registration_answered(self, frame: bytes) -> None:
        """Handle the answer to the first frame: a connection id, or a refusal."""
        if frame[:1] == bytes((wire.NO_WORKER,)) and len(frame) == 1:
            self.connection.fail(authentication_error(self._address, self._token, ""))
        self._registered = True

    def _ping(self) -> None:
        self._unanswered = self.ask(wire.PING, b"", self._pong)

    def _pong(self, command: int, arguments: wire.Arguments) -> None:
        self.waiting.pop(self._unanswered, None)
        self._unanswered = 0
        self.connection.answered()

    def _send_ping(self) -> None:
        if self._unanswered:
            self.connection.fail(ServerGoneError(f"the server did not answer a ping for {PING_SECONDS:g} seconds"))
            return
        self._ping()
        self._ping_timer = asyncio.get_running_loop().call_later(PING_SECONDS, self._send_ping)

    def _ended(self, error: Exception) -> None:
        self._stop()
        self._broken(error)

    def _stop(self) -> None:
        if self._ping_timer is not None:
            self._ping_timer.cancel()
            self._ping_timer = None


def too_long(name: bytes, what: str) -> str:
    """Why a name is too long for the protocol, whose lengths are one byte; empty if it is not."""
    if len(name) <= periodic_client.LONGEST_NAME:
        return ""
    return f"a {what} of periodic has at most {periodic_client.LONGEST_NAME} bytes, this one has {len(name)}"
