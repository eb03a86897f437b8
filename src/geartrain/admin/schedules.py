"""Schedules that the server keeps: jobs that are submitted by the calendar.

1. A run is a background job. It is journalled together with the schedule's next time, so it is on disk with it or not
   at all: a crash neither loses a run nor submits it twice.
2. Runs that were missed while the server was down, or its clock stood still, become one run as soon as it is back.
3. A schedule that is `unique` leaves a run out while the job of the last one waits or runs.
4. A run for which the function's limit leaves no room is left out, and the log says so.
5. If a run cannot be made durable, it is tried again until it can.

Nothing polls: the engine is told when to come back.
"""

import functools
import logging
from collections.abc import Mapping
from typing import Final

import msgspec

from geartrain import jsonbytes
from geartrain.admin.saved_values import SavedValues
from geartrain.admin.views import PRIORITIES, ScheduleView
from geartrain.cron import UTC, CronExpression
from geartrain.engine.deadlines import NEVER
from geartrain.engine.interfaces import Timer
from geartrain.engine.job import LiveJob
from geartrain.errors import AdminError, QueueFullError
from geartrain.model import JobState
from geartrain.runtime.tick import TickLoop

DOOR: Final = "cron"  # what the jobs say that they came by
MOST: Final = 10_000  # schedules
LONGEST_NAME: Final = 200
LARGEST_PAYLOAD: Final = 1024 * 1024
_FIRED_AT_ONCE: Final = 200
_RETRY_SECONDS: Final = 1.0
# A clock that was moved back by less will be right again soon, and no run is repeated; by more, it was wrong before.
_WRONG_BEFORE: Final = 3 * 3600.0

_log = logging.getLogger("geartrain.cron")


class Schedule(msgspec.Struct):
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

    def view(self) -> ScheduleView:
        """As it is shown."""
        return ScheduleView(
            self.name, self.expression, self.timezone, jsonbytes.encode(self.function),
            jsonbytes.encode(self.payload), self.priority, self.unique, self.paused,
            None if self.paused else self.next_at, self.last_at, jsonbytes.encode(self.last_handle),
        )  # fmt: skip


