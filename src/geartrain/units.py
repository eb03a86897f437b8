"""Sizes and durations as people write them: `64MiB`, `500kB`, `1ms`, `2h`.

>>> parse_size("64MiB"), show_size(64 * 1024**2)
(67108864, '64MiB')
>>> parse_duration("1.5h"), show_duration(0.05)
(5400.0, '50ms')
"""

import re
from collections.abc import Mapping

SIZE_UNITS = {
    "": 1,
    "b": 1,
    "kb": 1000,
    "mb": 1000**2,
    "gb": 1000**3,
    "kib": 1024,
    "mib": 1024**2,
    "gib": 1024**3,
}
DURATION_UNITS = {
    "": 1.0,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
_SHOWN_SIZES = (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024))
# No minutes: "60s" and "600s" are easier to compare with other limits.
_SHOWN_DURATIONS = (("d", 86400.0), ("h", 3600.0), ("s", 1.0), ("ms", 1e-3), ("us", 1e-6))
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([a-z]*)", re.IGNORECASE)


def parse_size(text: str) -> int:
    """Parse a size into bytes, the unit of a plain number; ValueError for anything else."""
    size = _parse(text, SIZE_UNITS)
    if size != int(size):
        raise ValueError(f"{text!r} is not a whole number of bytes")
    return int(size)


def parse_duration(text: str) -> float:
    """Parse a duration into seconds, the unit of a plain number; ValueError for anything else."""
    return _parse(text, DURATION_UNITS)


def show_size(size: int) -> str:
    """Write a size in the largest unit that is exact; plain bytes have no unit."""
    for unit, scale in _SHOWN_SIZES:
        if size and size % scale == 0:
            return f"{size // scale}{unit}"
    return str(size)


def show_duration(seconds: float) -> str:
    """Write a duration in the largest unit that gives a whole number."""
    if not seconds:
        return "0"
    for unit, scale in _SHOWN_DURATIONS:
        count = round(seconds / scale, 6)
        if count >= 1 and count == int(count):
            return f"{int(count)}{unit}"
    return f"{seconds:g}s"


def _parse(text: str, units: Mapping[str, float]) -> float:
    match = _QUANTITY.fullmatch(text.strip())
    if match is None or match[2].lower() not in units:
        raise ValueError(f"{text!r} is not a number with a unit")
    return float(match[1]) * units[match[2].lower()]
