"""Groups of failure reasons: what differs from job to job in a reason is left out.

>>> reason_group("KeyError: 'order-17'"), reason_group("cannot reach 10.0.3.7:443 after 12 s")
("KeyError: '…'", 'cannot reach … after # s')
"""

import functools
import re
from typing import Final

LONGEST: Final = 200  # characters of a group
_READ: Final = 300  # characters of its line; the patterns take time that grows with the square of the length
_TRACEBACK: Final = "Traceback (most recent call last)"

# What a pattern needs at least, the pattern, and what replaces it. In this order: an address has numbers in it, and so
# has an id.
_VARIABLE: Final = (
    ("'", re.compile(r"(?<!\w)'[^']*'(?!\w)"), "'…'"),
    ('"', re.compile(r'"[^"]*"'), '"…"'),
    ("-", re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE), "…"),  # a uuid
    ("@", re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"), "…"),  # a mail address
    ("0x", re.compile(r"\b0x[0-9a-f]+\b", re.IGNORECASE), "…"),
    (".", re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"), "…"),  # an address of IPv4
    (":", re.compile(r"\[?(?:[0-9a-f]{0,4}:){2,7}:?(?:[0-9a-f]{1,4}\b|(?=\]|\s|$))\]?(?::\d+)?", re.IGNORECASE), "…"),
    ("", re.compile(r"\b(?=[a-f]*\d)[0-9a-f]{8,}\b", re.IGNORECASE), "…"),  # an id in hex
    ("", re.compile(r"\d+(?:[.,]\d+)*"), "#"),
)


def has_traceback(reason: str) -> bool:
    """Whether a reason is a Python traceback."""
    return reason.lstrip().startswith(_TRACEBACK)


def summary(reason: str) -> str:
    """The one line of a reason that says most: the last one of a Python traceback, otherwise the first.

    >>> summary("Traceback (most recent call last):\\n  File ...\\nValueError: no such user\\n")
    'ValueError: no such user'
    """
    text = reason.strip()
    if has_traceback(text):
        return text.rpartition("\n")[2].strip()
    return text.partition("\n")[0].strip()


@functools.lru_cache(maxsize=2048)
def reason_group(reason: str) -> str:
    """The reason without numbers, ids, quoted values and addresses: equal for jobs that failed in the same way."""
    text = summary(reason)[:_READ]
    for needed, pattern, replacement in _VARIABLE:
        if needed in text:
            text = pattern.sub(replacement, text)
    return text[:LONGEST]
