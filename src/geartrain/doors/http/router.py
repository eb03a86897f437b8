"""Finding the route of a path.

Names of functions and handles of jobs are bytes and may contain slashes, percent-encoded. So a path is split at its
slashes first, and each part is decoded afterwards.
"""

import urllib.parse
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from geartrain.doors.http.route import Route


class RouteNode:
    """A node of the tree: a path, or the beginning of paths."""

    __slots__ = ("below", "routes", "wild")

    def __init__(self) -> None:
        self.below: dict[bytes, RouteNode] = {}  # by the next part, where it is fixed
        self.wild: RouteNode | None = None  # where the next part is a name in braces
        self.routes: dict[str, Route] = {}  # of this path, by method


class Router:
    """A tree of the parts of paths. Fixed parts take precedence over names."""

    def __init__(self, routes: Iterable["Route"]) -> None:
        self._root = RouteNode()
        self._fixed: dict[bytes, dict[str, Route]] = {}  # the routes of paths without names: most requests have one
        for route in routes:
            self._add(route)

    def _add(self, route: "Route") -> None:
        node = self._root
        for part in route.parts:
            if part.startswith("{"):
                node.wild = node.wild or RouteNode()
                node = node.wild
            else:
                node = node.below.setdefault(part.encode(), RouteNode())
        node.routes[route.method] = route
        if not route.names:
            self._fixed[route.path.encode()] = node.routes

    def find(self, raw_path: bytes) -> tuple[dict[str, "Route"], list[bytes]]:
        """The routes of a path by method (none if there is no such path), and the names in it."""
        fixed = self._fixed.get(raw_path)
        if fixed is not None:
            return fixed, []
        node = self._root
        names: list[bytes] = []
        for part in raw_path.lstrip(b"/").split(b"/"):
            word = node.below.get(part)
            if word is not None:
                node = word
            elif node.wild is not None and part:
                node = node.wild
                names.append(urllib.parse.unquote_to_bytes(part))
            else:
                return {}, []
        return node.routes, names
