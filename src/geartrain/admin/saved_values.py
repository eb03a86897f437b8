"""Named values that survive a restart, and can be removed again.

A store keeps values under names and forgets none. So that names which come and go do not fill it, they take turns in
numbered places: a place that was emptied is used for the next name.
"""

from collections.abc import Callable, Iterator, Mapping

SaveValue = Callable[[str, bytes], None]


class SavedValues:
    """The places of one kind of value. A value is never empty; it says its name itself."""

    def __init__(self, kind: str, saved: Mapping[str, bytes], save: SaveValue) -> None:
        self._kind = kind
        self._save = save
        self._values = {name: value for name, value in saved.items() if name.startswith(f"{kind}.")}
        self._taken: dict[str, str] = {}  # the place of each name
        self._free = [place for place, value in self._values.items() if not value]

    def values(self) -> Iterator[tuple[str, bytes]]:
        """What was kept from before, by place."""
        return ((place, value) for place, value in sorted(self._values.items()) if value)

    def own(self, name: str, place: str) -> None:
        """The value in this place has turned out to be that of this name; a second one of it is thrown out."""
        if name in self._taken:
            self._clear(place)
        else:
            self._taken[name] = place

    def put(self, name: str, value: bytes) -> None:
        """Save a value under a name, in the place of an older one."""
        if name not in self._taken:
            self._taken[name] = self._free.pop() if self._free else self._new()
        place = self._taken[name]
        self._values[place] = value
        self._save(place, value)

    def remove(self, name: str) -> None:
        """Save nothing under this name any more."""
        place = self._taken.pop(name, None)
        if place is not None:
            self._clear(place)

    def _clear(self, place: str) -> None:
        self._values[place] = b""
        self._free.append(place)
        self._save(place, b"")

    def _new(self) -> str:
        number = len(self._values)
        while f"{self._kind}.{number}" in self._values:
            number += 1
        return f"{self._kind}.{number}"
