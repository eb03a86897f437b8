"""When a cron expression is due, in a time zone.

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
    """An expression of five fields; the changes to summer time and back are treated as Debian's cron does."""

    def __init__(self, expression: str, timezone: str = UTC) -> None:
        self._zone = _zone(timezone)
        self._expression = expression
        if len(expression.split()) != _FIELDS:
            raise AdminError(
                "bad-request",
                f"{expression!r} is no cron expression: it has five fields, minute, hour, day, month and weekday",
            )
        try:
            next(self._from(0.0))
        except cronsim.CronSimError as error:
            raise AdminError("bad-request", f"{expression!r} is no cron expression: {error}") from None
        except StopIteration:
            raise AdminError("bad-request", f"{expression!r} never comes") from None

    def after(self, moment: float) -> float | None:
        """The first time after a moment; None: it never comes again."""
        try:
            return next(self._from(moment)).timestamp()
        except StopIteration:
            return None

    def _from(self, moment: float) -> cronsim.CronSim:
        return cronsim.CronSim(self._expression, datetime.datetime.fromtimestamp(moment, self._zone))


def _zone(name: str) -> datetime.tzinfo:
    if name == UTC:
        return datetime.UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise AdminError(
            "bad-request", f"there is no time zone {name!r} on the server; one is called like Europe/Berlin"
        ) from None
