"""Routes by path: fixed parts, names of any bytes, and unknown paths."""

from typing import Any

import pytest

from geartrain.doors.http.route import ANYBODY, Route
from geartrain.doors.http.router import Router


async def nothing(request: Any) -> Any:
    raise AssertionError("nobody is asked here")


def route(method: str, path: str) -> Route:
    return Route(method, path, nothing, ANYBODY, "")


LIST = route("GET", "/jobs")
BULK = route("POST", "/jobs/bulk")
ONE = route("GET", "/jobs/{handle}")
EVENTS = route("GET", "/jobs/{handle}/events")
REPORT = route("POST", "/workers/{id}/jobs/{handle}/fail")
ROUTER = Router([LIST, BULK, ONE, EVENTS, REPORT])


@pytest.mark.parametrize(
    ("path", "routes", "names"),
    [
        (b"/jobs", {"GET": LIST}, []),
        (b"/jobs/bulk", {"POST": BULK}, []),
        (b"/jobs/H:lap:1", {"GET": ONE}, [b"H:lap:1"]),
        (b"/jobs/a%2Fb%ff%20/events", {"GET": EVENTS}, [b"a/b\xff "]),
        (b"/workers/w/jobs/h/fail", {"POST": REPORT}, [b"w", b"h"]),
        (b"/jobs/bul%6b", {"GET": ONE}, [b"bulk"]),
        (b"/jobs/..", {"GET": ONE}, [b".."]),
    ],
)
def test_routes_are_found(path: bytes, routes: dict[str, Route], names: list[bytes]) -> None:
    assert ROUTER.find(path) == (routes, names)


@pytest.mark.parametrize("path", [b"/", b"", b"/job", b"/jobs/", b"/jobs//events", b"/jobs/h/other", b"/workers/w"])
def test_unknown_paths_are_not_found(path: bytes) -> None:
    assert ROUTER.find(path)[0] == {}


def test_names_and_operation_of_a_route() -> None:
    assert REPORT.names == ["id", "handle"]
    assert route("PUT", "/api/v1/functions/{name}/limits").operation == "put_functions_name_limits"
