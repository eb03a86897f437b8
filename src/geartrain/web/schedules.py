"""Schedules that the server keeps."""

from typing import Annotated, Literal

import msgspec
from starlette.responses import Response

from geartrain.errors import SteeringError
from geartrain.steering import views
from geartrain.web import call
from geartrain.web.call import Call
from geartrain.web.route import Handler


class Schedule(msgspec.Struct, forbid_unknown_fields=True):
    """A schedule as it is ordered."""

    expression: Annotated[str, msgspec.Meta(max_length=1000)]  # five cron fields
    function: views.Text
    payload: views.Text = ""
    priority: Literal["high", "normal", "low"] = "normal"
    unique: bool = False  # leave a run out while the one before it is not over
    timezone: Annotated[str, msgspec.Meta(max_length=100)] = "UTC"


class Run(msgspec.Struct, frozen=True):
    """The job that a schedule's run is."""

    handle: views.Text


async def schedules(asked: Call) -> Response:
    """GET /schedules."""
    return call.json(asked.house.steward.crons())


async def schedule(asked: Call) -> Response:
    """GET /schedules/{name}."""
    return call.json(asked.house.steward.cron(_name(asked)))


async def put(asked: Call) -> Response:
    """PUT /schedules/{name}."""
    order: Schedule = asked.body
    steward = asked.house.steward
    asked.house.now()
    steward.cron_set(
        _name(asked),
        order.expression,
        views.raw(order.function),
        views.raw(order.payload),
        order.priority,
        order.unique,
        order.timezone,
    )
    view = steward.cron(_name(asked))
    await asked.house.durable()
    return call.json(view)


async def remove(asked: Call) -> Response:
    """DELETE /schedules/{name}."""
    asked.house.now()
    asked.house.steward.cron_remove(_name(asked))
    await asked.house.durable()
    return call.nothing()


async def run(asked: Call) -> Response:
    """POST /schedules/{name}/run."""
    asked.house.now()
    handle = asked.house.steward.cron_run(_name(asked))
    await asked.house.durable()
    return call.json(Run(views.text(handle)), 201)


def switch(paused: bool) -> Handler:
    """POST /schedules/{name}/pause, or resume."""

    async def handle(asked: Call) -> Response:
        steward = asked.house.steward
        asked.house.now()
        (steward.cron_pause if paused else steward.cron_resume)(_name(asked))
        view = steward.cron(_name(asked))
        await asked.house.durable()
        return call.json(view)

    return handle


def _name(asked: Call) -> str:
    """The name of a schedule is text."""
    try:
        return asked.names[0].decode()
    except UnicodeDecodeError:
        raise SteeringError("bad-request", "the name of a schedule is UTF-8") from None
