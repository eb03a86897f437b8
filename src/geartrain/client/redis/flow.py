"""The commands of clients and workers, without I/O: generators that yield commands and are sent the replies.

A `RedisConnection` runs a flow and repeats its commands when a connection breaks; a `Pipeline` runs many flows at once
on one connection.

>>> flow = evaluate(Script("return 1", "e0e1"), keys=[], arguments=[])
>>> next(flow).commands
(('EVALSHA', 'e0e1', 0),)
"""

import contextlib
import math
from collections.abc import Generator
from typing import Any, Final, NamedTuple, TypeVar

from geartrain.client.redis.scripts import Script


class RedisCommand(NamedTuple):
    """One command, or several that are sent at once."""

    commands: tuple[tuple[Any, ...], ...]
    # Whether it may be sent again when the connection broke before the reply, so that it may have been executed.
    repeatable: bool = False
    transaction: bool = True  # several are executed as one; otherwise the reply is the list of their replies
    blocks: bool = False  # it may wait at the server, and delays what is sent after it on the same connection


class Moves(NamedTuple):
    """Wait at several lists at once; Redis moves what it pops to another list in the same step.

    The reply is what was moved from each list, or None. When one has moved, the waits at the others are cancelled.
    """

    lists: tuple[tuple[str, str], ...]  # source and destination
    seconds: float
    repeatable: bool = True  # what was moved when a connection broke is in its destination, and not lost

    def commands(self) -> list[tuple[str, str, str, str]]:
        """One command for each list. Old servers take whole seconds only; a shorter wait is cancelled."""
        seconds = str(max(math.ceil(self.seconds), 1))
        return [("BRPOPLPUSH", *lists, seconds) for lists in self.lists]


# CLIENT UNBLOCK is sent again after this many seconds: the wait may not have begun when the first one arrived.
UNBLOCK_SECONDS: Final = 0.005

_LOADS: Final = 5  # of one script, before its absence is an error

T = TypeVar("T")
Request = RedisCommand | Moves
Flow = Generator[Request, Any, T]


class NoScriptError(Exception):
    """Redis does not know a script: it was restarted, or its scripts were flushed."""


class BrokenError(Exception):
    """The connection broke before the reply to a command that must not be repeated."""


class NotSentError(BrokenError):
    """The connection had ended before the command was sent."""


class CommandError(Exception):
    """The server replied with an error."""


def once(*command: Any) -> RedisCommand:
    """A command that must not be executed twice."""
    return RedisCommand((command,))


def repeatable(*command: Any) -> RedisCommand:
    """A command that may be executed twice."""
    return RedisCommand((command,), repeatable=True)


def blocking(*command: Any) -> RedisCommand:
    """A command that waits at the server, and must not be executed twice."""
    return RedisCommand((command,), blocks=True)


def together(*commands: tuple[Any, ...]) -> RedisCommand:
    """Several commands that are sent at once, and must not be executed twice. Errors are in the list of replies."""
    return RedisCommand(commands, transaction=False)


def transaction(*commands: tuple[Any, ...]) -> RedisCommand:
    """Several commands that are executed together, and must not be executed twice."""
    return RedisCommand(commands)


def evaluate(script: Script, keys: list[str], arguments: list[Any]) -> Flow[Any]:
    """Run a script by its hash; load it first where Redis does not know it.

    It is loaded more than once if need be: a server that is restarted in between does not know it again.
    """
    call = repeatable("EVALSHA", script.sha1, len(keys), *keys, *arguments)
    for _ in range(_LOADS):
        with contextlib.suppress(NoScriptError):
            return (yield call)
        yield from load(script)
    return (yield call)


def load(script: Script) -> Flow[None]:
    """Load a script, and check its hash."""
    reply = yield repeatable("SCRIPT", "LOAD", script.text)
    sha1 = reply.decode() if isinstance(reply, bytes) else str(reply)
    if sha1 != script.sha1:
        raise RuntimeError(f"the server computed the hash {sha1} for a script, expected {script.sha1}")
