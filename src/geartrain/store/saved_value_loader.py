"""Loading the saved values of a dump into a store.

Most values are in numbered slots, `cron.0`, `order.1`, and name what they are about in their own text: a schedule has a
`name`, the settings of a function have a `function`. Two values of the same kind and name are the same setting,
whatever their slots.
"""

import re
from typing import Any, Final

import apsw
import msgspec

from geartrain.store.dump import SavedValue
from geartrain.store.load_counts import LoadCounts

_SLOT: Final = re.compile(r"(.+)\.([0-9]+)")
_SELECT: Final = "SELECT name, value FROM kept WHERE value <> x'' ORDER BY name"
_SAVE: Final = "INSERT OR REPLACE INTO kept VALUES (?, ?)"


class SavedValueLoader:
    """Adds values, within a transaction. A setting that the store has already is left as it is, or replaced."""

    def __init__(self, connection: apsw.Connection, counts: LoadCounts) -> None:
        self._connection = connection
        self._counts = counts
        rows: Any = connection.execute(_SELECT)
        self._values = {str(name): bytes(value) for name, value in rows}
        self._slots = {_subject(name, value): name for name, value in self._values.items()}

    def add(self, saved: SavedValue) -> None:
        """Add a value, unless the store has it."""
        subject = _subject(saved.name, saved.value)
        slot = self._slots.get(subject)
        if slot is not None and (not self._counts.replace or self._values[slot] == saved.value):
            self._counts.present += 1
            return
        self._counts.replaced += slot is not None
        slot = slot or self._free_slot(saved.name)
        self._slots[subject] = slot
        self._values[slot] = saved.value
        self._connection.execute(_SAVE, (slot, saved.value))
        self._counts.values += 1

    def _free_slot(self, name: str) -> str:
        """The slot of that name, or the next one of its kind that is free."""
        slot = _SLOT.fullmatch(name)
        number = int(slot[2]) if slot is not None else 0
        while name in self._values and slot is not None:
            number += 1
            name = f"{slot[1]}.{number}"
        return name


def _subject(name: str, value: bytes) -> tuple[str, object]:
    """What a value is about: its own name, or the kind of its slot and the name in its text."""
    slot = _SLOT.fullmatch(name)
    if slot is None:
        return (name, "")
    try:
        fields = msgspec.json.decode(value)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return (slot[1], value)
    if not isinstance(fields, dict):
        return (slot[1], value)
    named = fields.get("name", fields.get("function"))
    return (slot[1], str(named) if named is not None else value)
