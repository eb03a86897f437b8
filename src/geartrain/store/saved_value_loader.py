"""Loading the saved values of a dump into a store.

Most values are in slots, `cron.0`, `order.1`, or `cron.nightly` in a store that several servers share. They name what
they are about in their own text: a schedule has a `name`, the settings of a function have a `function`. Two values of
the same kind and name are the same setting, whatever their slots.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from geartrain.store.dump import SavedValue
from geartrain.store.load_counts import LoadCounts

_SLOT: Final = re.compile(r"(.+)\.([0-9]+)")


class SavedValueLoader:
    """Adds values to those that a store has. A setting that is there already is left as it is, or replaced.

    `save` is called with the slot and the value of each one that is added.
    """

    def __init__(self, values: Mapping[str, bytes], counts: LoadCounts, save: Callable[[str, bytes], object]) -> None:
        self._counts = counts
        self._save = save
        self._values = {name: value for name, value in values.items() if value}
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
        self._save(slot, saved.value)
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
    unnamed = (slot[1], value) if slot is not None else (name, b"")
    kind, dot, _ = name.partition(".")
    if not dot:
        return unnamed
    try:
        fields = msgspec.json.decode(value)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return unnamed
    if not isinstance(fields, dict):
        return unnamed
    named = fields.get("name", fields.get("function"))
    return (kind, str(named)) if named is not None else unnamed
