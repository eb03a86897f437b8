"""Schedules: when they run, what a run is, and what a crash, a pause and a changed clock do to them."""

import asyncio
import datetime
import zoneinfo
from typing import Any

import pytest

from geartrain.admin import schedules
from geartrain.admin.schedules import Schedules
from geartrain.admin.service import Admin
from geartrain.cron import NAMES as CRON_NAMES
from geartrain.cron import CronExpression
from geartrain.engine.deadlines import NEVER
from geartrain.engine.engine import Engine
from geartrain.errors import AdminError
from geartrain.model import JobState
from geartrain.runtime.tick import TickLoop
from tests.unit.admin.conftest import NOW, FakeServer, SavingJournal, restarted
from tests.unit.engine.recording import claim, hire

MINUTE = 60.0


@pytest.fixture
def clock(engine: Engine, server: FakeServer) -> "Clock":
    return Clock(engine, server)


class Clock:
    def __init__(self, engine: Engine, server: FakeServer) -> None:
        self.engine, self.server = engine, server

    def go(self, seconds: float) -> None:
        """Let time pass, as the pulse would: with a tick at every deadline."""
        end = self.server.now + seconds
        while (due := self.engine.deadline()) <= end:
            self.server.now = max(due, self.server.now)
            self.engine.tick(self.server.now)
        self.server.now = end
        self.engine.tick(end)

    def jump(self, seconds: float) -> None:
        """Move the clock, which is noticed at the next tick."""
        self.server.now += seconds
        self.engine.tick(self.server.now)


def every_minute(admin: Admin, **changes: Any) -> None:
    admin.cron_set(**{"name": "tick", "expression": "* * * * *", "function": b"f", **changes})


def jobs(engine: Engine) -> list[tuple[bytes, bytes, int, str, bool]]:
    return [(job.function, job.payload, job.priority, job.door, job.background) for job in engine.jobs.values()]


def test_a_run_is_a_background_job(admin: Admin, engine: Engine, clock: Clock) -> None:
    every_minute(admin, payload=b"in", priority="high")
    clock.go(MINUTE - 1)
    assert jobs(engine) == []
    clock.go(1)
    assert jobs(engine) == [(b"f", b"in", 0, "cron", True)]
    (job,) = engine.jobs.values()
    view = admin.cron("tick")
    assert (view.last_at, view.last_handle, view.next_at) == (NOW + MINUTE, job.handle.decode(), NOW + 2 * MINUTE)
    clock.go(10 * MINUTE)
    assert len(engine.jobs) == 11


def test_a_run_and_the_next_time_are_journalled_together(
    admin: Admin, engine: Engine, journal: SavingJournal, clock: Clock
) -> None:
    every_minute(admin)
    journal.calls.clear()
    engine.tick(NOW + MINUTE)
    assert journal.calls == ["accepted", "saved"]


def test_schedules_survive_a_restart(admin: Admin, engine: Engine, server: FakeServer, journal: SavingJournal) -> None:
    every_minute(admin, payload=b"\xff", unique=True, timezone="Europe/Berlin")
    every_minute(admin, name="other", expression="0 3 * * 1")
    admin.cron_pause("other")
    _, again = restarted(engine, server, journal)
    assert asyncio.run(again.crons()) == asyncio.run(admin.crons())


def test_a_run_that_is_a_few_seconds_late_is_not_missed(
    admin: Admin, engine: Engine, server: FakeServer, journal: SavingJournal
) -> None:
    every_minute(admin, missed="skip")
    server.now += MINUTE + 30
    other, again = restarted(engine, server, journal)
    other.tick(server.now)
    assert len(other.jobs) == 1
    assert again.cron("tick").next_at == NOW + 2 * MINUTE


def test_missed_runs_are_skipped(
    admin: Admin, engine: Engine, server: FakeServer, journal: SavingJournal, caplog: pytest.LogCaptureFixture
) -> None:
    every_minute(admin, missed="skip")
    server.now += 3600 + 10
    other, again = restarted(engine, server, journal)
    other.tick(server.now)
    assert len(other.jobs) == 0
    assert again.cron("tick").next_at == server.now - 10 + MINUTE
    assert [entry.getMessage() for entry in caplog.records] == ["missed runs skipped"]
    Clock(other, server).go(MINUTE)
    assert len(other.jobs) == 1


