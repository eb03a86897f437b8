"""When a schedule runs: cron expressions of five or six fields, names such as `@hourly`, and fixed intervals.

>>> CronExpression("30 4 * * *").after(0.0)
16200.0
>>> CronExpression("*/20 * * * * *").after(0.0)
20.0
>>> CronExpression("@every 1h30m", start=60.0).after(60.0)
5460.0
"""

import datetime
import itertools
import math
import re
import zoneinfo
from collections.abc import Iterator
from typing import Final

import cronsim

from geartrain.errors import AdminError

UTC: Final = "UTC"
NAMES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY: Final = "@every"
_UNITS: Final = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
_INTERVAL: Final = re.compile("".join(f"(?:([0-9]{{1,9}}){unit})?" for unit in _UNITS))
_LONGEST_INTERVAL: Final = 366 * 86_400
_FIELDS: Final = 5
_FIELDS_WITH_SECONDS: Final = 6
_RANGES: Final = {
    "second": "0 to 59",
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day-of-month": "1 to 31, L or LW, and must exist in one of the months",
    "month": "1 to 12 or JAN to DEC",
    "day-of-week": "0 to 7 or SUN to SAT",
}
_GRAMMAR: Final = (
    "it needs five fields (minute, hour, day, month, weekday), six with the seconds first, "
    "a name such as @hourly, or an interval such as @every 15s"
)


class CronExpression:
    """The times of a schedule. Changes to and from daylight saving time are treated as in Debian's cron:

    - a time of day that does not exist matches right after the gap, one that occurs twice matches once;
    - an expression whose minutes or hours begin with a star has no times in the gap, and matches in both equal hours.

    Intervals count from `start`, in any time zone alike.
    """

    def __init__(self, expression: str, timezone: str = UTC, start: float = 0.0) -> None:
        self._zone = _zone(timezone)
        self._start = math.floor(start)
        self._interval = _interval(expression)
        if self._interval:
            return
        self._fields = _fields(expression)
        try:
            next(self._from(0.0))
        except cronsim.CronSimError as error:
            raise _invalid(expression, _explain(str(error), self._fields)) from None
        except StopIteration:
            raise AdminError("bad-request", f"{expression!r} never matches") from None

    def after(self, time: float) -> float | None:
        """The first match after a time; None if there is none."""
        if self._interval:
            return float(self._start + max(math.floor((time - self._start) / self._interval) + 1, 0) * self._interval)
        for match in self._from(time):
            # In the second of two equal hours, the first match may be in the first one, which is over.
            if match.timestamp() > time:
                return match.timestamp()
        return None

    def last_before(self, time: float, count: int) -> float | None:
        """The earliest of the last matches up to a time, of which there may be fewer than `count`; None if none."""
        if self._interval:
            latest = math.floor((time - self._start) / self._interval)
            return float(self._start + max(latest - count + 1, 0) * self._interval) if latest >= 0 else None
        matches = itertools.islice(self._from(time + 1.0, reverse=True), count)
        return min((match.timestamp() for match in matches), default=None)

    def _from(self, time: float, *, reverse: bool = False) -> Iterator[datetime.datetime]:
        simulation = cronsim.CronSim(self._fields, datetime.datetime.fromtimestamp(time, self._zone), reverse)
        _, minutes, hours, *_ = simulation.parts
        if self._zone is not datetime.UTC and not minutes.startswith("*") and not hours.startswith("*"):
            # cronsim does this for five fields only; times of day with seconds are treated alike here.
            simulation.fixup_tz = self._zone
            simulation.dt = simulation.dt.replace(tzinfo=None)
        return simulation


def _fields(expression: str) -> str:
    """The fields that a name stands for, or the expression itself if it has as many as it needs."""
    fields = NAMES.get(expression.strip().lower(), expression)
    if len(fields.split()) not in (_FIELDS, _FIELDS_WITH_SECONDS):
        raise _invalid(expression, _GRAMMAR)
    return fields


def _interval(expression: str) -> int:
    """The seconds of `@every 1h30m`; 0 if the expression is none of this kind."""
    name, _, text = expression.strip().partition(" ")
    if name.lower() != _EVERY:
        return 0
    match = _INTERVAL.fullmatch(text.strip())
    counts = match.groups("0") if match is not None else ()
    seconds = sum(int(count) * unit for count, unit in zip(counts, _UNITS.values(), strict=False))
    if not 1 <= seconds <= _LONGEST_INTERVAL:
        raise _invalid(expression, "@every needs a time from 1s to 366d, such as 15s, 10m, 1h30m or 2d")
    return seconds


def _explain(error: str, fields: str) -> str:
    """What cronsim says, such as "Bad minute", with the text of the field and the values that it may have.

    >>> _explain("Bad minute", "61 * * * *")
    "the minute is '61'; a minute is 0 to 59"
    """
    name = error.removeprefix("Bad ")
    if name not in _RANGES:
        return error
    text = fields.split()[list(_RANGES).index(name) - len(_RANGES)]
    return f"the {name} is {text!r}; a {name} is {_RANGES[name]}"


def _invalid(expression: str, why: str) -> AdminError:
    return AdminError("bad-request", f"{expression!r} is not a cron expression: {why}")


def _zone(name: str) -> datetime.tzinfo:
    if name == UTC:
        return datetime.UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise AdminError("bad-request", f"the server has no time zone {name!r}; an example is Europe/Berlin") from None
