"""Jobs: lists of them, one of them, its bytes, and what an operator does with them."""

import re
from collections.abc import Callable
from typing import Annotated, Final, Literal

import msgspec
from starlette.responses import Response

from geartrain import jsonbytes
from geartrain.admin.jobs import JobQuery
from geartrain.doors.http import request as api
from geartrain.doors.http.request import ApiRequest
from geartrain.doors.http.route import Handler
from geartrain.jsonbytes import JsonBytes

State = Literal["", "scheduled", "queued", "running", "done", "failed", "cancelled", "dead"]
Moment = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
_UNSAFE_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")


class JobsQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Which jobs; all that is given must fit."""

    state: State = ""
    function: Annotated[str, msgspec.Meta(description="Exactly this function")] = ""
    search: Annotated[str, msgspec.Meta(description="Part of a handle, a function, a unique key or a payload")] = ""
    door: Annotated[str, msgspec.Meta(description="The protocol that submitted it")] = ""
    since: Annotated[Moment, msgspec.Meta(description="Seconds of the epoch")] = 0.0
    until: Annotated[Moment, msgspec.Meta(description="Seconds of the epoch; 0: up to now")] = 0.0
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000, description="How many at a time")] = 100
    after: Annotated[str, msgspec.Meta(max_length=18, description="What the page before gave as `after`")] = ""


class BulkFilter(msgspec.Struct, forbid_unknown_fields=True):
    """The same for an action on all of them."""

    state: State = ""
    function: JsonBytes = ""
    search: str = ""
    door: str = ""
    since: Moment = 0.0
    until: Moment = 0.0


class Bulk(msgspec.Struct, forbid_unknown_fields=True):
    """An action on every job that fits."""

    action: Literal["cancel", "retry", "delete", "run"]
    filter: BulkFilter


async def jobs(request: ApiRequest) -> Response:
    """GET /jobs."""
    request.context.now()
    return api.json(await request.context.admin.jobs(_filter(request.query)))


async def bulk(request: ApiRequest) -> Response:
    """POST /jobs/bulk."""
    request.context.now()
    order: Bulk = request.body
    report = await request.context.admin.bulk(order.action, _bulk_filter(order.filter))
    await request.context.durable()
    return api.json(report)


async def job(request: ApiRequest) -> Response:
    """GET /jobs/{handle}."""
    request.context.now()
    return api.json(await request.context.admin.job(request.names[0]))


async def payload(request: ApiRequest) -> Response:
    """GET /jobs/{handle}/payload."""
    return _download("payload", request.names[0], await request.context.admin.payload(request.names[0]))


async def result(request: ApiRequest) -> Response:
    """GET /jobs/{handle}/result."""
    return _download("result", request.names[0], await request.context.admin.result(request.names[0]))


def act(verb: str) -> Handler:
    """The handler of a verb that changes one job and then shows it."""

    async def handle(request: ApiRequest) -> Response:
        request.context.now()
        change: Callable[[bytes], object] = getattr(request.context.admin, verb)
        change(request.names[0])
        await request.context.durable()
        return api.json(await request.context.admin.job(request.names[0]))

    return handle


async def delete(request: ApiRequest) -> Response:
    """DELETE /jobs/{handle}."""
    request.context.now()
    request.context.admin.delete(request.names[0])
    await request.context.durable()
    return api.nothing()


def _download(what: str, handle: bytes, data: bytes) -> Response:
    """Bytes of a stranger: to be saved, never to be shown by a browser as what they may pretend to be."""
    name = _UNSAFE_IN_A_NAME.sub("-", f"{what}-{handle.decode('ascii', 'replace')}")
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(data, headers=headers, media_type="application/octet-stream")


def _filter(query: JobsQuery) -> JobQuery:
    return JobQuery(
        query.state,
        api.raw(query.function),
        query.search,
        query.door,
        query.since,
        query.until,
        query.limit,
        query.after,
    )


def _bulk_filter(wanted: BulkFilter) -> JobQuery:
    function = jsonbytes.decode(wanted.function)
    return JobQuery(wanted.state, function, wanted.search, wanted.door, wanted.since, wanted.until)
