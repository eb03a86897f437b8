"""MULTI, EXEC and WATCH. The server does one thing at a time, so a transaction is a list of commands."""

from typing import TYPE_CHECKING, Final

from geartrain.doors.gearmonkey import key_commands, keys
from geartrain.errors import WireError
from geartrain.wire import resp

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection
    from geartrain.doors.gearmonkey.table import Row

MOST_COMMANDS: Final = 100_000
_MOST_WATCHED: Final = 1000
_ABORTED: Final = WireError("EXECABORT", "Transaction discarded because of previous errors.", fatal=False)


class Transaction:
    """What was said since MULTI."""

    __slots__ = ("commands", "failed", "size")

    def __init__(self) -> None:
        self.commands: list[tuple[Row, list[bytes]]] = []
        self.failed = False  # one of them was refused
        self.size = 0  # bytes of all arguments


def multi(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """MULTI: gather what comes."""
    if connection.transaction is not None:
        raise keys.refusal("MULTI calls can not be nested")
    connection.transaction = Transaction()
    return resp.OK


def execute(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """EXEC: do all of it, unless a watched key has changed."""
    gathered = connection.transaction
    if gathered is None:
        raise keys.refusal("EXEC without MULTI")
    changed = any(key_commands.fingerprint(connection, raw) != was for raw, was in connection.watched.items())
    abandon(connection)
    if gathered.failed:
        raise _ABORTED
    if changed:
        return resp.NULL_ARRAY
    connection.in_transaction = True
    try:
        return [connection.value_of(row, words) for row, words in gathered.commands]
    finally:
        connection.in_transaction = False


def discard(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """DISCARD: do nothing of it."""
    if connection.transaction is None:
        raise keys.refusal("DISCARD without MULTI")
    abandon(connection)
    return resp.OK


def watch(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """WATCH: EXEC is to do nothing if one of these has changed by then."""
    if connection.transaction is not None:
        raise keys.refusal("WATCH inside MULTI is not allowed")
    if len(connection.watched) + len(arguments) > _MOST_WATCHED:
        raise keys.refusal(f"a connection can watch {_MOST_WATCHED} keys")
    for raw in arguments[1:]:
        connection.watched.setdefault(raw, key_commands.fingerprint(connection, raw))
    return resp.OK


def unwatch(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """UNWATCH: never mind."""
    connection.watched.clear()
    return resp.OK


def abandon(connection: "GearmonkeyConnection") -> None:
    """Neither gather nor watch any more."""
    connection.transaction = None
    connection.watched.clear()
