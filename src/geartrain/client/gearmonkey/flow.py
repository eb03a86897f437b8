"""What clients and workers do, without doing it: generators that yield commands and are sent the replies.

So the synchronous and the asyncio library are the same, and only differ in who carries out the commands.
"""

from collections.abc import Generator
from typing import Any, NamedTuple, TypeVar

from geartrain.client.gearmonkey.scripts import Script


class Command(NamedTuple):
    """One command, or several that happen together or not at all."""

    words: tuple[tuple[Any, ...], ...]
    # Whether it may be sent again when the connection broke and nobody knows whether it was carried out.
    repeatable: bool = False


T = TypeVar("T")
Flow = Generator[Command, Any, T]


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
    """Run a script by its hash; where it is not known, load it first."""
    call = again("EVALSHA", script.sha1, len(keys), *keys, *arguments)
    try:
        return (yield call)
    except NoScriptError:
        yield from load(script)
        return (yield call)


def load(script: Script) -> Flow[None]:
    """Load a script, and insist on its hash."""
    sha1 = yield again("SCRIPT", "LOAD", script.text)
    found = sha1.decode() if isinstance(sha1, bytes) else str(sha1)
    if found != script.sha1:
        raise RuntimeError(f"the server calls the script {found}, and it should be {script.sha1}")
