"""The time in SUBMIT_JOB_SCHED: minute, hour, day of month, month, day of week (0 is Monday).

Each field is a number, or empty for any. The job runs once, at the next minute (local time) that matches all of them.
This is not a cron expression: those have ranges and lists, number the days of the week from Sunday, and
match either day where both are given.
"""

import calendar
import datetime
from collections.abc import Iterator
from typing import Final

from geartrain.errors import WireError

_FIELDS: Final = (
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day of month", 1, 31),
    ("month", 1, 12),
    ("day of week", 0, 6),
)
# Each weekday falls on 29 February at least once in this many years, in any century.
_YEARS_AHEAD: Final = 41


def next_match(fields: list[bytes], now: float) -> float:
    """Epoch seconds of the first matching minute after `now`; a WireError if there is none."""
    minute, hour, day, month, weekday = (_parse(text, *limits) for text, limits in zip(fields, _FIELDS, strict=True))
    first = datetime.datetime.fromtimestamp(now).replace(second=0, microsecond=0) + datetime.timedelta(minutes=1)
    for date in _dates(first.date(), day, month, weekday):
        earliest = first.time() if date == first.date() else datetime.time()
        time = _time_of_day(minute, hour, earliest)
        if time is not None:
            return datetime.datetime.combine(date, time).timestamp()
    raise WireError("INVALID_PACKET", "No day matches that time", fatal=False)


def _dates(first: datetime.date, day: int | None, month: int | None, weekday: int | None) -> Iterator[datetime.date]:
    """Matching days from `first` on. Whole months are skipped, so a date that never comes costs little."""
    for year in range(first.year, min(first.year + _YEARS_AHEAD, datetime.MAXYEAR)):
        for candidate in range(1, 13) if month is None else [month]:
            length = calendar.monthrange(year, candidate)[1]
            if (year, candidate) < (first.year, first.month) or (day or 1) > length:
                continue
            for number in range(1, length + 1) if day is None else [day]:
                date = datetime.date(year, candidate, number)
                if date >= first and (weekday is None or date.weekday() == weekday):
                    yield date


def _time_of_day(minute: int | None, hour: int | None, earliest: datetime.time) -> datetime.time | None:
    """The first matching time of a day, not before `earliest`."""
    hours = range(earliest.hour, 24) if hour is None else [hour]
    for candidate in hours:
        from_minute = earliest.minute if candidate == earliest.hour else 0
        first = from_minute if minute is None else minute
        if candidate >= earliest.hour and first >= from_minute:
            return datetime.time(candidate, first)
    return None


def _parse(text: bytes, name: str, low: int, high: int) -> int | None:
    if not text:
        return None
    if not text.isdigit() or len(text) > 4 or not low <= int(text) <= high:
        raise WireError("INVALID_PACKET", f"The {name} is a number from {low} to {high}, or empty", fatal=False)
    return int(text)
