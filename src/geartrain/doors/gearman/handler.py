"""What is done with one type of packet."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from mypy_extensions import i64

if TYPE_CHECKING:
    from geartrain.doors.gearman.connection import GearmanConnection

Function = Callable[["GearmanConnection", bytes, int, int], None]


class Handler:
    """An object rather than a function: the compiler can call its method directly, without packing the arguments."""

    __slots__ = ()

    def handle(self, connection: "GearmanConnection", data: bytes, start: i64, end: i64) -> None:
        """Do what the packet says, whose body lies in `data` from `start` to `end`."""
        raise NotImplementedError


class Plain(Handler):
    """A function all the same, for packets that are not sent a hundred thousand times a second."""

    __slots__ = ("function",)

    def __init__(self, function: Function) -> None:
        self.function = function

    def handle(self, connection: "GearmanConnection", data: bytes, start: i64, end: i64) -> None:
        """Call it."""
        self.function(connection, data, start, end)
