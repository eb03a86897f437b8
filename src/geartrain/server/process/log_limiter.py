"""A limit for lines that peers cause in the log or the audit log, so that one peer cannot fill the disk.

Of each event and host a few lines are written per minute. The rest is counted, and a line says how many there were.
"""

import itertools
import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

LINES_PER_PERIOD: Final = 100
PERIOD_SECONDS: Final = 60.0
_MOST_KEYS: Final = 1000  # beyond it, hosts are counted together
_ALL_HOSTS: Final = "other hosts"


class EventKey(NamedTuple):
    """What is counted together."""

    name: str
    door: str
    host: str


class LineCount:
    """Of one event and host in one period."""

    __slots__ = ("ends_at", "left_out", "written")

    def __init__(self, ends_at: float) -> None:
        self.ends_at = ends_at
        self.written = 0
        self.left_out = 0


Summarise = Callable[[EventKey, int], None]


class LineLimiter:
    """Counts lines that name a peer, from level info on. Whoever reads a debug log wants all of it."""

    def __init__(self, lines: int = LINES_PER_PERIOD, most_keys: int = 0) -> None:
        self._lines = lines  # of each event and host per period; 0: no limit
        self._most_keys = most_keys or _MOST_KEYS
        self._counts: dict[EventKey, LineCount] = {}
        self.left_out = 0  # lines that no summary has reported yet

    def allows(self, record: logging.LogRecord, now: float) -> bool:
        """Whether to write the line of this record; otherwise it is counted."""
        fields: dict[str, Any] = getattr(record, "fields", {})
        if not self._lines or record.levelno < logging.INFO or "peer" not in fields:
            return True
        return self.allows_event(_event(record, fields), now)

    def allows_event(self, event: EventKey, now: float) -> bool:
        """Whether to write a line about this event; otherwise it is counted."""
        count = self._count(event, now)
        if count.written < self._lines:
            count.written += 1
            return True
        count.left_out += 1
        self.left_out += 1
        return False

    def next_end(self) -> float | None:
        """When the first period with lines that were left out ends; None: there are none."""
        if not self.left_out:
            return None
        return next(count.ends_at for count in self._counts.values() if count.left_out)

    def end_periods(self, now: float) -> list[tuple[EventKey, int]]:
        """Forget the periods that are over, and return what was left out in them."""
        # All periods are equally long, so that the first that began is the first to end.
        over = [event for event, _ in itertools.takewhile(lambda item: item[1].ends_at <= now, self._counts.items())]
        summaries = [(event, self._counts.pop(event).left_out) for event in over]
        self.left_out -= sum(left_out for _, left_out in summaries)
        return [(event, left_out) for event, left_out in summaries if left_out]

    def _count(self, event: EventKey, now: float) -> LineCount:
        count = self._counts.get(event)
        if count is None and len(self._counts) >= self._most_keys:
            event = event._replace(host=_ALL_HOSTS)
            count = self._counts.get(event)
        if count is None:
            count = self._counts[event] = LineCount(now + PERIOD_SECONDS)
        return count


class GuardedLimiter:
    """A limiter for several threads, which reports what it has left out: `summarise` is called with each count."""

    def __init__(self, limiter: LineLimiter, summarise: Summarise) -> None:
        self._limiter = limiter
        self._summarise = summarise
        self._guard = threading.Lock()

    def allows(self, record: logging.LogRecord) -> tuple[bool, bool]:
        """Whether to write the line of this record, and whether it is the first that is left out."""
        with self._guard:
            allowed = self._limiter.allows(record, time.monotonic())
            return allowed, not allowed and self._limiter.left_out == 1

    def allows_event(self, event: EventKey) -> tuple[bool, bool]:
        """The same for an event."""
        with self._guard:
            allowed = self._limiter.allows_event(event, time.monotonic())
            return allowed, not allowed and self._limiter.left_out == 1

    def end_periods(self) -> float | None:
        """Report what was left out in periods that are over; return in how many seconds there is another one."""
        now = time.monotonic()
        self.report(now)
        with self._guard:
            end = self._limiter.next_end()
        return None if end is None else max(0.0, end - now)

    def report(self, now: float) -> None:
        """Report what was left out in periods that end until then."""
        with self._guard:
            summaries = self._limiter.end_periods(now)
        for event, count in summaries:
            self._summarise(event, count)


def _event(record: logging.LogRecord, fields: dict[str, Any]) -> EventKey:
    return EventKey(record.getMessage(), str(fields.get("door", "")), host_of(str(fields["peer"])))


def host_of(peer: str) -> str:
    """The host in the address of a peer: each of its connections has another port."""
    return peer.rpartition(":")[0] or peer
