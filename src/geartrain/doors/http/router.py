"""Which route a path leads to.

Names of functions and handles of jobs are bytes and may have slashes in them, percent-encoded. So the path is cut at
its slashes first and decoded afterwards, part by part.
"""

import urllib.parse
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from geartrain.doors.http.route import Route


class RouteNode:
    """One path, or the beginning of some."""

    __slots__ = ("below", "routes", "wild")

    def __init__(self) -> None:
        self.below: dict[bytes, RouteNode] = {}  # by the next part, where it is a word
        self.wild: RouteNode | None = None  # where the next part is a name
        self.routes: dict[str, Route] = {}  # that end here, by method


class Router:
    """A tree of path parts. Words win over names."""

    def __init__(self, routes: Iterable["Route"]) -> None:
        self._root = RouteNode()
        for route in routes:
            self._add(route)

    def _add(self, route: "Route") -> None:
        place = self._root
        for part in route.parts:
            if part.startswith("{"):
                place.wild = place.wild or RouteNode()
                place = place.wild
            else:
                place = place.below.setdefault(part.encode(), RouteNode())
        place.routes[route.method] = route

    def find(self, raw_path: bytes) -> tuple[dict[str, "Route"], list[bytes]]:
        """The routes of a path by method, none if there is no such path, and its names in order."""
        place = self._root
        names: list[bytes] = []
        for part in raw_path.lstrip(b"/").split(b"/"):
            word = place.below.get(part)
            if word is not None:
                place = word
            elif place.wild is not None and part:
                place = place.wild
                names.append(urllib.parse.unquote_to_bytes(part))
            else:
                return {}, []
        return place.routes, names
