"""Functions: what there is of them, and what an operator does with them."""

from typing import Annotated, Literal

import msgspec
from starlette.responses import Response

from geartrain.web import call
from geartrain.web.call import Call

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


async def functions(asked: Call) -> Response:
    """GET /functions."""
    asked.house.now()
    query: FunctionsQuery = asked.query
    return call.json(asked.house.steward.functions(query.search, query.sort, query.limit, query.after))


async def function(asked: Call) -> Response:
    """GET /functions/{name}."""
    asked.house.now()
    return call.json(asked.house.steward.function(asked.names[0]))


async def pause(asked: Call) -> Response:
    """POST /functions/{name}/pause."""
    asked.house.now()
    asked.house.steward.pause(asked.names[0])
    return await _changed(asked)


async def resume(asked: Call) -> Response:
    """POST /functions/{name}/resume."""
    asked.house.now()
    asked.house.steward.resume(asked.names[0])
    return await _changed(asked)


async def limits(asked: Call) -> Response:
    """PUT /functions/{name}/limits."""
    wanted: Limits = asked.body
    asked.house.now()
    asked.house.steward.limit(asked.names[0], wanted.high, wanted.normal, wanted.low)
    return await _changed(asked)


async def drop(asked: Call) -> Response:
    """DELETE /functions/{name}."""
    asked.house.now()
    asked.house.steward.drop(asked.names[0])
    await asked.house.durable()
    return call.nothing()


async def _changed(asked: Call) -> Response:
    """How the function is now, once that is durable."""
    view = asked.house.steward.function(asked.names[0])
    await asked.house.durable()
    return call.json(view)
