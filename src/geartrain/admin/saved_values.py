"""Named values that survive a restart, and can be removed again.

A store saves values by name and never deletes one. So that names which come and go do not fill it, values are saved
in numbered slots, `order.0`, `order.1`, ...: a slot that was cleared is used for the next name.
"""

from collections.abc import Callable, Iterator, Mapping

SaveValue = Callable[[str, bytes], None]


class SavedValues:
    """The slots of one kind of value. A value is never empty, and contains its own name."""

    def __init__(self, kind: str, saved: Mapping[str, bytes], save: SaveValue) -> None:
        self._kind = kind
        self._save = save
        self._slots = {slot: value for slot, value in saved.items() if slot.startswith(f"{kind}.")}
        self._by_name: dict[str, str] = {}  # the slot of each name
        self._free = [slot for slot, value in self._slots.items() if not value]

    def values(self) -> Iterator[tuple[str, bytes]]:
        """The values of the last run, with their slots."""
        return ((slot, value) for slot, value in sorted(self._slots.items()) if value)

    def assign(self, name: str, slot: str) -> None:
        """The value in this slot has this name. If two slots have the same name, the second is cleared."""
        if name in self._by_name:
            self._clear(slot)
        else:
            self._by_name[name] = slot

    def put(self, name: str, value: bytes) -> None:
        """Save a value, in place of an older one of this name."""
        if name not in self._by_name:
            self._by_name[name] = self._free.pop() if self._free else self._new_slot()
        slot = self._by_name[name]
        self._slots[slot] = value
        self._save(slot, value)

    def remove(self, name: str) -> None:
        """Remove the value of this name."""
        slot = self._by_name.pop(name, None)
        if slot is not None:
            self._clear(slot)

    def _clear(self, slot: str) -> None:
        self._slots[slot] = b""
        self._free.append(slot)
        self._save(slot, b"")

    def _new_slot(self) -> str:
        number = len(self._slots)
        while f"{self._kind}.{number}" in self._slots:
            number += 1
        return f"{self._kind}.{number}"