@pytest.mark.parametrize("expression", ["* * * * *", "@every 1m"])
def test_all_missed_runs_are_submitted(
    admin: Admin, engine: Engine, server: FakeServer, journal: SavingJournal, expression: str
) -> None:
    every_minute(admin, missed="all", expression=expression)
    server.now += 5 * MINUTE + 10
    other, again = restarted(engine, server, journal)
    Clock(other, server).go(0)
    assert len(other.jobs) == 5
    assert again.cron("tick").next_at == NOW + 6 * MINUTE


@pytest.mark.parametrize("expression", ["* * * * *", "@every 1m"])
def test_only_the_last_missed_runs_are_submitted(
    admin: Admin,
    engine: Engine,
    server: FakeServer,
    journal: SavingJournal,
    expression: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    every_minute(admin, missed="all", expression=expression)
    server.now += 30 * 24 * 3600 + 10
    other, again = restarted(engine, server, journal)
    Clock(other, server).go(0)
    assert len(other.jobs) == schedules.MISSED_MOST
    assert again.cron("tick").next_at == server.now - 10 + MINUTE
    assert [entry.getMessage() for entry in caplog.records] == ["missed runs skipped"]


def test_a_crash_while_missed_runs_are_submitted_repeats_none(
    admin: Admin, engine: Engine, server: FakeServer, journal: SavingJournal
) -> None:
    every_minute(admin, missed="all")
    server.now += 5 * MINUTE
    other, _ = restarted(engine, server, journal)
    other.tick(server.now)
    submitted = len(other.jobs)
    assert 0 < submitted < 5
    another, _ = restarted(other, server, journal)
    Clock(another, server).go(0)
    assert len(another.jobs) == 5 - submitted


def test_an_interval_counts_from_when_it_was_set(
    admin: Admin, engine: Engine, server: FakeServer, journal: SavingJournal, clock: Clock
) -> None:
    clock.go(7)
    every_minute(admin, expression="@every 1h30m")
    assert admin.cron("tick").next_at == NOW + 7 + 5400
    clock.go(1000)
    every_minute(admin, expression="@every 1h30m", payload=b"new")
    assert admin.cron("tick").next_at == NOW + 7 + 5400
    server.now += 10_000
    other, again = restarted(engine, server, journal)
    other.tick(server.now)
    assert again.cron("tick").next_at == NOW + 7 + 3 * 5400


def test_jobs_of_a_schedule_expire(admin: Admin, engine: Engine, clock: Clock) -> None:
    every_minute(admin, expires=90.0)
    clock.go(10 * MINUTE)
    assert (len(engine.jobs), engine.outcomes.expired) == (2, 8)


def test_a_schedule_with_seconds(admin: Admin, engine: Engine, clock: Clock) -> None:
    every_minute(admin, expression="*/20 * * * * *")
    clock.go(MINUTE)
    assert len(engine.jobs) == 3


def test_missed_runs_become_one_run(admin: Admin, engine: Engine, server: FakeServer, journal: SavingJournal) -> None:
    every_minute(admin)
    server.now += 3 * 24 * 3600 + 10
    other, again = restarted(engine, server, journal)
    assert other.deadline() <= server.now
    other.tick(server.now)
    assert len(other.jobs) == 1
    assert again.cron("tick").next_at == server.now - 10 + MINUTE


def test_a_crash_before_the_commit_neither_loses_nor_repeats_a_run(
    admin: Admin, engine: Engine, server: FakeServer, journal: SavingJournal
) -> None:
    every_minute(admin)
    before = dict(journal.saved)
    server.now += MINUTE
    engine.tick(server.now)
    assert len(engine.jobs) == 1
    journal.saved = before  # neither the job nor the next time reached the disk
    other, _ = restarted(engine, server, journal)
    other.tick(server.now)
    assert len(other.jobs) == 1


@pytest.mark.parametrize("unique", [True, False])
def test_unique_skips_a_run_while_the_previous_job_has_not_ended(
    admin: Admin, engine: Engine, clock: Clock, unique: bool
) -> None:
    every_minute(admin, unique=unique)
    worker = hire(engine, b"f")
    clock.go(3 * MINUTE)
    assert len(engine.jobs) == (1 if unique else 3)
    job = claim(engine, worker)
    clock.go(MINUTE)
    assert len(engine.jobs) == (1 if unique else 4)
    engine.complete(worker, job, b"")
    clock.go(MINUTE)
    assert len(engine.jobs) == (1 if unique else 4)
    assert engine.find(job.handle) is None


def test_running_now_does_not_change_the_next_time(admin: Admin, engine: Engine, clock: Clock) -> None:
    every_minute(admin, unique=True)
    handle = admin.cron_run("tick")
    job = engine.find(handle)
    assert job is not None
    assert job.state is JobState.QUEUED
    assert admin.cron("tick").next_at == NOW + MINUTE
    with pytest.raises(AdminError, match="has not ended") as refused:
        admin.cron_run("tick")
    assert refused.value.kind == "conflict"


def test_runs_missed_while_paused_are_not_repeated(admin: Admin, engine: Engine, clock: Clock) -> None:
    every_minute(admin)
    admin.cron_pause("tick")
    assert admin.cron("tick").next_at is None
    clock.go(5 * MINUTE)
    admin.cron_resume("tick")
    clock.go(1)
    assert jobs(engine) == []
    clock.go(MINUTE)
    assert len(engine.jobs) == 1


def test_a_full_queue_skips_the_run(
    admin: Admin, engine: Engine, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    every_minute(admin)
    engine.limit(b"f", 1, 1, 1)
    clock.go(3 * MINUTE)
    assert len(engine.jobs) == 1
    assert [entry.getMessage() for entry in caplog.records] == ["scheduled run skipped"] * 2
    with pytest.raises(AdminError, match="full"):
        admin.cron_run("tick")


def test_a_run_that_cannot_be_made_durable_is_repeated(
    admin: Admin, engine: Engine, tick_loop: TickLoop, clock: Clock
) -> None:
    every_minute(admin, expression="1 8 * * *")
    tick_loop.durability.changed()
    clock.go(MINUTE)
    (job,) = engine.jobs.values()
    engine.retract(job)  # as the committer does before it tells who waits
    tick_loop.durability.end_commit(failed=True)
    assert jobs(engine) == []
    assert admin.cron("tick").last_at is None
    clock.go(5)
    assert len(engine.jobs) == 1
    tick_loop.durability.begin_commit()
    tick_loop.durability.end_commit(failed=False)
    clock.go(MINUTE)
    assert len(engine.jobs) == 1


def test_a_run_that_cannot_be_made_durable_is_left_to_the_next_leader(
    admin: Admin, engine: Engine, tick_loop: TickLoop, clock: Clock
) -> None:
    """A time that is set here passes, and the engine is called for it without end."""
    every_minute(admin, expression="1 8 * * *")
    tick_loop.durability.changed()
    clock.go(MINUTE)
    (job,) = engine.jobs.values()
    tick_loop.values.lead(False)
    engine.retract(job)
    tick_loop.durability.end_commit(failed=True)
    assert [timer.at for timer in engine.timers if isinstance(timer, Schedules)] == [NEVER]
    assert jobs(engine) == []


def test_a_run_that_a_worker_has_claimed_is_not_repeated(
    admin: Admin, engine: Engine, tick_loop: TickLoop, clock: Clock
) -> None:
    every_minute(admin, expression="1 8 * * *")
    tick_loop.durability.changed()
    worker = hire(engine, b"f")
    clock.go(MINUTE)
    job = claim(engine, worker)
    engine.retract(job)
    tick_loop.durability.end_commit(failed=True)
    engine.complete(worker, job, b"")
    clock.go(MINUTE)
    assert jobs(engine) == []


def test_replacing_a_schedule_keeps_its_last_run(admin: Admin, clock: Clock) -> None:
    every_minute(admin)
    clock.go(MINUTE)
    last = admin.cron("tick")
    every_minute(admin, payload=b"new")
    assert (admin.cron("tick").next_at, admin.cron("tick").last_at) == (last.next_at, last.last_at)
    every_minute(admin, expression="0 9 * * *")
    assert admin.cron("tick").next_at == NOW + 3600
    assert admin.cron("tick").last_handle == last.last_handle


def test_removed_schedules_do_not_run_and_are_not_saved(
    admin: Admin, engine: Engine, server: FakeServer, journal: SavingJournal, clock: Clock
) -> None:
    for number in range(50):
        every_minute(admin, name=f"name {number}")
        admin.cron_remove(f"name {number}")
    clock.go(MINUTE)
    assert jobs(engine) == []
    assert len(journal.saved) == 1, "one place, used again and again"
    assert asyncio.run(restarted(engine, server, journal)[1].crons()) == []


def test_a_clock_set_back_a_little_repeats_no_run(admin: Admin, engine: Engine, clock: Clock) -> None:
    every_minute(admin)
    clock.go(MINUTE)
    clock.jump(-30 * MINUTE)
    clock.go(30 * MINUTE)
    assert len(engine.jobs) == 1
    clock.go(MINUTE)
    assert len(engine.jobs) == 2


def test_schedules_follow_a_clock_set_back_by_hours(admin: Admin, engine: Engine, clock: Clock) -> None:
    every_minute(admin)
    clock.jump(365 * 24 * 3600)
    assert len(engine.jobs) == 1
    clock.jump(-365 * 24 * 3600)
    clock.go(3 * MINUTE)
    assert len(engine.jobs) == 4


def test_many_due_schedules_all_run(admin: Admin, engine: Engine, clock: Clock) -> None:
    count = schedules._RUNS_PER_TICK + 7
    for number in range(count):
        every_minute(admin, name=str(number), expression="1 8 * * *")
    clock.go(MINUTE)
    assert len(engine.jobs) == count


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"expression": "* * * *"}, "five fields"),
        ({"expression": "* * * * * * *"}, "five fields"),
        ({"expression": "@fortnightly"}, "a name such as @hourly"),
        ({"expression": "61 * * * *"}, "the minute is '61'; a minute is 0 to 59"),
        ({"expression": "75 * * * * *"}, "the second is '75'"),
        ({"expression": "* * * * MOO"}, "the day-of-week is 'MOO'"),
        ({"expression": "@every"}, "1s to 366d"),
        ({"expression": "@every 0s"}, "1s to 366d"),
        ({"expression": "@every 15"}, "1s to 366d"),
        ({"expression": "@every 500ms"}, "1s to 366d"),
        ({"expression": "@every 30m1h"}, "1s to 366d"),
        ({"expression": "@every 367d"}, "1s to 366d"),
        ({"expires": -1.0}, "expires must be"),
        ({"missed": "twice"}, "unknown policy 'twice' for missed runs"),
        ({"expression": "0 0 30 2 *"}, "not a cron expression"),
        ({"timezone": "Europe/Atlantis"}, "no time zone"),
        ({"timezone": "../../etc/passwd"}, "no time zone"),
        ({"timezone": "Europe"}, "no time zone"),
        ({"timezone": ""}, "no time zone"),
        ({"name": ""}, "printable"),
        ({"name": "a\nb"}, "printable"),
        ({"name": "x" * 201}, "printable"),
        ({"function": b""}, "needs a function"),
        ({"payload": b"x" * (1024 * 1024 + 1)}, "larger than"),
        ({"priority": "urgent"}, "unknown priority 'urgent'"),
    ],
)
def test_invalid_arguments_are_refused(admin: Admin, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(AdminError, match=words) as refused:
        every_minute(admin, **changes)
    assert refused.value.kind == "bad-request"
    assert asyncio.run(admin.crons()) == []


def test_an_unreadable_schedule_is_logged_and_left_in_the_store(
    engine: Engine, server: FakeServer, journal: SavingJournal, caplog: pytest.LogCaptureFixture
) -> None:
    journal.saved = {"cron.0": b'{"from": "the future"}'}
    _, admin = restarted(engine, server, journal)
    assert asyncio.run(admin.crons()) == []
    assert [entry.getMessage() for entry in caplog.records] == ["schedule cannot be read and does not run"]
    every_minute(admin)
    assert journal.saved["cron.0"] == b'{"from": "the future"}'
    assert "cron.1" in journal.saved


def moments(expression: str, zone: str, start: datetime.datetime, count: int) -> list[str]:
    calendar = CronExpression(expression, zone)
    at = start.replace(tzinfo=zoneinfo.ZoneInfo(zone)).timestamp()
    found = []
    for _ in range(count):
        following = calendar.after(at)
        assert following is not None
        at = following
        found.append(datetime.datetime.fromtimestamp(at, zoneinfo.ZoneInfo(zone)).isoformat())
    return found


def test_daylight_saving_time() -> None:
    """A daily time that does not exist comes an hour later, one that comes twice is taken once."""
    spring = moments("30 2 * * *", "Europe/Berlin", datetime.datetime(2026, 3, 28, 12), 2)
    assert spring == ["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"]
    autumn = moments("30 2 * * *", "Europe/Berlin", datetime.datetime(2026, 10, 24, 12), 2)
    assert autumn == ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"]


def test_daylight_saving_time_with_seconds() -> None:
    spring = moments("15 30 2 * * *", "Europe/Berlin", datetime.datetime(2026, 3, 28, 12), 2)
    assert spring == ["2026-03-29T03:00:15+02:00", "2026-03-30T02:30:15+02:00"]
    autumn = moments("15 30 2 * * *", "Europe/Berlin", datetime.datetime(2026, 10, 24, 12), 2)
    assert autumn == ["2026-10-25T02:30:15+02:00", "2026-10-26T02:30:15+01:00"]


def test_an_expression_with_a_star_follows_the_clock_through_both_equal_hours() -> None:
    autumn = moments("30 * * * *", "Europe/Berlin", datetime.datetime(2026, 10, 25, 1, 45), 3)
    assert autumn == ["2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-25T03:30:00+01:00"]
    spring = moments("@hourly", "Europe/Berlin", datetime.datetime(2026, 3, 29, 0, 30), 3)
    assert spring == ["2026-03-29T01:00:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T04:00:00+02:00"]


def test_an_interval_ignores_daylight_saving_time() -> None:
    spring = moments("@every 1h", "Europe/Berlin", datetime.datetime(2026, 3, 29, 0, 30), 3)
    assert spring == ["2026-03-29T01:00:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T04:00:00+02:00"]


def test_a_time_that_passed_in_the_first_of_two_equal_hours_does_not_match_again() -> None:
    second_hour = datetime.datetime(2026, 10, 25, 2, 10, fold=1)
    assert moments("30 2 * * *", "Europe/Berlin", second_hour, 1) == ["2026-10-26T02:30:00+01:00"]


@pytest.mark.parametrize("name", CRON_NAMES)
def test_names_stand_for_fields(name: str) -> None:
    for moment in (0.0, NOW):
        assert CronExpression(name).after(moment) == CronExpression(CRON_NAMES[name]).after(moment)
        assert CronExpression(name.upper()).after(moment) == CronExpression(name).after(moment)


@pytest.mark.parametrize("expression", ["*/7 * * * *", "10 3 * * *", "@every 11s", "5 */10 4 * * *"])
def test_the_last_matches_before_a_time(expression: str) -> None:
    times = CronExpression(expression, "Europe/Berlin")
    at = first = times.after(NOW)
    matches = []
    while at is not None and len(matches) < 10:
        matches.append(at)
        at = times.after(at)
    assert first is not None
    assert [times.last_before(matches[-1], count) for count in (1, 4, 10)] == [matches[-1], matches[-4], matches[0]]
    assert times.last_before(matches[-1] - 1, 1) == matches[-2]


def test_time_zones() -> None:
    assert CronExpression("0 9 * * *").after(NOW) == NOW + 3600
    assert CronExpression("0 9 * * *", "Europe/Berlin").after(NOW) == NOW + 24 * 3600


def test_a_run_does_not_visit_the_other_schedules(
    admin: Admin, engine: Engine, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(300):
        every_minute(admin, name=f"yearly {number}", expression="0 0 1 1 *")
    every_minute(admin)
    visited: list[str] = []
    at = schedules._at

    def record(schedule: schedules.Schedule) -> float:
        visited.append(schedule.name)
        return at(schedule)

    monkeypatch.setattr(schedules, "_at", record)
    clock.go(10 * MINUTE)
    assert len(jobs(engine)) == 10
    assert len(visited) < 300


def test_a_schedule_that_is_set_again_and_again_runs_once(admin: Admin, engine: Engine, clock: Clock) -> None:
    for _ in range(500):
        every_minute(admin)
    admin.cron_pause("tick")
    admin.cron_resume("tick")
    assert len(admin._schedules._due) < 100
    clock.go(MINUTE)
    assert len(jobs(engine)) == 1


def test_a_schedule_keeps_its_function(admin: Admin, engine: Engine) -> None:
    every_minute(admin)
    every_minute(admin, name="other", function=b"f")
    every_minute(admin, function=b"g")
    function = engine.function(b"f")
    assert not engine.is_unused(function)
    admin.cron_remove("other")
    assert engine.is_unused(function)
    assert list(engine.kept_functions) == [b"g"]
