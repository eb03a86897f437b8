"""Progress as a worker writes it to the hash, in whole numbers that every protocol has.

The hash keeps the texts themselves. Other protocols have two whole numbers below 2^31, so large values are divided by
the same number and fractions multiplied by the same number: the quotient stays what it was, nearly.

>>> whole(b"1", b"4")
Progress(numerator=1, denominator=4, seconds_left=0, verbatim=b'')
>>> whole(b"0.25", b"1")[:2], whole(b"4611686018427387904", b"9223372036854775808")[:2]
((250, 1000), (536870912, 1073741824))
>>> whole(b"half", b"1") is None
True
"""

import math
from typing import Final

from geartrain.engine.job import Progress

LONGEST: Final = 64  # bytes of a dividend or divisor
_BELOW: Final = 2**31  # what other protocols can represent
_STEPS: Final = 1000  # per one, of a fraction


def whole(dividend: bytes, divisor: bytes) -> Progress | None:
    """The progress in whole numbers; None if one of the texts is not a number from 0 on."""
    numerator, denominator = _number(dividend), _number(divisor)
    if numerator is None or denominator is None:
        return None
    if numerator != int(numerator) or denominator != int(denominator):
        numerator, denominator = numerator * _STEPS, denominator * _STEPS
    first, second = int(numerator), int(denominator)
    shift = max(max(first, second).bit_length() - _BELOW.bit_length() + 1, 0)
    return Progress(first >> shift, second >> shift)


def _number(text: bytes) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
