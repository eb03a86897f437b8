"""One connection to a Redis, for any number of commands and flows at once: replies come in the order of commands."""

import asyncio
import collections
import ssl
from collections.abc import Callable
from typing import Any, Final, TypeVar

from geartrain.address import Address
from geartrain.client.protocols import connection
from geartrain.client.protocols.base import authentication_error
from geartrain.client.redis.flow import (
    BrokenError,
    CommandError,
    Flow,
    Moves,
    NoScriptError,
    NotSentError,
    RedisCommand,
    Request,
)
from geartrain.errors import ClientError, WireError
from geartrain.wire import resp, resp_client

_NO_TOKEN: Final = "NOAUTH"  # the first word of the error of a Redis that requires a password

T = TypeVar("T")
OnReply = Callable[[Any], None]  # called with a reply, or with an exception in its place
Wait = Callable[[Moves], "asyncio.Future[Any]"]


class Pipeline:
    """One connection. It can be opened once."""

    def __init__(
        self,
        broken: Callable[[Exception], None],
        pushed: Callable[[list[Any]], None] | None = None,
        wait: Wait | None = None,
    ) -> None:
        self._broken = broken  # called once if the connection breaks, after the commands have failed
        self._pushed = pushed  # called with the messages of a subscription
        self._wait = wait  # performs Moves
        self._connection = connection.ServerConnection(self._received, self._broke)
        self._replies = resp_client.ReplyReader()
        self._unanswered: collections.deque[OnReply] = collections.deque()  # in the order of the commands
        self._end: Exception | None = None  # why the connection ended

    async def open(self, address: Address, tls: ssl.SSLContext | None = None, token: str = "") -> None:
        """Connect, send the token, select the database, and check that there is a Redis."""
        await self._connection.open(address, tls)
        try:
            if token:
                await self._first_answer("AUTH", token)
            await self._first_answer("SELECT", address.path.removeprefix("/") or "0")
        except WireError as error:
            raise ClientError(f"{address} is no Redis: {error.text}") from error
        except CommandError as error:
            await self.close()
            if token or str(error).startswith(_NO_TOKEN):
                raise authentication_error(address, token, str(error)) from None
            raise ClientError(f"{address} refuses: {error}") from error

    async def _first_answer(self, *command: str) -> None:
        """Send a command, and wait for its answer while `broken` is not called."""
        answer = self.ask(*command)
        answer.add_done_callback(self._answered_first)
        await self._connection.answer()
        await answer

    def _answered_first(self, answer: "asyncio.Future[Any]") -> None:
        if not answer.cancelled():
            answer.exception()  # `open` may have been cancelled, and its error must not stay unread
        self._connection.answered()

    @property
    def is_open(self) -> bool:
        """Whether the connection has not ended."""
        return self._end is None

    def send(self, command: tuple[Any, ...], on_reply: OnReply) -> None:
        """Send a command at the end of this iteration of the loop."""
        self._write(_request(command), on_reply)

    def send_unanswered(self, *command: Any) -> None:
        """Send a command of a subscription, whose reply arrives as a message."""
        if self._end is None:
            self._connection.write(_request(command))

    def ask(self, *command: Any) -> "asyncio.Future[Any]":
        """Send a command; the future is its reply."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.send(command, lambda reply: _resolve(future, reply))
        return future

    def perform(self, request: Request) -> "asyncio.Future[Any]":
        """Send a command or transaction of a flow; the future is its reply."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._perform(request, lambda reply: _resolve(future, reply))
        return future

    def start(self, flow: Flow[T], done: Callable[[T | Exception], None]) -> None:
        """Perform all requests of a flow, then call `done` with its result or error."""
        self._step(flow, done, None)

    def run(self, flow: Flow[T]) -> "asyncio.Future[T]":
        """Perform all requests of a flow; the future is its result."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.start(flow, lambda result: _resolve(future, result))
        return future

    async def close(self) -> None:
        """Send what is queued, then close; unanswered commands fail."""
        self._finish(ConnectionError("this side closed the connection"))
        await self._connection.close()

    def abandon(self) -> None:
        """Close at once; unanswered commands fail."""
        self._finish(ConnectionError("this side closed the connection"))
        self._connection.abandon()

    def _step(self, flow: Flow[T], done: Callable[[T | Exception], None], reply: Any) -> None:
        try:
            request: Request = flow.throw(reply) if isinstance(reply, Exception) else flow.send(reply)
        except StopIteration as end:
            done(end.value)
            return
        except Exception as error:
            done(error)
            return
        self._perform(request, lambda reply: self._step(flow, done, reply))

    def _perform(self, request: Request, on_reply: OnReply) -> None:
        if isinstance(request, Moves):
            assert self._wait is not None
            self._wait(request).add_done_callback(lambda moved: _pass_on(moved, on_reply))
        elif len(request.commands) == 1:
            command = request.commands[0]
            self.send(command, lambda reply: on_reply(_reshaped(command, reply)))
        elif request.transaction:
            self._perform_transaction(request, on_reply)
        else:
            self._perform_together(request, on_reply)

    def _perform_together(self, request: RedisCommand, on_reply: OnReply) -> None:
        """Send several commands; the reply is the list of their replies, or the loss of the connection."""
        replies: list[Any] = []
        *first, last = map(_request, request.commands)
        for data in first:
            self._write(data, replies.append)
        self._write(last, lambda reply: on_reply(reply if isinstance(reply, BrokenError) else [*replies, reply]))

    def _perform_transaction(self, transaction: RedisCommand, on_reply: OnReply) -> None:
        """MULTI, the commands, EXEC: the reply to EXEC is the reply."""
        *first, last = map(_request, (("MULTI",), *transaction.commands, ("EXEC",)))
        for data in first:
            self._write(data, _ignore)
        self._write(last, lambda reply: on_reply(_transaction_reply(reply)))

    def _write(self, data: bytes, on_reply: OnReply) -> None:
        if self._end is not None:
            on_reply(NotSentError(str(self._end)))
            return
        self._unanswered.append(on_reply)
        self._connection.write(data)

    def _received(self, data: bytes) -> None:
        self._replies.feed(data)
        while (reply := self._replies.next()) is not resp_client.MORE:
            if self._pushed is not None and isinstance(reply, list):
                self._pushed(reply)
            elif self._unanswered:
                self._unanswered.popleft()(_checked(reply))
            else:
                raise WireError("ERR", "a reply without a command")

    def _broke(self, error: Exception) -> None:
        self._finish(error)
        self._broken(error)

    def _finish(self, error: Exception) -> None:
        if self._end is None:
            self._end = error
        while self._unanswered:
            self._unanswered.popleft()(BrokenError(str(error)))


def _request(command: tuple[Any, ...]) -> bytes:
    """A command's bytes. Several that belong together are encoded before the first is sent: an argument may be bad."""
    return resp.request(*map(_encoded, command))


