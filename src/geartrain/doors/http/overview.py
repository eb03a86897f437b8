"""What there is to see of the server as a whole."""

from typing import Annotated

import msgspec
from starlette.responses import Response

import geartrain
from geartrain.admin import views
from geartrain.doors.http import request as api
from geartrain.doors.http.problems import Refusal
from geartrain.doors.http.request import ApiRequest


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


async def overview(request: ApiRequest) -> Response:
    """GET /overview."""
    request.context.now()
    return api.json(request.context.admin.overview())


async def history(request: ApiRequest) -> Response:
    """GET /history."""
    request.context.now()
    return api.json(request.context.admin.history(request.query.seconds))


async def workers(request: ApiRequest) -> Response:
    """GET /workers."""
    request.context.now()
    query: WorkersQuery = request.query
    return api.json(request.context.admin.workers(query.search, query.limit, query.after))


async def system(request: ApiRequest) -> Response:
    """GET /system."""
    return api.json(await request.context.admin.system())


async def connections(request: ApiRequest) -> Response:
    """GET /connections."""
    found: list[views.DoorView] = (await request.context.admin.system()).doors
    return api.json(found)


async def healthz(request: ApiRequest) -> Response:
    """GET /healthz: the loop turns, since this is answered."""
    return api.json(Health("ok", geartrain.__version__))


async def readyz(request: ApiRequest) -> Response:
    """GET /readyz: jobs are taken, and can be made durable."""
    why = request.context.options.not_ready()
    if why:
        raise Refusal("unavailable", why)
    return api.json(Health("ok", geartrain.__version__))
