"""MULTI, EXEC and WATCH. The server runs one command at a time, so a transaction is a list of commands."""

from typing import TYPE_CHECKING, Final

from geartrain.doors.gearmonkey import key_commands, keys
from geartrain.errors import WireError
from geartrain.wire import resp

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.commands import Command
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection

MOST_COMMANDS: Final = 10_000
MOST_WORDS: Final = 50_000  # of all commands: EXEC runs them without a pause
_MOST_WATCHED: Final = 1000
_ABORTED: Final = WireError("EXECABORT", "Transaction discarded because of previous errors.", fatal=False)


class Transaction:
    """The commands since MULTI."""

    __slots__ = ("commands", "failed", "size", "words")

    def __init__(self) -> None:
        self.commands: list[tuple[Command, list[bytes]]] = []
        self.failed = False  # one of them was refused
        self.size = 0  # bytes of all arguments
        self.words = 0

    @property
    def is_too_large(self) -> bool:
        """Whether it has more commands or words than a transaction may have."""
        return len(self.commands) >= MOST_COMMANDS or self.words > MOST_WORDS


def multi(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """MULTI: queue the commands that follow."""
    if connection.transaction is not None:
        raise keys.refusal("MULTI calls can not be nested")
    connection.transaction = Transaction()
    return resp.OK


def execute(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """EXEC: run the queued commands, unless a watched key has changed."""
    queued = connection.transaction
    if queued is None:
        raise keys.refusal("EXEC without MULTI")
    changed = bool(connection.watched) and _has_changed(connection)
    abandon(connection)
    if queued.failed:
        raise _ABORTED
    if changed:
        return resp.NULL_ARRAY
    connection.in_transaction = True
    connection.jobs_listed = 0
    try:
        return [connection.value_of(row, words) for row, words in queued.commands]
    finally:
        connection.in_transaction = False
        ends, connection.ends = connection.ends, []
        for number in ends:
            connection.gearmonkey.ending.end_waiting(number)


def discard(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """DISCARD: drop the queued commands."""
    if connection.transaction is None:
        raise keys.refusal("DISCARD without MULTI")
    abandon(connection)
    return resp.OK


def watch(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """WATCH: EXEC fails if one of these keys changes."""
    if connection.transaction is not None:
        raise keys.refusal("WATCH inside MULTI is not allowed")
    if len(connection.watched) + len(arguments) > _MOST_WATCHED:
        raise keys.refusal(f"a connection can watch {_MOST_WATCHED} keys")
    for raw in arguments[1:]:
        connection.watched.setdefault(raw, key_commands.fingerprint(connection, raw))
    return resp.OK


def unwatch(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """UNWATCH: watch no key."""
    connection.watched.clear()
    return resp.OK


def _has_changed(connection: "GearmonkeyConnection") -> bool:
    """Whether a watched key has changed."""
    return any(key_commands.fingerprint(connection, raw) != was for raw, was in connection.watched.items())


def abandon(connection: "GearmonkeyConnection") -> None:
    """End the transaction, and watch no key."""
    connection.transaction = None
    connection.watched.clear()
