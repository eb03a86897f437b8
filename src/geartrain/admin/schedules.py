"""Schedules: the server submits a job whenever a cron expression is due.

1. A run is a background job. It is journalled together with the schedule's next time, so both are durable or neither:
   a crash does not lose a run or submit it twice.
2. Runs that were missed, because the server was down or the machine asleep, are skipped, replaced by a single run, or
   all submitted, as the schedule's `missed` says.
3. A schedule that is `unique` skips a run while the job of the previous run has not ended.
4. A run is skipped if the function has as many jobs as its limit allows, or cannot be created; a warning is logged.
5. A run whose job cannot be made durable is repeated until it can.

Nothing polls: the engine calls `fire` at the time of the next run. Schedules are in a heap by their next time, so a run
costs the same whatever their number.

In a cluster every server has all schedules and may change them, and the leader alone submits their runs. A run and its
schedule's next time are one batch, which a server that leads no longer cannot commit. The job of a schedule that is
unique has a unique key, so that it counts wherever it is.
"""

import datetime
import functools
import heapq
import logging
from collections.abc import Mapping
from typing import Final

import msgspec

from geartrain.admin.saved_values import SavedValues
from geartrain.admin.schedule import ALL, SKIP, Schedule, ScheduleRun
from geartrain.admin.views import PRIORITIES
from geartrain.cron import CronExpression
from geartrain.engine.deadlines import NEVER
from geartrain.engine.interfaces import Timer
from geartrain.engine.job import LiveJob
from geartrain.errors import AdminError, RequestError
from geartrain.model import JobState
from geartrain.runtime.tick import TickLoop

DOOR: Final = "cron"  # the `door` of the jobs
_KEY: Final = b"cron:"  # and the name of the schedule: the unique key of its job, in a cluster
SCHEDULES_MOST: Final = 10_000
PAYLOADS_MOST: Final = 64 * 1024 * 1024  # bytes of all schedules: a list of them has them all
MISSED_AFTER: Final = 60.0  # seconds; a run that is less late than this was not missed
MISSED_MOST: Final = 100  # runs that a schedule with missed=all submits afterwards: the latest
_RUNS_PER_TICK: Final = 200
_RETRY_SECONDS: Final = 1.0
_STALE_MOST: Final = 64  # entries of the heap beside those that each schedule may have; then it is rebuilt
# A clock that is set back by less than this repeats no run. Set back by more, it was wrong before: schedules follow it.
_CLOCK_WAS_WRONG: Final = 3 * 3600.0

_log = logging.getLogger("geartrain.cron")


