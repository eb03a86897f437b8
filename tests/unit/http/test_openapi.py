"""The OpenAPI document is made from the table of routes, complete and consistent."""

from collections.abc import Iterator
from typing import Any

import pytest

from geartrain.doors.http import openapi, routes
from geartrain.doors.http.route import Route

DOCUMENT = openapi.document(routes.ROUTES)


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        for name, value in part.items():
            if name == "$ref":
                yield value
            else:
                yield from references(value)
    elif isinstance(part, list):
        for value in part:
            yield from references(value)


def test_every_reference_resolves_and_every_schema_is_used() -> None:
    named = {name.rpartition("/")[2] for name in references(DOCUMENT)}
    assert named == set(DOCUMENT["components"]["schemas"])


def test_operation_ids_are_unique() -> None:
    names = [route.operation for route in routes.ROUTES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("route", routes.ROUTES, ids=lambda route: route.operation)
def test_every_route_is_described(route: Route) -> None:
    operation = DOCUMENT["paths"][route.path][route.method.lower()]
    assert operation["summary"] == route.summary
    assert str(route.status) in operation["responses"]
    assert "default" in operation["responses"]
    described = [each["name"] for each in operation.get("parameters", []) if each["in"] == "path"]
    assert described == route.names
    assert ("requestBody" in operation) == (route.body is not None)
    if route.scopes:
        assert {"401", "403"} <= operation["responses"].keys()


def test_parameters_have_types_limits_and_descriptions() -> None:
    listed = DOCUMENT["paths"]["/api/v1/jobs"]["get"]["parameters"]
    by_name = {parameter["name"]: parameter for parameter in listed}
    assert by_name["limit"]["schema"] == {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}
    assert by_name["limit"]["description"]
    assert "dead" in by_name["state"]["schema"]["enum"]
