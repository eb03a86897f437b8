"""The keys of GearMonkey. The name of a function may have colons in it, so ids and priorities are taken from the end.

>>> key = parse(b"queue:mail:send:high")
>>> key.kind == QUEUE, key.function, key.last
(True, b'mail:send', b'high')
"""

import math
from typing import Final

from geartrain.errors import ForbiddenError, RequestError, WireError
from geartrain.model import Priority
from geartrain.wire import resp

SCHEDULED: Final = b"scheduled"
PRIORITIES: Final = {b"high": int(Priority.HIGH), b"normal": int(Priority.NORMAL), b"low": int(Priority.LOW)}
NAMES: Final = {number: name for name, number in PRIORITIES.items()}

# What a key holds.
UID: Final = 0  # the last id
COUNT: Final = 1  # of workers
JOB: Final = 2
QUEUE: Final = 3
LOCK: Final = 4  # exists when its job has ended
CHANNEL: Final = 5

_KINDS: Final = {b"uid": UID, b"count": COUNT, b"job": JOB, b"queue": QUEUE, b"lock": LOCK, b"channel": CHANNEL}
_LONGEST_KEY: Final = 64 * 1024
_LONGEST_REMEMBERED: Final = 128  # bytes of a key
_MOST_REMEMBERED: Final = 4096  # keys


class Key:
    """The parts of a key. It is not changed."""

    __slots__ = ("function", "id", "kind", "last", "raw")

    def __init__(self, kind: int, function: bytes, last: bytes, id: int, raw: bytes) -> None:
        self.kind = kind
        self.function = function
        self.last = last  # an id or a priority, where the kind has one
        self.id = id  # the job's number; 0 where there is none
        self.raw = raw


_remembered: Final[dict[bytes, Key]] = {}  # each of a job's keys is in several commands


def parse(raw: bytes) -> Key:
    """Parse a key; a WireError that is not fatal if it is not one of GearMonkey's."""
    known = _remembered.get(raw)
    if known is not None:
        return known
    key = _parsed(raw)
    if len(raw) <= _LONGEST_REMEMBERED:
        if len(_remembered) >= _MOST_REMEMBERED:
            _remembered.clear()
        _remembered[raw] = key
    return key


def _parsed(raw: bytes) -> Key:
    head, colon, rest = raw.partition(b":")
    kind = _KINDS.get(head)
    if kind is None or not colon or len(raw) > _LONGEST_KEY:
        raise refusal(f"{shown(raw)} is no key of GearMonkey: this is a job server and not a Redis")
    last = b""
    id = 0
    if kind in (JOB, LOCK, QUEUE):
        rest, _, last = rest.rpartition(b":")
    if not rest:
        raise refusal(f"{shown(raw)} names no function")
    if kind in (JOB, LOCK):
        id = resp.number(last) or 0
        if id <= 0:
            raise refusal(f"{shown(raw)} has no job id at its end: ids come from INCR uid:{text(rest)}")
    if kind == QUEUE and last not in PRIORITIES and last != SCHEDULED:
        raise refusal(f"{shown(raw)} is no queue: there are high, normal, low and scheduled")
    return Key(kind, rest, last, id, raw)


def expect(raw: bytes, kind: int) -> Key:
    """The same, and WRONGTYPE if the key is of another kind."""
    key = parse(raw)
    if key.kind != kind:
        raise WRONG_TYPE
    return key


def expect_list(raw: bytes) -> Key:
    """The same for the kinds that list commands work on."""
    key = parse(raw)
    if key.kind != QUEUE and key.kind != LOCK:
        raise WRONG_TYPE
    return key


def refusal(text: str) -> WireError:
    """An error that leaves the connection open."""
    return WireError("ERR", text, fatal=False)


def refused_request(error: RequestError) -> WireError:
    """What the engine refuses, as an error of Redis: NOPERM where a right is missing."""
    return WireError("NOPERM" if isinstance(error, ForbiddenError) else "ERR", str(error), fatal=False)


WRONG_TYPE: Final = WireError("WRONGTYPE", "Operation against a key holding the wrong kind of value", fatal=False)
NOT_AN_INTEGER: Final = refusal("value is not an integer or out of range")
SYNTAX: Final = refusal("syntax error")


def integer(text: bytes) -> int:
    """A whole number, or Redis' error."""
    number = resp.number(text)
    if number is None:
        raise NOT_AN_INTEGER
    return number


def text(raw: bytes) -> str:
    """Bytes for an error message, truncated."""
    return raw[:80].decode("utf-8", "backslashreplace")


def shown(raw: bytes) -> str:
    """The same in quotes."""
    return f"'{text(raw)}'"


def priority(key: Key) -> int:
    """The priority of a queue that is a list."""
    if key.last == SCHEDULED:
        raise WRONG_TYPE
    return PRIORITIES[key.last]


def scheduled(raw: bytes) -> Key:
    """The key of the scheduled jobs of a function."""
    key = expect(raw, QUEUE)
    if key.last != SCHEDULED:
        raise WRONG_TYPE
    return key


def number(value: bytes) -> float:
    """A number, or Redis' error if it is none."""
    try:
        parsed = float(value)
    except ValueError:
        parsed = math.nan
    if math.isnan(parsed):
        raise refusal("value is not a valid float")
    return parsed


def time_bound(value: bytes) -> float:
    """The lowest or highest time of a range; after a bracket, as in Redis, the next one."""
    exclusive = value.startswith(b"(")
    parsed = number(value[exclusive:])
    return parsed if not exclusive else math.nextafter(parsed, math.inf)
