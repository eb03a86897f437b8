"""The OpenAPI document, made from the table of routes and the types of their queries, bodies and answers."""

import functools
import http
from collections.abc import Iterable
from typing import Any, Final

import msgspec

import geartrain
from geartrain.audit import AuditEntry
from geartrain.doors.http import openapi_schemas, problems
from geartrain.doors.http import request as api
from geartrain.doors.http.openapi_schemas import REFERENCE
from geartrain.doors.http.request import ApiRequest
from geartrain.doors.http.response import Response
from geartrain.doors.http.route import API, RawBytes, Route, ServerSentEvents

_MEDIA: Final[dict[Any, dict[str, Any]]] = {
    RawBytes: {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    ServerSentEvents: {"text/event-stream": {"schema": {"type": "string"}}},
    str: {"text/plain": {"schema": {"type": "string"}}},
}
_TAGS: Final = {
    "overview": "Counts and rates of the whole server",
    "history": "Samples for charts",
    "system": "Version, platform, doors and store",
    "reload": "Reading users, tokens and certificates again",
    "users": "Users, with their rights and quotas",
    "audit": "Who did what",
    "functions": "Functions: their queues, pauses, limits and settings",
    "jobs": "Jobs: submit, list, follow, cancel and retry",
    "workflows": "Workflows: many jobs that wait for each other",
    "failures": "Failed and dead jobs in groups",
    "workers": "Workers: register, claim jobs and report on them",
    "schedules": "Jobs that the server submits at given times",
    "cluster": "Servers that share a store",
    "connections": "Open doors",
    "events": "Events of the whole server",
    "session": "The access of the client",
    "login": "Sessions of browsers",
    "logout": "Sessions of browsers",
    "openapi.json": "This document",
    "server": "Metrics and health checks",
}
# Problems that any route may answer with, and those of routes that change something.
_ALWAYS: Final = ("bad-request", "misdirected", "unavailable")
_OF_CHANGES: Final = ("forbidden", "too-large")
_INTRODUCTION: Final = (
    "Times are in seconds of the epoch. Bytes are strings where they are UTF-8, otherwise objects with base64. "
    "Names in paths are percent-encoded bytes. Errors are problem details (RFC 9457); programs should use their kind."
)


def description(request: ApiRequest) -> Response:
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
    schemas, components = msgspec.json.schema_components(types, ref_template=REFERENCE)
    by_type = {id(type): schema for type, schema in zip(types, schemas, strict=True)}
    named = _named_schemas(routes, by_type, components)
    by_type = {type: openapi_schemas.rewritten(schema, named) for type, schema in by_type.items()}
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, by_type, components, named)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Geartrain",
            "version": geartrain.__version__,
            "description": _INTRODUCTION,
            "license": {"name": "BSD-3-Clause", "identifier": "BSD-3-Clause"},
        },
        "servers": [{"url": "/"}],
        "security": [{}, {"token": []}, {"session": []}],
        "tags": [{"name": tag, "description": _TAGS[tag]} for tag in dict.fromkeys(map(_tag, routes))],
        "paths": paths,
        "components": {
            "schemas": named,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "geartrain_session"},
            },
        },
    }


def _named_schemas(routes: list[Route], by_type: dict[int, Any], components: dict[str, Any]) -> dict[str, Any]:
    """The schemas that others refer to. Queries are written as parameters instead."""
    queries = {route.query.__name__ for route in routes if route.query is not None}
    bodies = [by_type[id(route.body)] for route in routes if id(route.body) in by_type]
    return openapi_schemas.portable(
        {name: schema for name, schema in components.items() if name not in queries},
        sent_by_clients=openapi_schemas.names_below(bodies, components),
        omitting={AuditEntry.__name__},
    )


def _types(routes: list[Route]) -> list[Any]:
    """All types that need a schema."""
    types: dict[int, Any] = {id(problems.ProblemDetails): problems.ProblemDetails}
    for route in routes:
        for type in (route.answer, route.query, route.body):
            if type is not None and type not in _MEDIA:
                types[id(type)] = type
    return list(types.values())


def _operation(
    route: Route, by_type: dict[int, Any], components: dict[str, Any], named: dict[str, Any]
) -> dict[str, Any]:
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
        parameters += _query(components[route.query.__name__], named)
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        operation["requestBody"] = {"required": _is_needed(route.body), "content": _content(route.body, by_type)}
    return operation


def _is_needed(body: Any) -> bool:
    """Whether a request without a body is refused: an empty one is an empty object."""
    return body is not RawBytes and any(field.required for field in msgspec.structs.fields(body))


def _tag(route: Route) -> str:
    return route.path.removeprefix(API).lstrip("/").partition("/")[0] if route.path.startswith(API) else "server"


def _query(schema: dict[str, Any], named: dict[str, Any]) -> list[dict[str, Any]]:
    """The fields of a struct as query parameters."""
    required = schema.get("required", ())
    return [
        openapi_schemas.parameter(name, field, name in required, named) for name, field in schema["properties"].items()
    ]


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
