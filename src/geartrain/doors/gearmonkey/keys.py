"""The keys of GearMonkey. The name of a function may have colons in it, so ids and priorities are taken from the end.

>>> parse(b"queue:mail:send:high")
Key(kind=<Kind.QUEUE: 'queue'>, function=b'mail:send', last=b'high', raw=b'queue:mail:send:high')
"""

import enum
import math
from typing import Final, NamedTuple

from geartrain.errors import ForbiddenError, RequestError, WireError
from geartrain.model import Priority
from geartrain.wire import resp

SCHEDULED: Final = b"scheduled"
PRIORITIES: Final = {b"high": int(Priority.HIGH), b"normal": int(Priority.NORMAL), b"low": int(Priority.LOW)}
NAMES: Final = {number: name for name, number in PRIORITIES.items()}

_LONGEST_KEY: Final = 64 * 1024


class Kind(enum.Enum):
    """What a key holds."""

    UID = "uid"  # the last id
    COUNT = "count"  # of workers
    JOB = "job"
    QUEUE = "queue"
    LOCK = "lock"  # exists when its job has ended
    CHANNEL = "channel"


class Key(NamedTuple):
    """The parts of a key."""

    kind: Kind
    function: bytes
    last: bytes  # an id or a priority, where the kind has one
    raw: bytes

    @property
    def id(self) -> int:
        """The job's number."""
        return int(self.last)


_KINDS: Final = {kind.value.encode(): kind for kind in Kind}
_WITH_ID: Final = frozenset({Kind.JOB, Kind.LOCK})
LISTS: Final = frozenset({Kind.QUEUE, Kind.LOCK})  # kinds that list commands work on


def parse(raw: bytes) -> Key:
    """Parse a key; a WireError that is not fatal if it is not one of GearMonkey's."""
    head, colon, rest = raw.partition(b":")
    kind = _KINDS.get(head)
    if kind is None or not colon or len(raw) > _LONGEST_KEY:
        raise refusal(f"{shown(raw)} is no key of GearMonkey: this is a job server and not a Redis")
    last = b""
    if kind in _WITH_ID or kind is Kind.QUEUE:
        rest, _, last = rest.rpartition(b":")
    if not rest:
        raise refusal(f"{shown(raw)} names no function")
    if kind in _WITH_ID and (resp.number(last) or 0) <= 0:
        raise refusal(f"{shown(raw)} has no job id at its end: ids come from INCR uid:{text(rest)}")
    if kind is Kind.QUEUE and last not in PRIORITIES and last != SCHEDULED:
        raise refusal(f"{shown(raw)} is no queue: there are high, normal, low and scheduled")
    return Key(kind, rest, last, raw)


def expect(raw: bytes, *kinds: Kind) -> Key:
    """The same, and WRONGTYPE if the key is of another kind."""
    key = parse(raw)
    if key.kind not in kinds:
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
    key = expect(raw, Kind.QUEUE)
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
