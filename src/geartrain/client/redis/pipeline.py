"""A connection to a Redis that many flows share: commands leave together, and answers come back in their order.

redis-py needs a connection for each command that is under way. Here thousands can be, on one.
"""

import asyncio
import collections
import ssl
from collections.abc import Callable
from typing import Any, Final, TypeVar

from geartrain.address import Address
from geartrain.client.protocols import connection
from geartrain.client.redis import replies
from geartrain.client.redis.flow import BrokenError, Command, Flow, Moves, NoScriptError, RefusedError, Request
from geartrain.errors import ClientError, WireError
from geartrain.wire import resp

T = TypeVar("T")
Answer = Callable[[Any], None]  # an answer, or the exception in its place
Wait = Callable[[Moves], "asyncio.Future[Any]"]


class Pipeline:
    """One connection. It is opened once, and of no use after its end."""

    def __init__(
        self,
        broken: Callable[[Exception], None],
        told: Callable[[list[Any]], None] | None = None,
        wait: Wait | None = None,
    ) -> None:
        self._broken = broken  # called once if the connection breaks, when everybody who waits has been told
        self._told = told  # what a subscriber hears that is not an answer
        self._wait = wait  # where flows wait at lists
        self._connection = connection.ServerConnection(self._received, self._broke)
        self._replies = replies.Replies()
        self._answers: collections.deque[Answer] = collections.deque()  # who waits, in the order of the commands
        self._end: Exception | None = None  # why it ended

    async def open(self, address: Address, tls: ssl.SSLContext | None = None) -> None:
        """Connect, choose the database, and see that there is a Redis."""
        await self._connection.open(address, tls)
        database = address.path.removeprefix("/") or "0"
        selected = self.ask("SELECT", database)
        selected.add_done_callback(self._selected)
        try:
            await self._connection.answer()
            await selected
        except WireError as error:
            raise ClientError(f"{address} is no Redis: {error.text}") from error
        except RefusedError as error:
            await self.close()
            raise ClientError(f"{address} refuses: {error}") from error

    def _selected(self, answer: "asyncio.Future[Any]") -> None:
        if not answer.cancelled():
            answer.exception()  # `open` may have been cancelled, and nobody else asks for it
        self._connection.answered()

    def send(self, words: tuple[Any, ...], answer: Answer) -> None:
        """Say a command at the end of this turn of the loop; the answer comes as a call."""
        if self._end is not None:
            answer(BrokenError(str(self._end)))
            return
        self._answers.append(answer)
        self._connection.write(resp.request(*map(_encoded, words)))

    def say(self, *words: Any) -> None:
        """Say a command of a subscriber's, which is not answered but told."""
        if self._end is None:
            self._connection.write(resp.request(*map(_encoded, words)))

    def ask(self, *words: Any) -> "asyncio.Future[Any]":
        """The answer to a command, when it comes."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.send(words, lambda answer: _settle(future, answer))
        return future

    def start(self, what: Flow[T], done: Callable[[T | Exception], None]) -> None:
        """Do everything that a flow wants done, then say what came of it."""
        self._step(what, done, None)

    def carry_out(self, what: Flow[T]) -> "asyncio.Future[T]":
        """What comes of a flow, when it is done."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.start(what, lambda result: _settle(future, result))
        return future

    async def close(self) -> None:
        """Say what has gathered, and hang up; who still waits is told that it broke."""
        self._finish(ConnectionError("this side closed the connection"))
        await self._connection.close()

    def abandon(self) -> None:
        """Hang up at once."""
        self._finish(ConnectionError("this side closed the connection"))
        self._connection.abandon()

    def _step(self, what: Flow[T], done: Callable[[T | Exception], None], answer: Any) -> None:
        try:
            failed = isinstance(answer, Exception)
            request: Request = what.throw(answer) if failed else what.send(answer)
        except StopIteration as end:
            done(end.value)
            return
        except Exception as error:
            done(error)
            return
        self._perform(request, lambda answer: self._step(what, done, answer))

    def _perform(self, request: Request, answer: Answer) -> None:
        if isinstance(request, Moves):
            assert self._wait is not None
            self._wait(request).add_done_callback(lambda moved: _pass_on(moved, answer))
        elif len(request.words) == 1:
            words = request.words[0]
            self.send(words, lambda found: answer(_result(words, found)))
        else:
            self._perform_together(request, answer)

    def _perform_together(self, command: Command, answer: Answer) -> None:
        """MULTI, the commands, EXEC: what EXEC answers is the answer."""
        for words in (("MULTI",), *command.words):
            self.send(words, _ignore)
        self.send(("EXEC",), lambda found: answer(_together(found)))

    def _received(self, data: bytes) -> None:
        self._replies.feed(data)
        while (reply := self._replies.next()) is not replies.MORE:
            if self._told is not None and isinstance(reply, list):
                self._told(reply)
            elif self._answers:
                self._answers.popleft()(_answered(reply))
            else:
                raise WireError("ERR", "an answer to nothing")

    def _broke(self, error: Exception) -> None:
        self._finish(error)
        self._broken(error)

    def _finish(self, error: Exception) -> None:
        if self._end is None:
            self._end = error
        while self._answers:
            self._answers.popleft()(BrokenError(str(error)))


def _encoded(word: Any) -> bytes:
    if isinstance(word, bytes):
        return word
    return str(word).encode("utf-8", "surrogateescape")


def _answered(reply: Any) -> Any:
    """An error becomes the exception that a flow knows."""
    if not isinstance(reply, replies.Fault):
        return reply
    return NoScriptError() if reply.text.startswith("NOSCRIPT") else RefusedError(reply.text)


def _result(words: tuple[Any, ...], answer: Any) -> Any:
    shape = _SHAPES.get(words[0])
    return shape(answer) if shape is not None and not isinstance(answer, Exception) else answer


def _together(answer: Any) -> Any:
    if isinstance(answer, Exception):
        return answer
    refused = [part for part in answer or () if isinstance(part, replies.Fault)]
    return RefusedError(refused[0].text) if refused else answer


def _pairs(answer: list[bytes]) -> dict[bytes, bytes]:
    return dict(zip(answer[0::2], answer[1::2], strict=True))


# Answers that flows know in another shape, which is redis-py's.
_SHAPES: Final[dict[str, Callable[[Any], Any]]] = {"HGETALL": _pairs, "INFO": bytes.decode}


def _settle(future: "asyncio.Future[Any]", answer: Any) -> None:
    if future.done():
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)


def _pass_on(future: "asyncio.Future[Any]", answer: Answer) -> None:
    if not future.cancelled():
        error = future.exception()
        answer(future.result() if error is None else error)


def _ignore(answer: Any) -> None:
    pass
