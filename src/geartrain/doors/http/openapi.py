"""The OpenAPI document, made from the table of routes and the types of their queries, bodies and answers."""

import functools
import http
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from starlette.responses import Response

import geartrain
from geartrain.doors.http import problems
from geartrain.doors.http import request as api
from geartrain.doors.http.request import ApiRequest
from geartrain.doors.http.route import API, RawBytes, Route, ServerSentEvents

_REFERENCE: Final = "#/components/schemas/{name}"
_MEDIA: Final[dict[Any, dict[str, Any]]] = {
    RawBytes: {"application/octet-stream": {}},
    ServerSentEvents: {"text/event-stream": {}},
    str: {"text/plain": {"schema": {"type": "string"}}},
}
# Problems that any route may answer with, and those of routes that change something.
_ALWAYS: Final = ("bad-request", "misdirected", "unavailable")
_OF_CHANGES: Final = ("forbidden", "too-large")
_INTRODUCTION: Final = (
    "Times are in seconds of the epoch. Bytes are strings where they are UTF-8, otherwise objects with base64. "
    "Names in paths are percent-encoded bytes. Errors are problem details (RFC 9457); programs should use their kind."
)


async def description(request: ApiRequest) -> Response:
    """GET /openapi.json."""
    return Response(_description(), media_type=api.JSON)


@functools.cache
def _description() -> bytes:
    """Made at the first request, because the table of routes imports this module."""
    from geartrain.doors.http import routes

    return msgspec.json.encode(document(routes.ROUTES))


def document(routes: Iterable[Route]) -> dict[str, Any]:
    """The OpenAPI 3.1 document of these routes."""
    routes = list(routes)
    types = _types(routes)
    schemas, components = msgspec.json.schema_components(types, ref_template=_REFERENCE)
    by_type = {id(type): schema for type, schema in zip(types, schemas, strict=True)}
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, by_type, components)
    queries = {route.query.__name__ for route in routes if route.query is not None}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Geartrain", "version": geartrain.__version__, "description": _INTRODUCTION},
        "servers": [{"url": "/"}],
        "security": [{}, {"token": []}, {"session": []}],
        "paths": paths,
        "components": {
            "schemas": {name: schema for name, schema in components.items() if name not in queries},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "geartrain_session"},
            },
        },
    }


def _types(routes: list[Route]) -> list[Any]:
    """All types that need a schema."""
    types: dict[int, Any] = {id(problems.ProblemDetails): problems.ProblemDetails}
    for route in routes:
        for type in (route.answer, route.query, route.body):
            if type is not None and type not in _MEDIA:
                types[id(type)] = type
    return list(types.values())


def _operation(route: Route, by_type: dict[int, Any], components: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.operation,
        "summary": route.summary,
        "tags": [_tag(route)],
        "responses": _responses(route, by_type),
    }
    if route.scopes:
        operation["description"] = f"Requires the scope {' or '.join(sorted(route.scopes))}."
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in route.names
    ]
    if route.query is not None:
        parameters += _query(components[route.query.__name__])
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": _content(route.body, by_type)}
    return operation


def _tag(route: Route) -> str:
    return route.path.removeprefix(API).lstrip("/").partition("/")[0] if route.path.startswith(API) else "server"


def _query(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The fields of a struct as query parameters."""
    parameters = []
    for name, field in schema["properties"].items():
        plain = {key: value for key, value in field.items() if key != "description"}
        parameter = {"name": name, "in": "query", "required": name in schema.get("required", ()), "schema": plain}
        if "description" in field:
            parameter["description"] = field["description"]
        parameters.append(parameter)
    return parameters


def _responses(route: Route, by_type: dict[int, Any]) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for status in (route.status, *route.others):
        answer: dict[str, Any] = {
            "description": route.phrase if status == route.status else http.HTTPStatus(status).phrase
        }
        if route.answer is not None and status != 204:
            answer["content"] = _content(route.answer, by_type)
        responses[str(status)] = answer
    kinds = [*_ALWAYS, *route.problems]
    if route.method != "GET":
        kinds += _OF_CHANGES
    if route.scopes:
        kinds += ["unauthorized", "forbidden"]
    if route.body is not None and route.body is not RawBytes:
        kinds.append("unsupported-media-type")
    problem = {problems.MEDIA_TYPE: {"schema": by_type[id(problems.ProblemDetails)]}}
    for status in sorted({problems.STATUSES[kind] for kind in kinds}):
        words = " or ".join(sorted({kind for kind in kinds if problems.STATUSES[kind] == status}))
        responses[str(status)] = {"description": words, "content": problem}
    responses["default"] = {"description": "internal", "content": problem}
    return responses


def _content(type: Any, by_type: dict[int, Any]) -> dict[str, Any]:
    return _MEDIA[type] if type in _MEDIA else {api.JSON: {"schema": by_type[id(type)]}}
