"""Times, durations and values: parsed from options, and formatted for output."""

import datetime
import time
from typing import Any, Final

from geartrain import units
from geartrain.cli import progress
from geartrain.cli.parameters import UsageError

_TIME: Final = "%Y-%m-%d %H:%M:%S"
_UNITS: Final = (("d", 86400), ("h", 3600), ("m", 60))


def parse_past_time(text: str, flag: str) -> float:
    """Epoch seconds of a time in the past: `2h` is two hours ago. 0 for an empty text."""
    return _parse_time(text, flag, -1.0)


def parse_future_time(text: str, flag: str) -> float:
    """Epoch seconds of a time in the future: `2h` is in two hours. 0 for an empty text."""
    return _parse_time(text, flag, 1.0)


def parse_duration(text: str, flag: str) -> float:
    """Seconds of `90`, `1.5s`, `10m` or `2h`; 0 for an empty text."""
    if not text:
        return 0.0
    try:
        return units.parse_duration(text)
    except ValueError:
        raise UsageError(f"{text!r} is not a duration such as 500ms, 90s, 10m or 2h", param_hint=flag) from None


def _parse_time(text: str, flag: str, direction: float) -> float:
    if not text:
        return 0.0
    try:
        if text.startswith("@"):
            return float(text[1:])
        if text[-1].isalpha() and not text.endswith("Z"):
            return time.time() + direction * units.parse_duration(text)
        return datetime.datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        message = f"{text!r} is not a time such as 2h, 2026-11-15T18:30 or @1789000000"
        raise UsageError(message, param_hint=flag) from None


def local_time(seconds: float | None) -> str:
    """Local time to the second, of epoch seconds; a dash for none."""
    if not seconds:
        return "-"
    try:
        return datetime.datetime.fromtimestamp(seconds).strftime(_TIME)
    except (ValueError, OverflowError, OSError):
        return f"@{seconds:.0f}"  # out of datetime's range


def duration(seconds: float | None) -> str:
    """A duration in its two largest units; a dash for none.

    >>> duration(0.0123), duration(75), duration(90000), duration(None)
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


def latency(seconds: float | None) -> str:
    """A duration with more precision below a second.

    >>> latency(0.000123), latency(0.0123)
    ('123us', '12.3ms')
    """
    if seconds is None:
        return "-"
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f}us"
    return f"{seconds * 1000:.1f}ms" if seconds < 1 else duration(seconds)


def size(count: int) -> str:
    """A number of bytes for people.

    >>> size(0), size(1536), size(5 * 1024**3)
    ('0 B', '1.5 KiB', '5.0 GiB')
    """
    if count < 1024:
        return f"{count} B"
    units = ("KiB", "MiB", "GiB", "TiB")
    exponent = min((count.bit_length() - 1) // 10, len(units))
    return f"{count / 1024**exponent:.1f} {units[exponent - 1]}"


def one_line(text: str, longest: int) -> str:
    """Text without control characters, cut to this length."""
    text = "".join(character if character.isprintable() else "\u00b7" for character in text[: longest + 1])
    return text if len(text) <= longest else text[: longest - 3] + "..."


def value(answer: Any, longest: int = 40) -> str:
    """Text of an answer; of bytes that are not text, only how many they are."""
    if isinstance(answer, str):
        return one_line(answer, longest)
    from geartrain import jsonbytes  # imports msgspec, which most output does not need

    if isinstance(answer, dict | jsonbytes.Base64):
        return f"({progress.count_of(len(jsonbytes.decode(answer)), 'byte')})"
    return one_line(str(answer), longest) if answer else ""