def _encoded(argument: Any) -> bytes:
    if isinstance(argument, bytes):
        return argument
    return str(argument).encode("utf-8", "surrogateescape")


def _checked(reply: Any) -> Any:
    """The reply, or for an error the exception that flows expect."""
    if not isinstance(reply, resp.ErrorReply):
        return reply
    return NoScriptError() if reply.code == "NOSCRIPT" else _command_error(reply)


def _reshaped(command: tuple[Any, ...], reply: Any) -> Any:
    shape = _SHAPES.get(command[0])
    return shape(reply) if shape is not None and not isinstance(reply, Exception) else reply


def _transaction_reply(reply: Any) -> Any:
    if isinstance(reply, Exception):
        return reply
    errors = [part for part in reply or () if isinstance(part, resp.ErrorReply)]
    return _command_error(errors[0]) if errors else reply


def _command_error(reply: resp.ErrorReply) -> CommandError:
    return CommandError(f"{reply.code} {reply.text}")


def _pairs(reply: list[bytes]) -> dict[bytes, bytes]:
    return dict(zip(reply[0::2], reply[1::2], strict=True))


# Replies that flows expect in another shape.
_SHAPES: Final[dict[str, Callable[[Any], Any]]] = {"HGETALL": _pairs, "INFO": bytes.decode}


def _resolve(future: "asyncio.Future[Any]", reply: Any) -> None:
    if future.done():
        return
    if isinstance(reply, Exception):
        future.set_exception(reply)
    else:
        future.set_result(reply)


def _pass_on(future: "asyncio.Future[Any]", on_reply: OnReply) -> None:
    if not future.cancelled():
        error = future.exception()
        on_reply(future.result() if error is None else error)


def _ignore(reply: Any) -> None:
    pass
