"""Schedules: when they run, what a run is, and what a crash, a pause and a changed clock do to them."""

import datetime
import zoneinfo
from typing import Any

import pytest

from geartrain.admin import schedules
from geartrain.admin.service import Admin
from geartrain.cron import CronExpression
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
    assert again.crons() == admin.crons()


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
    assert restarted(engine, server, journal)[1].crons() == []


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
        ({"expression": "* * * * * *"}, "five fields"),
        ({"expression": "@daily"}, "five fields"),
        ({"expression": "61 * * * *"}, "Bad minute"),
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
    assert admin.crons() == []


def test_an_unreadable_schedule_is_logged_and_left_in_the_store(
    engine: Engine, server: FakeServer, journal: SavingJournal, caplog: pytest.LogCaptureFixture
) -> None:
    journal.saved = {"cron.0": b'{"from": "the future"}'}
    _, admin = restarted(engine, server, journal)
    assert admin.crons() == []
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
