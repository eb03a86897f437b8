"""Schedules of an app: written down beside its tasks, kept and fired by the server.

There is no process of ours that must be running at the right moment, and none that must run only once: workers tell
the server their schedules when they start, and telling it twice changes nothing.
"""

import dataclasses
import datetime
import zoneinfo
from typing import Any

from cronsim import CronSim, CronSimError

from geartrain import jsonbytes
from geartrain.app.call import Call


@dataclasses.dataclass(frozen=True, slots=True)
class Cron:
    """One schedule."""

    name: str  # on the server; begins with the app's name
    expression: str  # five cron fields
    timezone: str
    unique: bool  # a run is left out while the one before it is not over
    call: Call[Any]

    def next_after(self, moment: float) -> float:
        """When it fires next, in epoch seconds."""
        zone = zoneinfo.ZoneInfo(self.timezone)
        after = datetime.datetime.fromtimestamp(moment, zone)
        return next(CronSim(self.expression, after)).timestamp()

    def wish(self) -> dict[str, Any]:
        """What the server is asked for."""
        return {
            "name": self.name,
            "expression": self.expression,
            "function": self.call.task.name,
            "payload": jsonbytes.encode(self.call.payload()),
            "priority": self.call.priority.name.lower(),
            "unique": self.unique,
            "timezone": self.timezone,
        }


def check(expression: str, timezone: str) -> None:
    """ValueError says what is wrong with a schedule, where it is written and not at the first worker's start."""
    try:
        zone = zoneinfo.ZoneInfo(timezone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        raise ValueError(f"there is no time zone {timezone!r}") from None
    if len(expression.split()) != 5:
        raise ValueError(f"{expression!r} is no cron expression: it has five fields, as in '*/5 * * * *'")
    try:
        CronSim(expression, datetime.datetime.now(zone))
    except CronSimError as error:
        raise ValueError(f"{expression!r} is no cron expression: {error}") from None
