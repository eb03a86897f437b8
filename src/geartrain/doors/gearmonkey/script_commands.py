"""The script of the document, which claims a due job. There is no Lua here: the script is recognized by its hash."""

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from geartrain.doors.gearmonkey import keys, queue_commands
from geartrain.errors import WireError
from geartrain.wire import resp

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection

SHA1: Final = b"5231827cd49b540660ef44969b38cc858f157824"
_NO_SCRIPT: Final = WireError("NOSCRIPT", "No matching script. Please use EVAL.", fatal=False)
_OTHER_SCRIPT: Final = keys.refusal("only the script of GearMonkey's document is known here; there is no Lua")


def evalsha(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """EVALSHA: run the script, whether or not it was loaded."""
    if arguments[1].lower() != SHA1:
        raise _NO_SCRIPT
    return _run(connection, arguments)


def eval_(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """EVAL: run the script by its text."""
    if _hash(arguments[1]) != SHA1:
        raise _OTHER_SCRIPT
    return _run(connection, arguments)


def script(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """SCRIPT LOAD, EXISTS, FLUSH."""
    handler = _SUBCOMMANDS.get(arguments[1].upper())
    if handler is None:
        raise keys.refusal(f"unknown subcommand {keys.shown(arguments[1])}. Try SCRIPT HELP.")
    return handler(arguments[2:])


def _run(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    count = keys.integer(arguments[2])
    if count < 0:
        raise keys.refusal("Number of keys can't be negative")
    if count > len(arguments) - 3:
        raise keys.refusal("Number of keys can't be greater than number of args")
    if count != 1 or len(arguments) < 5:
        raise keys.refusal("the script has one key, queue:{FN}:scheduled, and one argument, the time")
    key = keys.parse(arguments[3])
    job = queue_commands.claim_due(connection, key, arguments[4])
    return [key.raw, b"%d" % job.id] if job is not None else None


def _load(arguments: list[bytes]) -> resp.Value:
    if len(arguments) != 1:
        raise keys.refusal("wrong number of arguments for 'script|load' command")
    if _hash(arguments[0]) != SHA1:
        raise _OTHER_SCRIPT
    return SHA1


def _exists(arguments: list[bytes]) -> resp.Value:
    return [int(word.lower() == SHA1) for word in arguments]


def _flush(arguments: list[bytes]) -> resp.Value:
    return resp.OK


_SUBCOMMANDS: Final[dict[bytes, Callable[[list[bytes]], resp.Value]]] = {
    b"LOAD": _load,
    b"EXISTS": _exists,
    b"FLUSH": _flush,
}


def _hash(text: bytes) -> bytes:
    return hashlib.sha1(text, usedforsecurity=False).hexdigest().encode()
