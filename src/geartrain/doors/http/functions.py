"""Functions: what there is of them, and what an operator does with them."""

from typing import Annotated, Literal

import msgspec
from starlette.responses import Response

from geartrain.doors.http import request as api
from geartrain.doors.http.request import ApiRequest

Limit = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class FunctionsQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Which functions, and in what order."""

    search: Annotated[str, msgspec.Meta(description="Part of the name")] = ""
    sort: Literal["name", "queued", "oldest", "running", "failed"] = "name"
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000, description="How many at a time")] = 100
    after: Annotated[str, msgspec.Meta(max_length=18, description="What the page before gave as `after`")] = ""


class Limits(msgspec.Struct, forbid_unknown_fields=True):
    """How many jobs a function may have when one of a priority wants in; 0: any number."""

    high: Limit = 0
    normal: Limit = 0
    low: Limit = 0


async def functions(request: ApiRequest) -> Response:
    """GET /functions."""
    request.context.now()
    query: FunctionsQuery = request.query
    return api.json(request.context.admin.functions(query.search, query.sort, query.limit, query.after))


async def function(request: ApiRequest) -> Response:
    """GET /functions/{name}."""
    request.context.now()
    return api.json(request.context.admin.function(request.names[0]))


async def pause(request: ApiRequest) -> Response:
    """POST /functions/{name}/pause."""
    request.context.now()
    request.context.admin.pause(request.names[0])
    return await _changed(request)


async def resume(request: ApiRequest) -> Response:
    """POST /functions/{name}/resume."""
    request.context.now()
    request.context.admin.resume(request.names[0])
    return await _changed(request)


async def limits(request: ApiRequest) -> Response:
    """PUT /functions/{name}/limits."""
    wanted: Limits = request.body
    request.context.now()
    request.context.admin.limit(request.names[0], wanted.high, wanted.normal, wanted.low)
    return await _changed(request)


async def drop(request: ApiRequest) -> Response:
    """DELETE /functions/{name}."""
    request.context.now()
    request.context.admin.drop(request.names[0])
    await request.context.durable()
    return api.nothing()


async def _changed(request: ApiRequest) -> Response:
    """How the function is now, once that is durable."""
    view = request.context.admin.function(request.names[0])
    await request.context.durable()
    return api.json(view)
