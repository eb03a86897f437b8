"""Cron expressions of five fields, in a time zone.

>>> CronExpression("30 4 * * *").after(0.0)
16200.0
"""

import datetime
import zoneinfo
from typing import Final

import cronsim

from geartrain.errors import AdminError

UTC: Final = "UTC"
_FIELDS: Final = 5


class CronExpression:
    """An expression of five fields; changes to and from daylight saving time are treated as in Debian's cron."""

    def __init__(self, expression: str, timezone: str = UTC) -> None:
        self._zone = _zone(timezone)
        self._expression = expression
        if len(expression.split()) != _FIELDS:
            raise AdminError(
                "bad-request",
                f"{expression!r} is not a cron expression: it needs five fields, minute, hour, day, month and weekday",
            )
        try:
            next(self._from(0.0))
        except cronsim.CronSimError as error:
            raise AdminError("bad-request", f"{expression!r} is not a cron expression: {error}") from None
        except StopIteration:
            raise AdminError("bad-request", f"{expression!r} never matches") from None

    def after(self, time: float) -> float | None:
        """The first match after a time; None if there is none."""
        try:
            return next(self._from(time)).timestamp()
        except StopIteration:
            return None

    def _from(self, time: float) -> cronsim.CronSim:
        return cronsim.CronSim(self._expression, datetime.datetime.fromtimestamp(time, self._zone))


def _zone(name: str) -> datetime.tzinfo:
    if name == UTC:
        return datetime.UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise AdminError("bad-request", f"the server has no time zone {name!r}; an example is Europe/Berlin") from None
