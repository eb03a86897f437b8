"""What clients and workers do, without doing it: generators that yield commands and are sent the replies.

So the synchronous and the asyncio library are the same, and only differ in who carries out the commands.
"""

import contextlib
import math
from collections.abc import Generator
from typing import Any, Final, NamedTuple, TypeVar

from geartrain.client.redis.scripts import Script


class Command(NamedTuple):
    """One command, or several that happen together or not at all."""

    words: tuple[tuple[Any, ...], ...]
    # Whether it may be sent again when the connection broke and nobody knows whether it was carried out.
    repeatable: bool = False


class Moves(NamedTuple):
    """Wait at several lists at once; what comes is moved to another list, by Redis and in one with its being popped.

    Answered with what was moved from each list, or None. Usually one comes first, and the other waits are called off.
    """

    lists: tuple[tuple[str, str], ...]  # from where, and to where
    seconds: float
    repeatable: bool = True  # as in a command: what was moved when a connection broke is not lost

    def commands(self) -> list[tuple[str, str, str, str]]:
        """One for each list. Old servers take whole seconds only; a wait that is over sooner is called off."""
        seconds = str(max(math.ceil(self.seconds), 1))
        return [("BRPOPLPUSH", *lists, seconds) for lists in self.lists]


# A wait that had not begun when it was called off is called off again after so many seconds.
CALL_OFF_AGAIN: Final = 0.005

_LOADS: Final = 5  # of one script, before its absence is an error

T = TypeVar("T")
Request = Command | Moves
Flow = Generator[Request, Any, T]


class NoScriptError(Exception):
    """Redis does not know a script: it was started anew, or told to forget."""


class BrokenError(Exception):
    """The connection broke, and the command must not be sent again blindly."""


class RefusedError(Exception):
    """The server answered with an error."""


def once(*words: Any) -> Command:
    """A command that must not be carried out twice."""
    return Command((words,))


def again(*words: Any) -> Command:
    """A command that may be carried out twice."""
    return Command((words,), repeatable=True)


def together(*commands: tuple[Any, ...]) -> Command:
    """Several that happen together."""
    return Command(commands)


def evaluate(script: Script, keys: list[str], arguments: list[Any]) -> Flow[Any]:
    """Run a script by its hash; where it is not known, load it first.

    More than once, if need be: a server that is started anew between the two does not know it again.
    """
    call = again("EVALSHA", script.sha1, len(keys), *keys, *arguments)
    for _ in range(_LOADS):
        with contextlib.suppress(NoScriptError):
            return (yield call)
        yield from load(script)
    return (yield call)


def load(script: Script) -> Flow[None]:
    """Load a script, and insist on its hash."""
    sha1 = yield again("SCRIPT", "LOAD", script.text)
    found = sha1.decode() if isinstance(sha1, bytes) else str(sha1)
    if found != script.sha1:
        raise RuntimeError(f"the server calls the script {found}, and it should be {script.sha1}")