class Schedules(Timer):
    """All schedules, by name."""

    def __init__(self, tick_loop: TickLoop, saved: Mapping[str, bytes]) -> None:
        super().__init__()
        self._engine = engine = tick_loop.engine
        self._durability = tick_loop.durability
        self._feed = feed = tick_loop.values

        def save(name: str, value: bytes) -> None:
            engine.journal.save_value(name, value)

        self._saved = SavedValues("cron", saved, save, is_shared=feed.is_shared)
        self._saved_runs = SavedValues("cron-run", saved, save, is_shared=feed.is_shared)  # only in a cluster
        self._schedules: dict[str, Schedule] = {}
        self._expressions: dict[str, CronExpression] = {}
        # Times and names, a heap. An entry whose schedule has another time now is stale; it is dropped at the top.
        self._due: list[tuple[float, str]] = []
        self._catching_up: set[str] = set()  # names of schedules whose missed runs are being submitted
        self._seen = engine.now
        for slot, value in self._saved.values():
            self._restore(slot, value)
        for slot, value in self._saved_runs.values():
            self._restore_run(slot, value)
        self._rebuild()
        self._plan()
        feed.subscribe(self._values_changed, self._lead)

    def all(self) -> list[Schedule]:
        """All schedules, sorted by name."""
        return [self._schedules[name] for name in sorted(self._schedules)]

    def function_of(self, name: str) -> bytes:
        """The function of a schedule; empty if there is none of that name."""
        schedule = self._schedules.get(name)
        return schedule.function if schedule is not None else b""

    def get(self, name: str) -> Schedule:
        """The schedule of that name."""
        schedule = self._schedules.get(name)
        if schedule is None:
            raise AdminError("not-found", f"no schedule {name!r}")
        return schedule

    def set(self, schedule: Schedule) -> None:
        """Add a schedule, or replace the one of the same name; its last run and its pause remain."""
        schedule.check()
        self._engine.check_function(schedule.function)
        old = self._schedules.get(schedule.name)
        is_same = old is not None and (schedule.expression, schedule.timezone) == (old.expression, old.timezone)
        schedule.start = old.start if old is not None and is_same else self._engine.now
        expression = CronExpression(schedule.expression, schedule.timezone, schedule.start)
        self._check_room(schedule, old)
        schedule.next_at = expression.after(self._engine.now)
        if old is not None:
            schedule.paused, schedule.last_at, schedule.last_handle = old.paused, old.last_at, old.last_handle
            if is_same:
                schedule.next_at = old.next_at
            self._let_go(old)
        self._add(schedule, expression)
        self._save(schedule)

    def load(self, slot: str, value: bytes, replace: bool) -> tuple[bool, bool]:
        """Load a schedule of a dump, with its times; whether it was loaded, and whether there was one of its name.

        Runs that it missed are submitted or skipped, as after a restart.
        """
        try:
            schedule = msgspec.json.decode(value, type=Schedule)
        except msgspec.MsgspecError as error:
            raise AdminError("bad-request", f"not a schedule: {error}") from None
        schedule.check()
        self._engine.check_function(schedule.function)
        expression = CronExpression(schedule.expression, schedule.timezone, schedule.start)
        old = self._schedules.get(schedule.name)
        if old is not None and (not replace or old == schedule):
            return False, True
        self._check_room(schedule, old)
        if old is not None:
            self._let_go(old)
        self._add(schedule, expression)
        self._save(schedule, slot)
        return True, old is not None

    def _check_room(self, schedule: Schedule, old: Schedule | None) -> None:
        """Raise an AdminError if there are too many schedules, or too large ones, with this one in place of another."""
        if old is None and len(self._schedules) >= SCHEDULES_MOST:
            raise AdminError("conflict", f"there are {SCHEDULES_MOST} schedules, which is the limit")
        others = sum(len(other.payload) for other in self._schedules.values() if other is not old)
        if others + len(schedule.payload) > PAYLOADS_MOST:
            raise AdminError("conflict", f"the payloads of all schedules have at most {PAYLOADS_MOST} bytes")

    def remove(self, name: str) -> None:
        """Delete a schedule; jobs that it submitted remain."""
        self._let_go(self.get(name))
        self._forget(name)
        self._saved.remove(name)
        self._saved_runs.remove(name)
        self._plan()

    def _forget(self, name: str) -> None:
        del self._schedules[name], self._expressions[name]
        self._catching_up.discard(name)

    def pause(self, name: str, paused: bool) -> None:
        """Pause or resume a schedule. Runs that it missed while paused are not repeated."""
        schedule = self.get(name)
        if schedule.paused != paused:
            schedule.paused = paused
            schedule.next_at = self._expressions[name].after(self._engine.now)
            self._save(schedule)

    def run(self, name: str) -> bytes:
        """Submit the job of a schedule now, and return its handle."""
        schedule = self.get(name)
        if self._busy(schedule):
            raise AdminError(
                "conflict", f"the job of the last run of {name!r} has not ended, and the schedule is unique"
            )
        try:
            job = self._submit(schedule)
        except RequestError as error:
            raise AdminError("conflict", str(error)) from None
        self._save_run(schedule)
        return job.handle

    def fire(self, now: float) -> None:
        """Submit the jobs of all schedules that are due."""
        if now < self._seen - _CLOCK_WAS_WRONG:
            self._follow_clock(now)
        self._seen = now
        if now < self.at or not self._feed.leads:
            return
        due: dict[str, None] = {}  # names; one may have two entries for the same time
        while len(due) < _RUNS_PER_TICK and self._next_at() <= now:
            due[heapq.heappop(self._due)[1]] = None
        for name in due:
            self._fire(self._schedules[name])
        self._plan()

    def _fire(self, schedule: Schedule) -> None:
        due = self._next_run(schedule)
        if due is None or self._busy(schedule):
            self._save_run(schedule)
            return
        before = (schedule.last_at, schedule.last_handle)
        try:
            job = self._submit(schedule)
        except RequestError as error:
            fields = {"schedule": schedule.name, "why": str(error)}
            _log.warning("scheduled run skipped", extra={"fields": fields})
            self._save_run(schedule)
            return
        self._save_run(schedule)
        self._durability.call_when_durable(functools.partial(self._commit_ended, schedule, job, due, before))

    def _next_run(self, schedule: Schedule) -> float | None:
        """Advance a schedule that is due. Return the time of the run to submit now; None if it was missed for good."""
        now, due, expression = self._engine.now, schedule.next_at, self._expressions[schedule.name]
        assert due is not None
        is_missed = now - due > MISSED_AFTER
        if schedule.missed != ALL:
            schedule.next_at = expression.after(now)
            if schedule.missed == SKIP and is_missed:
                self._log_skipped(schedule, due, f"more than {MISSED_AFTER:g} seconds late")
                return None
            return due
        if is_missed and schedule.name not in self._catching_up:
            self._catching_up.add(schedule.name)
            first = expression.last_before(now, MISSED_MOST)
            if first is not None and first > due:
                self._log_skipped(schedule, due, f"only the last {MISSED_MOST} are submitted")
                due = first
        schedule.next_at = expression.after(due)
        if schedule.next_at is None or schedule.next_at > now:
            self._catching_up.discard(schedule.name)
        return due

    def _log_skipped(self, schedule: Schedule, since: float, reason: str) -> None:
        fields = {"schedule": schedule.name, "since": _utc(since), "why": reason}
        _log.warning("missed runs skipped", extra={"fields": fields})

    def _commit_ended(
        self,
        schedule: Schedule,
        job: LiveJob,
        due: float,
        before: tuple[float | None, bytes],
        failed: bool,
    ) -> None:
        """Repeat a run whose job could not be made durable, unless a worker has the job already."""
        if failed and job.state is JobState.CANCELLED and self._schedules.get(schedule.name) is schedule:
            schedule.next_at = due
            schedule.last_at, schedule.last_handle = before
            self._save_run(schedule)
            if self._feed.leads:  # else another server runs it
                self.at = min(self.at, self._engine.now + _RETRY_SECONDS)

    def _submit(self, schedule: Schedule) -> LiveJob:
        job = self._engine.submit(
            schedule.function,
            unique=_KEY + schedule.name.encode() if schedule.unique and self._feed.is_shared else b"",
            payload=schedule.payload,
            priority=PRIORITIES.index(schedule.priority),
            background=True,
            door=DOOR,
            expires_at=self._engine.now + schedule.expires if schedule.expires else 0.0,
        )
        schedule.last_at, schedule.last_handle = self._engine.now, job.handle
        return job

    def _busy(self, schedule: Schedule) -> bool:
        return schedule.unique and self._engine.find(schedule.last_handle) is not None

    def _save(self, schedule: Schedule, slot: str = "") -> None:
        self._saved.put(schedule.name, msgspec.json.encode(schedule), slot)
        self._push(schedule)
        self._plan()

    def _save_run(self, schedule: Schedule) -> None:
        """Save when a schedule ran and runs next. In a cluster the leader does."""
        if not self._feed.is_shared:
            self._saved.put(schedule.name, msgspec.json.encode(schedule))
        elif self._feed.leads:
            self._saved_runs.put(schedule.name, msgspec.json.encode(schedule.run))
        self._push(schedule)
        self._plan()

    def _push(self, schedule: Schedule) -> None:
        """Enter the time of a schedule; its older entry is stale."""
        if _at(schedule) < NEVER:
            heapq.heappush(self._due, (_at(schedule), schedule.name))
        if len(self._due) > 2 * len(self._schedules) + _STALE_MOST:
            self._rebuild()

    def _rebuild(self) -> None:
        self._due = [(_at(schedule), name) for name, schedule in self._schedules.items() if _at(schedule) < NEVER]
        heapq.heapify(self._due)

    def _plan(self) -> None:
        self.at = self._next_at() if self._feed.leads else NEVER

    def _next_at(self) -> float:
        """The time of the first entry that is not stale, or NEVER."""
        while self._due:
            at, name = self._due[0]
            schedule = self._schedules.get(name)
            if schedule is not None and _at(schedule) == at:
                return at
            heapq.heappop(self._due)
        return NEVER

    def _follow_clock(self, now: float) -> None:
        for schedule in self._schedules.values():
            schedule.next_at = self._expressions[schedule.name].after(now)
            self._save(schedule)
        self._rebuild()
        self._plan()

    def _add(self, schedule: Schedule, expression: CronExpression) -> None:
        """List a schedule. Its function is not forgotten between two runs."""
        self._schedules[schedule.name], self._expressions[schedule.name] = schedule, expression
        kept = self._engine.kept_functions
        kept[schedule.function] = kept.get(schedule.function, 0) + 1

    def _let_go(self, schedule: Schedule) -> None:
        """The schedule is removed or replaced: it no longer keeps its function."""
        kept = self._engine.kept_functions
        kept[schedule.function] -= 1
        if not kept[schedule.function]:
            del kept[schedule.function]

    def _restore(self, slot: str, value: bytes) -> Schedule | None:
        try:
            schedule = msgspec.json.decode(value, type=Schedule)
            expression = CronExpression(schedule.expression, schedule.timezone, schedule.start)
        except (msgspec.MsgspecError, AdminError) as error:
            fields = {"place": slot, "why": str(error)}
            _log.error("schedule cannot be read and does not run", extra={"fields": fields})
            return None
        self._saved.assign(schedule.name, slot)
        if schedule.name in self._schedules:
            return None
        self._add(schedule, expression)
        return schedule

    def _restore_run(self, slot: str, value: bytes) -> None:
        try:
            run = msgspec.json.decode(value, type=ScheduleRun)
        except msgspec.MsgspecError:
            return  # written by another version: left as it is
        self._saved_runs.assign(run.name, slot)
        schedule = self._schedules.get(run.name)
        if schedule is not None:
            schedule.advance(run)

    # In a cluster

    def _values_changed(self, values: Mapping[str, bytes]) -> None:
        """Other servers have changed schedules, or the leader has submitted runs."""
        for slot, value in self._saved.changes(values):
            name = self._saved.name_of(slot) if not value else _name(value)
            old = self._schedules.get(name) if name is not None else None
            if old is not None:
                self._let_go(old)
                self._forget(old.name)
            schedule = self._restore(slot, value) if value else None
            if old is not None and schedule is not None:
                schedule.advance(old.run)
        for slot, value in self._saved_runs.changes(values):
            if value:
                self._restore_run(slot, value)
            else:
                self._saved_runs.name_of(slot)
        self._rebuild()
        self._plan()

    def _lead(self, leads: bool) -> None:
        """From now on this server submits the runs, or another one does."""
        self._rebuild()
        self._plan()


def _at(schedule: Schedule) -> float:
    return NEVER if schedule.paused or schedule.next_at is None else schedule.next_at


def _name(value: bytes) -> str | None:
    """The name of a schedule that was saved; None if it cannot be read."""
    try:
        return msgspec.json.decode(value, type=Schedule).name
    except msgspec.MsgspecError:
        return None


def _utc(time: float) -> str:
    return datetime.datetime.fromtimestamp(time, datetime.UTC).isoformat(timespec="seconds")
