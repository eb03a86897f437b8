"""Schedules that the server keeps: jobs that are submitted by the calendar.

1. A run is a background job. It is journalled together with the schedule's next time, so it is on disk with it or not
   at all: a crash neither loses a run nor submits it twice.
2. Runs that were missed while the server was down, or its clock stood still, become one run as soon as it is back.
3. A schedule that is `unique` leaves a run out while the job of the last one waits or runs.
4. A run for which the function's limit leaves no room is left out, and the log says so.
5. If a run cannot be made durable, it is tried again until it can.

Nothing polls: the engine is told when to come back.
"""

import logging
from collections.abc import Mapping
from typing import Final

import msgspec

from geartrain.engine.deadlines import NEVER
from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Timer
from geartrain.engine.job import LiveJob
from geartrain.errors import QueueFullError, SteeringError
from geartrain.model import JobState
from geartrain.steering.calendar import UTC, Calendar
from geartrain.steering.portraits import PRIORITIES
from geartrain.steering.shelf import Shelf
from geartrain.steering.site import Site
from geartrain.steering.views import CronView, text

DOOR: Final = "cron"  # what the jobs say that they came by
MOST: Final = 10_000  # schedules
LONGEST_NAME: Final = 200
LARGEST_PAYLOAD: Final = 1024 * 1024
_FIRED_AT_ONCE: Final = 200
_RETRY_SECONDS: Final = 1.0
# A clock that was moved back by less will be right again soon, and no run is repeated; by more, it was wrong before.
_WRONG_BEFORE: Final = 3 * 3600.0

_log = logging.getLogger("geartrain.cron")


class Cron(msgspec.Struct):
    """A schedule as it is kept."""

    name: str
    expression: str
    function: bytes
    payload: bytes = b""
    priority: str = "normal"
    unique: bool = False
    timezone: str = UTC
    paused: bool = False
    next_at: float | None = None
    last_at: float | None = None
    last_handle: bytes = b""

    def view(self) -> CronView:
        """As it is shown."""
        return CronView(
            self.name, self.expression, self.timezone, text(self.function), text(self.payload), self.priority,
            self.unique, self.paused, None if self.paused else self.next_at, self.last_at, text(self.last_handle),
        )  # fmt: skip


