"""Schedules that the server keeps."""

from typing import Annotated, Literal

import msgspec
from starlette.responses import Response

from geartrain import jsonbytes
from geartrain.doors.http import request as api
from geartrain.doors.http.request import ApiRequest
from geartrain.doors.http.route import Handler
from geartrain.errors import AdminError
from geartrain.jsonbytes import JsonBytes


class Schedule(msgspec.Struct, forbid_unknown_fields=True):
    """A schedule as it is ordered."""

    expression: Annotated[str, msgspec.Meta(max_length=1000)]  # five cron fields
    function: JsonBytes
    payload: JsonBytes = ""
    priority: Literal["high", "normal", "low"] = "normal"
    unique: bool = False  # leave a run out while the one before it is not over
    timezone: Annotated[str, msgspec.Meta(max_length=100)] = "UTC"


class Run(msgspec.Struct, frozen=True):
    """The job that a schedule's run is."""

    handle: JsonBytes


async def schedules(request: ApiRequest) -> Response:
    """GET /schedules."""
    return api.json(request.context.admin.crons())


async def schedule(request: ApiRequest) -> Response:
    """GET /schedules/{name}."""
    return api.json(request.context.admin.cron(_name(request)))


async def put(request: ApiRequest) -> Response:
    """PUT /schedules/{name}."""
    order: Schedule = request.body
    admin = request.context.admin
    request.context.now()
    admin.cron_set(
        _name(request),
        order.expression,
        jsonbytes.decode(order.function),
        jsonbytes.decode(order.payload),
        order.priority,
        order.unique,
        order.timezone,
    )
    view = admin.cron(_name(request))
    await request.context.durable()
    return api.json(view)


async def remove(request: ApiRequest) -> Response:
    """DELETE /schedules/{name}."""
    request.context.now()
    request.context.admin.cron_remove(_name(request))
    await request.context.durable()
    return api.nothing()


async def run(request: ApiRequest) -> Response:
    """POST /schedules/{name}/run."""
    request.context.now()
    handle = request.context.admin.cron_run(_name(request))
    await request.context.durable()
    return api.json(Run(jsonbytes.encode(handle)), 201)


def switch(paused: bool) -> Handler:
    """POST /schedules/{name}/pause, or resume."""

    async def handle(request: ApiRequest) -> Response:
        admin = request.context.admin
        request.context.now()
        (admin.cron_pause if paused else admin.cron_resume)(_name(request))
        view = admin.cron(_name(request))
        await request.context.durable()
        return api.json(view)

    return handle


def _name(request: ApiRequest) -> str:
    """The name of a schedule is text."""
    try:
        return request.names[0].decode()
    except UnicodeDecodeError:
        raise AdminError("bad-request", "the name of a schedule is UTF-8") from None
