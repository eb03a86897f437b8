"""Named values that survive a restart, and can be removed again.

A store saves values by name and never deletes one. So that names which come and go do not fill it, values are saved
in numbered slots, `order.0`, `order.1`, ...: a slot that was cleared is used for the next name. In a store that several
servers share, two of them might use the same slot for different names. There a slot is named after its value, and the
store removes those that were cleared.
"""

from collections.abc import Callable, Iterator, Mapping

SaveValue = Callable[[str, bytes], None]


class SavedValues:
    """The slots of one kind of value. A value is never empty, and contains its own name."""

    def __init__(self, kind: str, saved: Mapping[str, bytes], save: SaveValue, *, is_shared: bool = False) -> None:
        self._kind = kind
        self._save = save
        self._is_shared = is_shared
        self._slots = {slot: value for slot, value in saved.items() if slot.startswith(f"{kind}.")}
        self._by_name: dict[str, str] = {}  # the slot of each name
        self._free = [slot for slot, value in self._slots.items() if not value]

    def values(self) -> Iterator[tuple[str, bytes]]:
        """The values of the last run, with their slots."""
        return ((slot, value) for slot, value in sorted(self._slots.items()) if value)

    def assign(self, name: str, slot: str) -> None:
        """The value in this slot has this name. If two slots have the same name, the second is cleared."""
        if self._by_name.setdefault(name, slot) != slot:
            self._clear(slot)

    def put(self, name: str, value: bytes, slot: str = "") -> None:
        """Save a value, in place of an older one of this name; a new one in this slot, if it was never used."""
        if name not in self._by_name:
            is_usable = slot and slot not in self._slots and not self._is_shared
            self._by_name[name] = slot if is_usable else self._slot_for(name)
        slot = self._by_name[name]
        self._slots[slot] = value
        self._save(slot, value)

    def remove(self, name: str) -> None:
        """Remove the value of this name."""
        slot = self._by_name.pop(name, None)
        if slot is not None:
            self._clear(slot)

    def changes(self, values: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
        """Those of these values that another server has saved, with their slots; empty ones were removed.

        The caller assigns the slot of each one that is not empty. `name_of` tells which value was removed.
        """
        for slot, value in values.items():
            if slot.startswith(f"{self._kind}.") and self._slots.get(slot, b"") != value:
                self._slots[slot] = value
                yield slot, value

    def name_of(self, slot: str) -> str | None:
        """The name of the value that was in a slot, which another server has removed; it is forgotten."""
        name = next((name for name, other in self._by_name.items() if other == slot), None)
        if name is not None:
            del self._by_name[name]
        return name

    def _clear(self, slot: str) -> None:
        self._slots[slot] = b""
        self._free.append(slot)
        self._save(slot, b"")

    def _slot_for(self, name: str) -> str:
        if self._is_shared:
            return f"{self._kind}.{name}"
        return self._free.pop() if self._free else self._new_slot()

    def _new_slot(self) -> str:
        number = len(self._slots)
        while f"{self._kind}.{number}" in self._slots:
            number += 1
        return f"{self._kind}.{number}"
