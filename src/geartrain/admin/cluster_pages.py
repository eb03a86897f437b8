"""Pages of lists that several servers have: merged, with a place in each server's list for the next page.

The `after` of such a page is `c` and, for each list that goes on, its name and the id of the last item that was shown:
`c1048576_4503599627370501.r1048576_4503599627370400`. Lists that have ended, and servers that came later, are left out.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from geartrain.admin import views
from geartrain.errors import AdminError
from geartrain.job_query import PLACES, page_position

_BETWEEN_LISTS: Final = "."
_BETWEEN_NAME_AND_PLACE: Final = "_"

Places = dict[str, int]  # by list: the id of the last item that was shown; 0: none


class PagePart(NamedTuple):
    """The next items of one of the lists."""

    list: str
    place: int  # where they begin
    items: Sequence[Any]
    after: str  # where the items after them begin; empty: there are none

    @classmethod
    def of(cls, list: str, place: int, page: views.Page[Any]) -> "PagePart":
        """A page that a server has answered with."""
        return cls(list, place, page.items, page.after)

    def place_after(self, shown: int) -> int | None:
        """Where to go on when so many of the items were shown; None: there are no others."""
        if shown < len(self.items):
            return self.items[shown - 1].id if shown else self.place
        return page_position(self.after) or None


def read_places(after: str) -> Places | None:
    """The places in the `after` of a page; None for the first page."""
    if not after:
        return None
    places: Places = {}
    for part in after.removeprefix(PLACES).split(_BETWEEN_LISTS) if after.startswith(PLACES) else [""]:
        name, sign, place = part.partition(_BETWEEN_NAME_AND_PLACE)
        if not sign:
            raise AdminError("bad-request", f"after must be the `after` of the previous page, not {after!r}")
        places[name] = page_position(place)
    return places


def write_places(places: Places) -> str:
    """The `after` of a page; empty if no list goes on.

    >>> write_places({"7": 17, "r7": 12})
    'c7_17.r7_12'
    >>> read_places("c7_17.r7_12")
    {'7': 17, 'r7': 12}
    """
    if not places:
        return ""
    pairs = (f"{name}{_BETWEEN_NAME_AND_PLACE}{place}" for name, place in places.items())
    return PLACES + _BETWEEN_LISTS.join(pairs)


def merge_lists(parts: Sequence[PagePart], key: Callable[[Any], Any], limit: int) -> tuple[list[Any], Places]:
    """The first items of all lists, each of which stays in its own order; and where the next page begins."""
    merged: list[Any] = []
    shown = [0] * len(parts)
    while len(merged) < limit:
        ended = [count == len(part.items) for part, count in zip(parts, shown, strict=True)]
        if any(is_over and part.after for is_over, part in zip(ended, parts, strict=True)):
            break  # its next item is not known: some of this part are hidden from the caller
        heads = [
            (key(part.items[count]), number)
            for number, (part, count, is_over) in enumerate(zip(parts, shown, ended, strict=True))
            if not is_over
        ]
        if not heads:
            break
        number = min(heads)[1]
        merged.append(parts[number].items[shown[number]])
        shown[number] += 1
    places: Places = {}
    for part, count in zip(parts, shown, strict=True):
        place = part.place_after(count)
        if place is not None:
            places[part.list] = place
    return merged, places
