"""Many numbers as ranges, each from its first to its last one: `8-1007 1010-1010`."""

import re
from collections.abc import Iterable
from typing import Final

Ranges = list[tuple[int, int]]

_RANGE: Final = re.compile("([0-9]{1,18})-([0-9]{1,18})")  # more digits would not fit into 64 bits


def ranges_of(numbers: Iterable[int]) -> Ranges:
    """Numbers as ranges.

    >>> ranges_of([4, 0, 1, 2])
    [(0, 2), (4, 4)]
    """
    found: Ranges = []
    for number in sorted(set(numbers)):
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def write(ranges: Ranges) -> str:
    """Ranges as text.

    >>> write([(0, 2), (4, 4)])
    '0-2 4-4'
    """
    return " ".join(f"{first}-{last}" for first, last in ranges)


def parse(text: str) -> Ranges:
    """What `write` made; a ValueError if it did not.

    >>> parse("0-2 4-4")
    [(0, 2), (4, 4)]
    """
    ranges = []
    for word in text.split():
        match = _RANGE.fullmatch(word)
        if match is None or int(match[1]) > int(match[2]):
            raise ValueError(f"{word[:50]!r} is not a range of numbers, such as 8-1007")
        ranges.append((int(match[1]), int(match[2])))
    return ranges
