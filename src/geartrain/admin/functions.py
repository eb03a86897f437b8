"""Standing orders: which functions are paused, and their limits. They outlive a restart.

Only what an operator orders here does. A limit that a Gearman client sets with `maxqueue` is in force until the
server stops, as with every Gearman server.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from geartrain.admin.saved_values import SavedValues, SaveValue
from geartrain.engine.engine import Engine
from geartrain.engine.function import UNLIMITED

_NO_LIMITS: Final = (UNLIMITED, UNLIMITED, UNLIMITED)


class _Setting(msgspec.Struct, frozen=True):
    function: bytes
    paused: bool = False
    limits: tuple[int, int, int] = _NO_LIMITS


class FunctionSettings:
    """Made at the start, when it gives the engine the orders from before."""

    def __init__(self, engine: Engine, kept: Mapping[str, bytes], keep: SaveValue) -> None:
        self._engine = engine
        self._saved = SavedValues("order", kept, keep)
        self._settings: dict[bytes, _Setting] = {}
        for place, value in self._saved.values():
            try:
                order = msgspec.json.decode(value, type=_Setting)
            except msgspec.MsgspecError:
                continue  # of a version that we do not know: left as it is
            self._saved.own(_name(order.function), place)
            self._settings[order.function] = order
            self._apply(order)

    def pause(self, function: bytes, paused: bool) -> None:
        """Hand out no jobs of a function, or hand them out again."""
        if paused:
            self._engine.pause(function)
        else:
            self._engine.resume(function)
        self._note(msgspec.structs.replace(self._order(function), paused=paused))

    def limit(self, function: bytes, high: int, normal: int, low: int) -> None:
        """How many jobs a function may have when one of that priority wants in; 0: any number."""
        self._engine.limit(function, high, normal, low)
        self._note(msgspec.structs.replace(self._order(function), limits=(high, normal, low)))

    def forget(self, function: bytes) -> None:
        """The function was dropped."""
        if self._settings.pop(function, None) is not None:
            self._saved.remove(_name(function))

    def _order(self, function: bytes) -> _Setting:
        return self._settings.get(function) or _Setting(function)

    def _note(self, order: _Setting) -> None:
        if order == _Setting(order.function):
            self.forget(order.function)
        else:
            self._settings[order.function] = order
            self._saved.put(_name(order.function), msgspec.json.encode(order))

    def _apply(self, order: _Setting) -> None:
        if order.paused:
            self._engine.pause(order.function)
        if order.limits != _NO_LIMITS:
            self._engine.limit(order.function, *order.limits)


def _name(function: bytes) -> str:
    return function.decode("latin-1")
