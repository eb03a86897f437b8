"""Schedules of an app: declared beside its tasks, stored and run by the server.

A worker registers its app's schedules with each server when it starts. The server then submits a job whenever a
schedule is due, so no process of the app has to run at that time, and registering twice changes nothing. Schedules that
the app no longer has are removed from the server: those whose names begin with the app's name and a slash.
"""

import dataclasses
import logging
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from geartrain import jsonbytes
from geartrain.app.call import Call
from geartrain.app.server_control import ServerControl
from geartrain.cron import CronExpression
from geartrain.errors import AdminError

if TYPE_CHECKING:
    from geartrain.app.app import App

_COMPARED: Final = ("expression", "function", "priority", "unique", "timezone")
MissedPolicy = Literal["skip", "once", "all"]  # what becomes of missed runs

_log = logging.getLogger("geartrain.app")


@dataclasses.dataclass(frozen=True, slots=True)
class TaskSchedule:
    """A schedule of one task."""

    name: str  # on the server; begins with the app's name
    expression: str  # cron fields, `@hourly`, `@every 15s`
    timezone: str
    unique: bool  # skip a run while the previous one is unfinished
    missed: MissedPolicy
    expires: float  # seconds that a run may wait for a worker; 0: no limit
    call: Call[Any]

    def next_after(self, moment: float, start: float) -> float | None:
        """The next time it is due, in epoch seconds; None: never again. Intervals count from `start`."""
        return CronExpression(self.expression, self.timezone, start).after(moment)

    def arguments(self) -> dict[str, Any]:
        """The arguments of the server's verb `cron_set`."""
        return {
            "name": self.name,
            "expression": self.expression,
            "function": self.call.task.name,
            "payload": jsonbytes.encode(self.call.payload()),
            "priority": self.call.priority.name.lower(),
            "unique": self.unique,
            "timezone": self.timezone,
            # Servers of older versions refuse these arguments; the defaults are all that they do.
            **({"missed": self.missed} if self.missed != "once" else {}),
            **({"expires": self.expires} if self.expires else {}),
        }


def check(expression: str, timezone: str, missed: str) -> None:
    """Raise ValueError for an invalid schedule, when it is declared rather than when the first worker starts."""
    try:
        CronExpression(expression, timezone)
    except AdminError as error:
        raise ValueError(error.text) from None
    if missed not in get_args(MissedPolicy):
        raise ValueError(f"missed must be one of {', '.join(get_args(MissedPolicy))}, not {missed!r}")


async def register(app: "App", control: ServerControl, url: str) -> None:
    """Register the app's schedules with one server; if it refuses them, the error is logged."""
    try:
        await synchronize(app, control)
    except AdminError as error:
        if not app.schedules and error.kind == "forbidden":
            return  # a user that may only work; there is nothing to register
        _log.error("server refused schedules: %s, app %s: %s", url, app.name, error)


def warn_unknown(app: "App", url: str) -> None:
    """The server is not a Geartrain."""
    if app.schedules:
        _log.warning("server has no schedules: %s; those of app %s do not run there", url, app.name)


async def synchronize(app: "App", control: ServerControl) -> None:
    """Set schedules that are new or changed, and remove those that the app no longer has."""
    stored: dict[str, dict[str, Any]] = {schedule["name"]: schedule for schedule in await control.ask("crons")}
    for schedule in app.schedules.values():
        if not _is_same(schedule, stored.get(schedule.name)):
            await control.ask("cron_set", **schedule.arguments())
            _log.info("registered schedule: %s, %s", schedule.name, schedule.expression)
    for name in stored:
        if name.startswith(f"{app.name}/") and name not in app.schedules:
            await control.ask("cron_remove", name=name)
            _log.info("removed schedule: %s", name)


def _is_same(schedule: TaskSchedule, stored: dict[str, Any] | None) -> bool:
    if stored is None or jsonbytes.decode(stored["payload"]) != schedule.call.payload():
        return False
    arguments = schedule.arguments()
    if (stored.get("missed", "once"), stored.get("expires", 0.0)) != (schedule.missed, schedule.expires):
        return False
    return all(stored[name] == arguments[name] for name in _COMPARED)
