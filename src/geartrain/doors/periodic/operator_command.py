"""Commands of operators: what each does is recorded in the audit log."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from geartrain.audit import OK, REFUSED
from geartrain.wire import periodic as wire

if TYPE_CHECKING:
    from geartrain.doors.periodic.connection import PeriodicConnection

# Returns why it was refused; empty if it was carried out, or begun.
OperatorHandler = Callable[["PeriodicConnection", bytes, wire.Arguments], str]


class OperatorCommand:
    """The handler of such a command, as the table has it. The engine records what it refuses by itself."""

    def __init__(self, handler: OperatorHandler, name: str, names_something: bool = False) -> None:
        self._handler = handler
        self._name = name
        self._names_something = names_something  # the first argument is the name of what it concerns

    def __call__(self, connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
        words = [arguments.copy().short()] if self._names_something else None
        connection.command = self._name
        try:
            why = self._handler(connection, message_id, arguments)
        finally:
            connection.command = ""
        connection.audit(self._name, REFUSED if why else OK, words, why)
