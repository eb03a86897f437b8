"""Named values that survive a restart, and can be removed again.

A store keeps values under names and forgets none. So that names which come and go do not fill it, they take turns in
numbered slots: a slot that was emptied is used for the next name.
"""

from collections.abc import Callable, Iterator, Mapping

Keep = Callable[[str, bytes], None]


class Slots:
    """The slots of one kind of value. A value is never empty; it says its name itself."""

    def __init__(self, kind: str, kept: Mapping[str, bytes], keep: Keep) -> None:
        self._kind = kind
        self._keep = keep
        self._kept = {name: value for name, value in kept.items() if name.startswith(f"{kind}.")}
        self._taken: dict[str, str] = {}  # the slot of each name
        self._free = [slot for slot, value in self._kept.items() if not value]

    def values(self) -> Iterator[tuple[str, bytes]]:
        """What was kept from before, by slot."""
        return ((slot, value) for slot, value in sorted(self._kept.items()) if value)

    def own(self, name: str, slot: str) -> None:
        """The value in this slot has turned out to be that of this name; a second one of it is thrown out."""
        if name in self._taken:
            self._clear(slot)
        else:
            self._taken[name] = slot

    def put(self, name: str, value: bytes) -> None:
        """Keep a value under a name, in the place of an older one."""
        if name not in self._taken:
            self._taken[name] = self._free.pop() if self._free else self._new()
        slot = self._taken[name]
        self._kept[slot] = value
        self._keep(slot, value)

    def remove(self, name: str) -> None:
        """Keep nothing under this name any more."""
        slot = self._taken.pop(name, None)
        if slot is not None:
            self._clear(slot)

    def _clear(self, slot: str) -> None:
        self._kept[slot] = b""
        self._free.append(slot)
        self._keep(slot, b"")

    def _new(self) -> str:
        number = len(self._kept)
        while f"{self._kind}.{number}" in self._kept:
            number += 1
        return f"{self._kind}.{number}"