class Crons(Timer):
    """All schedules, by name."""

    def __init__(self, engine: Engine, site: Site, kept: Mapping[str, bytes]) -> None:
        super().__init__()
        self._engine = engine
        self._site = site
        self._shelf = Shelf("cron", kept, lambda name, value: engine.journal.keep(name, value))
        self._crons: dict[str, Cron] = {}
        self._calendars: dict[str, Calendar] = {}
        self._seen = engine.now
        for place, value in self._shelf.values():
            self._restore(place, value)
        self._plan()

    def views(self) -> list[CronView]:
        """All of them, by name."""
        return [cron.view() for _, cron in sorted(self._crons.items())]

    def get(self, name: str) -> Cron:
        """The schedule of that name."""
        found = self._crons.get(name)
        if found is None:
            raise SteeringError("not-found", f"there is no schedule {name!r}")
        return found

    def set(
        self, name: str, expression: str, function: bytes, payload: bytes, priority: str, unique: bool, timezone: str
    ) -> Cron:
        """Make a schedule, or change the one of that name; it keeps its past, and goes on resting if it does."""
        _check(name, function, payload, priority)
        calendar = Calendar(expression, timezone)
        old = self._crons.get(name)
        if old is None and len(self._crons) >= MOST:
            raise SteeringError("conflict", f"there are {MOST} schedules, and room for no more")
        cron = Cron(name, expression, function, payload, priority, unique, timezone)
        cron.next_at = calendar.after(self._engine.now)
        if old is not None:
            cron.paused, cron.last_at, cron.last_handle = old.paused, old.last_at, old.last_handle
            if (expression, timezone) == (old.expression, old.timezone):
                cron.next_at = old.next_at
        self._crons[name] = cron
        self._calendars[name] = calendar
        self._keep(cron)
        return cron

    def remove(self, name: str) -> None:
        """Forget a schedule; jobs that it has submitted stay."""
        self.get(name)
        del self._crons[name], self._calendars[name]
        self._shelf.remove(name)
        self._plan()

    def pause(self, name: str, paused: bool) -> None:
        """Let a schedule rest, or go on; what it missed meanwhile is not made up for."""
        cron = self.get(name)
        if cron.paused != paused:
            cron.paused = paused
            cron.next_at = self._calendars[name].after(self._engine.now)
            self._keep(cron)

    def run(self, name: str) -> bytes:
        """Submit its job now, besides its times."""
        cron = self.get(name)
        if self._busy(cron):
            raise SteeringError("conflict", f"the last run of {name!r} is not over, and the schedule is unique")
        try:
            job = self._submit(cron)
        except QueueFullError as error:
            raise SteeringError("conflict", str(error)) from None
        self._keep(cron)
        return job.handle

    def fire(self, now: float) -> None:
        """Submit what is due."""
        if now < self._seen - _WRONG_BEFORE:
            self._follow_clock(now)
        self._seen = now
        if now < self.at:
            return
        due = [cron for cron in self._crons.values() if _at(cron) <= now]
        for cron in sorted(due, key=_at)[:_FIRED_AT_ONCE]:
            self._fire(cron)
        self._plan()

    def _fire(self, cron: Cron) -> None:
        missed = cron.next_at
        cron.next_at = self._calendars[cron.name].after(self._engine.now)
        if self._busy(cron):
            self._keep(cron)
            return
        before = (cron.last_at, cron.last_handle)
        try:
            job = self._submit(cron)
        except QueueFullError as error:
            _log.warning("a run was left out", extra={"fields": {"schedule": cron.name, "why": str(error)}})
            self._keep(cron)
            return
        self._keep(cron)
        self._site.hold(_Run(self, cron, job, missed, before))

    def undo(self, cron: Cron, missed: float | None, before: tuple[float | None, bytes]) -> None:
        """A run could not be made durable, and nobody has begun with it: try it again soon."""
        if self._crons.get(cron.name) is cron:
            cron.next_at = missed
            cron.last_at, cron.last_handle = before
            self._shelf.put(cron.name, msgspec.json.encode(cron))
            self.at = min(self.at, self._engine.now + _RETRY_SECONDS)

    def _submit(self, cron: Cron) -> LiveJob:
        job = self._engine.submit(
            cron.function,
            payload=cron.payload,
            priority=PRIORITIES.index(cron.priority),
            background=True,
            door=DOOR,
        )
        cron.last_at, cron.last_handle = self._engine.now, job.handle
        return job

    def _busy(self, cron: Cron) -> bool:
        return cron.unique and self._engine.find(cron.last_handle) is not None

    def _keep(self, cron: Cron) -> None:
        self._shelf.put(cron.name, msgspec.json.encode(cron))
        self._plan()

    def _plan(self) -> None:
        self.at = min(map(_at, self._crons.values()), default=NEVER)

    def _follow_clock(self, now: float) -> None:
        for cron in self._crons.values():
            cron.next_at = self._calendars[cron.name].after(now)
            self._shelf.put(cron.name, msgspec.json.encode(cron))
        self._plan()

    def _restore(self, place: str, value: bytes) -> None:
        try:
            cron = msgspec.json.decode(value, type=Cron)
            calendar = Calendar(cron.expression, cron.timezone)
        except (msgspec.MsgspecError, SteeringError) as error:
            fields = {"place": place, "why": str(error)}
            _log.error("a schedule cannot be read, and does not run", extra={"fields": fields})
            return
        self._shelf.own(cron.name, place)
        if cron.name not in self._crons:
            self._crons[cron.name], self._calendars[cron.name] = cron, calendar


class _Run:
    """Waits for a run to be durable."""

    def __init__(
        self, crons: Crons, cron: Cron, job: LiveJob, missed: float | None, before: tuple[float | None, bytes]
    ) -> None:
        self._crons, self._cron, self._job = crons, cron, job
        self._missed, self._before = missed, before

    def settle(self, ticket: int, failed: bool) -> None:
        """The job was withdrawn, unless a worker had it already."""
        if failed and self._job.state is JobState.CANCELLED:
            self._crons.undo(self._cron, self._missed, self._before)


def _at(cron: Cron) -> float:
    return NEVER if cron.paused or cron.next_at is None else cron.next_at


def _check(name: str, function: bytes, payload: bytes, priority: str) -> None:
    complaints = (
        (not name or len(name) > LONGEST_NAME or not name.isprintable(),
         f"the name of a schedule is 1 to {LONGEST_NAME} printable characters"),
        (not function, "a schedule needs a function"),
        (len(payload) > LARGEST_PAYLOAD, f"the payload of a schedule is at most {LARGEST_PAYLOAD} bytes"),
        (priority not in PRIORITIES, f"there is no priority {priority!r}; there are {', '.join(PRIORITIES)}"),
    )  # fmt: skip
    for wrong, words in complaints:
        if wrong:
            raise SteeringError("bad-request", words)
