"""What there is to see of the server as a whole."""

from typing import Annotated

import msgspec
from starlette.responses import Response

import geartrain
from geartrain.steering import views
from geartrain.web import call
from geartrain.web.call import Call
from geartrain.web.problems import Refusal


class HistoryQuery(msgspec.Struct, forbid_unknown_fields=True):
    """How far back."""

    seconds: Annotated[int, msgspec.Meta(ge=1, le=86400, description="How far back")] = 300


class WorkersQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Which workers."""

    search: Annotated[str, msgspec.Meta(description="Part of a name, an address or a function")] = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000, description="How many at a time")] = 100
    after: Annotated[str, msgspec.Meta(max_length=18, description="What the page before gave as `after`")] = ""


class Health(msgspec.Struct, frozen=True):
    """Whether all is well."""

    status: str  # ok
    version: str


async def overview(asked: Call) -> Response:
    """GET /overview."""
    asked.house.now()
    return call.json(asked.house.steward.overview())


async def history(asked: Call) -> Response:
    """GET /history."""
    asked.house.now()
    return call.json(asked.house.steward.history(asked.query.seconds))


async def workers(asked: Call) -> Response:
    """GET /workers."""
    asked.house.now()
    query: WorkersQuery = asked.query
    return call.json(asked.house.steward.workers(query.search, query.limit, query.after))


async def system(asked: Call) -> Response:
    """GET /system."""
    return call.json(await asked.house.steward.system())


async def connections(asked: Call) -> Response:
    """GET /connections."""
    found: list[views.DoorView] = (await asked.house.steward.system()).doors
    return call.json(found)


async def healthz(asked: Call) -> Response:
    """GET /healthz: the loop turns, since this is answered."""
    return call.json(Health("ok", geartrain.__version__))


async def readyz(asked: Call) -> Response:
    """GET /readyz: jobs are taken, and can be made durable."""
    why = asked.house.options.not_ready()
    if why:
        raise Refusal("unavailable", why)
    return call.json(Health("ok", geartrain.__version__))
