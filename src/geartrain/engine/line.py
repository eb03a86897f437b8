"""Lines that cost the same however long they are, wherever one joins or leaves them.

Who stands in a line knows its neighbours, so leaving from the middle is two assignments, and nothing is searched,
swept or copied. Nobody stands in two lines at once; for who has to, there is one `Place` for each line.
"""

from collections.abc import Iterator
from typing import Generic, TypeVar, cast

from mypy_extensions import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Place:
    """Whoever can stand in a line."""

    __slots__ = ("ahead", "behind")

    def __init__(self) -> None:
        self.ahead: Place | None = None
        self.behind: Place | None = None


P = TypeVar("P", bound=Place)


class Line(Generic[P]):
    """First come, first served."""

    __slots__ = ("first", "last")

    def __init__(self) -> None:
        self.first: P | None = None
        self.last: P | None = None

    def join(self, place: P) -> None:
        """Stand at the end; `place` must stand nowhere else."""
        last = self.last
        if last is None:
            self.first = place
        else:
            last.behind = place
            place.ahead = last
        self.last = place

    def leave(self, place: P) -> None:
        """Go away; `place` must stand in this line."""
        ahead, behind = place.ahead, place.behind
        if ahead is None:
            self.first = cast(P | None, behind)
        else:
            ahead.behind = behind
            place.ahead = None
        if behind is None:
            self.last = cast(P | None, ahead)
        else:
            behind.ahead = ahead
            place.behind = None

    def __iter__(self) -> Iterator[P]:
        """Everybody in order; whoever is asked may leave."""
        place = self.first
        while place is not None:
            following = cast(P | None, place.behind)
            yield place
            place = following
