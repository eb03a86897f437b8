"""Times, durations and bytes as the command line reads and shows them."""

import datetime
import time
from typing import Any, Final

import typer

from geartrain import jsonbytes
from geartrain.cli import progress
from geartrain.server.config import units

_TIME: Final = "%Y-%m-%d %H:%M:%S"
_UNITS: Final = (("d", 86400), ("h", 3600), ("m", 60))


def moment(text: str, flag: str) -> float:
    """Seconds of the epoch for a time in the past as people write it; 0 for none."""
    return _moment(text, flag, -1.0)


def coming(text: str, flag: str) -> float:
    """The same for a time to come: `2h` is in two hours."""
    return _moment(text, flag, 1.0)


def duration(text: str, flag: str) -> float:
    """Seconds for `90`, `1.5s`, `10m` or `2h`; 0 for nothing."""
    if not text:
        return 0.0
    try:
        return units.parse_duration(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no duration such as 500ms, 90s, 10m or 2h", param_hint=flag) from None


def _moment(text: str, flag: str, direction: float) -> float:
    if not text:
        return 0.0
    try:
        if text.startswith("@"):
            return float(text[1:])
        if text[-1].isalpha() and not text.endswith("Z"):
            return time.time() + direction * units.parse_duration(text)
        return datetime.datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        complaint = f"{text!r} is no time such as 2h, 2026-11-15T18:30 or @1789000000"
        raise typer.BadParameter(complaint, param_hint=flag) from None


def clock(moment: float | None) -> str:
    """Local time to the second; a dash for none."""
    if not moment:
        return "-"
    try:
        return datetime.datetime.fromtimestamp(moment).strftime(_TIME)
    except (ValueError, OverflowError, OSError):
        return f"@{moment:.0f}"  # further away than calendars go


def span(seconds: float | None) -> str:
    """A length of time, with as much precision as its size deserves.

    >>> span(0.0123), span(75), span(90000), span(None)
    ('12ms', '1m15s', '1d1h', '-')
    """
    if seconds is None:
        return "-"
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 60:
        return f"{seconds:.1f}s"
    left = int(seconds)
    for index, (unit, size) in enumerate(_UNITS):
        if left >= size:
            below, scale = _UNITS[index + 1] if index + 1 < len(_UNITS) else ("s", 1)
            rest = left % size // scale
            return f"{left // size}{unit}" + (f"{rest}{below}" if rest else "")
    return f"{left}s"


def fine_span(seconds: float | None) -> str:
    """A latency: microseconds matter.

    >>> fine_span(0.000123), fine_span(0.0123)
    ('123us', '12.3ms')
    """
    if seconds is None:
        return "-"
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f}us"
    return f"{seconds * 1000:.1f}ms" if seconds < 1 else span(seconds)


def one_line(text: str, longest: int) -> str:
    """Text on one line, cut."""
    text = "".join(character if character.isprintable() else "\u00b7" for character in text[: longest + 1])
    return text if len(text) <= longest else text[: longest - 3] + "..."


def value(answer: Any, longest: int = 40) -> str:
    """A value of a server's answer that is text, or bytes in base64."""
    if isinstance(answer, dict | jsonbytes.Base64):
        return f"({progress.counted(len(jsonbytes.decode(answer)), 'byte')})"
    return one_line(str(answer), longest) if answer else ""
