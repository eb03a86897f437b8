"""The OpenAPI document is made from the table of routes, complete and consistent."""

from collections.abc import Iterator
from typing import Any

import pytest

from geartrain.admin import views
from geartrain.doors.http import openapi, openapi_schemas, routes
from geartrain.doors.http.route import Route
from geartrain.model import JobState, Priority

DOCUMENT = openapi.document(routes.ROUTES)


def parts(part: Any) -> Iterator[dict[str, Any]]:
    """Every object in a part of the document, however deep."""
    if isinstance(part, dict):
        yield part
    for below in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from parts(below)


def test_every_reference_resolves_and_every_schema_is_used() -> None:
    named = {name.rpartition("/")[2] for name in openapi_schemas.references(DOCUMENT)}
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


def test_what_generators_of_clients_do_not_understand_is_left_out() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    assert not [part for part in parts(DOCUMENT) if "prefixItems" in part or part.get("items") is False]
    assert not [part for part in parts(schemas) if "default" in part]
    assert not [part for part in parts(DOCUMENT) if isinstance(part.get("enum"), list) and part.get("type") != "string"]
    assert schemas["FunctionView"]["properties"]["limits"] == {
        "type": "array", "items": {"type": "integer"}, "minItems": 3, "maxItems": 3,
    }  # fmt: skip


def test_clients_may_leave_out_what_has_a_default_and_the_server_sends_everything() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    assert schemas["Submission"]["required"] == ["function"]
    assert schemas["Submission"]["properties"]["priority"]["description"] == 'Default: "normal"'
    assert "required" not in schemas["FailureReport"]
    assert set(schemas["JobView"]["required"]) == set(schemas["JobView"]["properties"])
    assert schemas["AuditEntry"]["required"] == ["time", "verb"]


def test_states_and_priorities_are_enums_with_a_name() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    assert tuple(state.name.lower() for state in JobState) == views.STATES
    assert tuple(priority.name.lower() for priority in Priority) == views.PRIORITIES
    assert set(schemas["JobState"]["enum"]) == set(views.STATES)
    assert schemas["JobView"]["properties"]["state"] == {"$ref": "#/components/schemas/JobState"}
    for name in ("JobView", "ClaimedJob", "ScheduleView", "Submission", "CronSetRequest"):
        assert schemas[name]["properties"]["priority"]["$ref"] == "#/components/schemas/Priority"


def test_an_unset_filter_is_no_word_of_an_enum() -> None:
    listed = DOCUMENT["paths"]["/api/v1/jobs"]["get"]["parameters"]
    state = next(parameter["schema"] for parameter in listed if parameter["name"] == "state")
    assert "" not in state["enum"]
    assert "default" not in state


def test_bodies_of_bytes_have_a_schema() -> None:
    complete = DOCUMENT["paths"]["/api/v1/workers/{id}/jobs/{handle}/complete"]["post"]["requestBody"]
    assert complete["content"] == {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    contents = [part["content"] for part in parts(DOCUMENT["paths"]) if "content" in part]
    assert all("schema" in media for content in contents for media in content.values())


@pytest.mark.parametrize("schema", [{"prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False}])
def test_a_tuple_of_different_types_cannot_be_described(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="different types"):
        openapi_schemas.rewritten(schema, {})


def test_two_enums_cannot_have_one_title() -> None:
    named: dict[str, Any] = {}
    openapi_schemas.rewritten({"title": "Colour", "enum": ["red"]}, named)
    with pytest.raises(ValueError, match="Colour"):
        openapi_schemas.rewritten({"title": "Colour", "enum": ["blue"]}, named)