class Schedules(Timer):
    """All schedules, by name."""

    def __init__(self, tick_loop: TickLoop, kept: Mapping[str, bytes]) -> None:
        super().__init__()
        self._engine = engine = tick_loop.engine
        self._durability = tick_loop.durability
        self._saved = SavedValues("cron", kept, lambda name, value: engine.journal.save_value(name, value))
        self._schedules: dict[str, Schedule] = {}
        self._expressions: dict[str, CronExpression] = {}
        self._seen = engine.now
        for place, value in self._saved.values():
            self._restore(place, value)
        self._plan()

    def views(self) -> list[ScheduleView]:
        """All of them, by name."""
        return [schedule.view() for _, schedule in sorted(self._schedules.items())]

    def get(self, name: str) -> Schedule:
        """The schedule of that name."""
        found = self._schedules.get(name)
        if found is None:
            raise AdminError("not-found", f"there is no schedule {name!r}")
        return found

    def set(
        self, name: str, expression: str, function: bytes, payload: bytes, priority: str, unique: bool, timezone: str
    ) -> Schedule:
        """Make a schedule, or change the one of that name; it keeps its past, and goes on resting if it does."""
        _check(name, function, payload, priority)
        expression_ = CronExpression(expression, timezone)
        old = self._schedules.get(name)
        if old is None and len(self._schedules) >= MOST:
            raise AdminError("conflict", f"there are {MOST} schedules, and room for no more")
        schedule = Schedule(name, expression, function, payload, priority, unique, timezone)
        schedule.next_at = expression_.after(self._engine.now)
        if old is not None:
            schedule.paused, schedule.last_at, schedule.last_handle = old.paused, old.last_at, old.last_handle
            if (expression, timezone) == (old.expression, old.timezone):
                schedule.next_at = old.next_at
        self._schedules[name] = schedule
        self._expressions[name] = expression_
        self._keep(schedule)
        return schedule

    def remove(self, name: str) -> None:
        """Forget a schedule; jobs that it has submitted stay."""
        self.get(name)
        del self._schedules[name], self._expressions[name]
        self._saved.remove(name)
        self._plan()

    def pause(self, name: str, paused: bool) -> None:
        """Let a schedule rest, or go on; what it missed meanwhile is not made up for."""
        schedule = self.get(name)
        if schedule.paused != paused:
            schedule.paused = paused
            schedule.next_at = self._expressions[name].after(self._engine.now)
            self._keep(schedule)

    def run(self, name: str) -> bytes:
        """Submit its job now, besides its times."""
        schedule = self.get(name)
        if self._busy(schedule):
            raise AdminError("conflict", f"the last run of {name!r} is not over, and the schedule is unique")
        try:
            job = self._submit(schedule)
        except QueueFullError as error:
            raise AdminError("conflict", str(error)) from None
        self._keep(schedule)
        return job.handle

    def fire(self, now: float) -> None:
        """Submit what is due."""
        if now < self._seen - _WRONG_BEFORE:
            self._follow_clock(now)
        self._seen = now
        if now < self.at:
            return
        due = [schedule for schedule in self._schedules.values() if _at(schedule) <= now]
        for schedule in sorted(due, key=_at)[:_FIRED_AT_ONCE]:
            self._fire(schedule)
        self._plan()

    def _fire(self, schedule: Schedule) -> None:
        missed = schedule.next_at
        schedule.next_at = self._expressions[schedule.name].after(self._engine.now)
        if self._busy(schedule):
            self._keep(schedule)
            return
        before = (schedule.last_at, schedule.last_handle)
        try:
            job = self._submit(schedule)
        except QueueFullError as error:
            _log.warning("a run was left out", extra={"fields": {"schedule": schedule.name, "why": str(error)}})
            self._keep(schedule)
            return
        self._keep(schedule)
        self._durability.call_when_durable(functools.partial(self._commit_ended, schedule, job, missed, before))

    def _commit_ended(
        self,
        schedule: Schedule,
        job: LiveJob,
        missed: float | None,
        before: tuple[float | None, bytes],
        failed: bool,
    ) -> None:
        """Repeat a run whose job could not be made durable, unless a worker has the job already."""
        if failed and job.state is JobState.CANCELLED and self._schedules.get(schedule.name) is schedule:
            schedule.next_at = missed
            schedule.last_at, schedule.last_handle = before
            self._saved.put(schedule.name, msgspec.json.encode(schedule))
            self.at = min(self.at, self._engine.now + _RETRY_SECONDS)

    def _submit(self, schedule: Schedule) -> LiveJob:
        job = self._engine.submit(
            schedule.function,
            payload=schedule.payload,
            priority=PRIORITIES.index(schedule.priority),
            background=True,
            door=DOOR,
        )
        schedule.last_at, schedule.last_handle = self._engine.now, job.handle
        return job

    def _busy(self, schedule: Schedule) -> bool:
        return schedule.unique and self._engine.find(schedule.last_handle) is not None

    def _keep(self, schedule: Schedule) -> None:
        self._saved.put(schedule.name, msgspec.json.encode(schedule))
        self._plan()

    def _plan(self) -> None:
        self.at = min(map(_at, self._schedules.values()), default=NEVER)

    def _follow_clock(self, now: float) -> None:
        for schedule in self._schedules.values():
            schedule.next_at = self._expressions[schedule.name].after(now)
            self._saved.put(schedule.name, msgspec.json.encode(schedule))
        self._plan()

    def _restore(self, place: str, value: bytes) -> None:
        try:
            schedule = msgspec.json.decode(value, type=Schedule)
            expression_ = CronExpression(schedule.expression, schedule.timezone)
        except (msgspec.MsgspecError, AdminError) as error:
            fields = {"place": place, "why": str(error)}
            _log.error("a schedule cannot be read, and does not run", extra={"fields": fields})
            return
        self._saved.own(schedule.name, place)
        if schedule.name not in self._schedules:
            self._schedules[schedule.name], self._expressions[schedule.name] = schedule, expression_


def _at(schedule: Schedule) -> float:
    return NEVER if schedule.paused or schedule.next_at is None else schedule.next_at


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
            raise AdminError("bad-request", words)
