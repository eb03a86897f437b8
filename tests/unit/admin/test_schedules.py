"""Schedules: when they run, what a run is, and what becomes of them in a crash, a pause and a moved clock."""

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
from tests.unit.admin.conftest import NOW, FakeSite, Keeper, restarted
from tests.unit.engine.recording import claim, hire

MINUTE = 60.0


@pytest.fixture
def clock(engine: Engine, server: FakeSite) -> "Clock":
    return Clock(engine, server)


class Clock:
    def __init__(self, engine: Engine, server: FakeSite) -> None:
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
    admin: Admin, engine: Engine, keeper: Keeper, clock: Clock
) -> None:
    every_minute(admin)
    keeper.calls.clear()
    engine.tick(NOW + MINUTE)
    assert keeper.calls == ["accepted", "kept"]


def test_schedules_outlive_a_restart(admin: Admin, engine: Engine, server: FakeSite, keeper: Keeper) -> None:
    every_minute(admin, payload=b"\xff", unique=True, timezone="Europe/Berlin")
    every_minute(admin, name="other", expression="0 3 * * 1")
    admin.cron_pause("other")
    _, again = restarted(engine, server, keeper)
    assert again.crons() == admin.crons()


def test_runs_that_were_missed_are_one(admin: Admin, engine: Engine, server: FakeSite, keeper: Keeper) -> None:
    every_minute(admin)
    server.now += 3 * 24 * 3600 + 10
    other, again = restarted(engine, server, keeper)
    assert other.deadline() <= server.now
    other.tick(server.now)
    assert len(other.jobs) == 1
    assert again.cron("tick").next_at == server.now - 10 + MINUTE


def test_a_crash_before_the_commit_loses_and_doubles_nothing(
    admin: Admin, engine: Engine, server: FakeSite, keeper: Keeper
) -> None:
    every_minute(admin)
    before = dict(keeper.kept)
    server.now += MINUTE
    engine.tick(server.now)
    assert len(engine.jobs) == 1
    keeper.kept = before  # neither the job nor the next time reached the disk
    other, _ = restarted(engine, server, keeper)
    other.tick(server.now)
    assert len(other.jobs) == 1


@pytest.mark.parametrize("unique", [True, False])
def test_unique_leaves_a_run_out_while_the_last_is_not_over(
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


def test_running_one_now_changes_no_time(admin: Admin, engine: Engine, clock: Clock) -> None:
    every_minute(admin, unique=True)
    handle = admin.cron_run("tick")
    job = engine.find(handle)
    assert job is not None
    assert job.state is JobState.QUEUED
    assert admin.cron("tick").next_at == NOW + MINUTE
    with pytest.raises(AdminError, match="has not ended") as refused:
        admin.cron_run("tick")
    assert refused.value.kind == "conflict"


def test_a_pause_is_not_made_up_for(admin: Admin, engine: Engine, clock: Clock) -> None:
    every_minute(admin)
    admin.cron_pause("tick")
    assert admin.cron("tick").next_at is None
    clock.go(5 * MINUTE)
    admin.cron_resume("tick")
    clock.go(1)
    assert jobs(engine) == []
    clock.go(MINUTE)
    assert len(engine.jobs) == 1


def test_a_full_queue_leaves_a_run_out(
    admin: Admin, engine: Engine, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    every_minute(admin)
    engine.limit(b"f", 1, 1, 1)
    clock.go(3 * MINUTE)
    assert len(engine.jobs) == 1
    assert [entry.getMessage() for entry in caplog.records] == ["scheduled run skipped"] * 2
    with pytest.raises(AdminError, match="full"):
        admin.cron_run("tick")


def test_a_run_that_cannot_be_made_durable_is_tried_again(
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


def test_a_run_that_was_begun_with_is_not_tried_again(
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


def test_changing_keeps_the_past(admin: Admin, clock: Clock) -> None:
    every_minute(admin)
    clock.go(MINUTE)
    last = admin.cron("tick")
    every_minute(admin, payload=b"new")
    assert (admin.cron("tick").next_at, admin.cron("tick").last_at) == (last.next_at, last.last_at)
    every_minute(admin, expression="0 9 * * *")
    assert admin.cron("tick").next_at == NOW + 3600
    assert admin.cron("tick").last_handle == last.last_handle


def test_removed_ones_run_no_more_and_leave_no_trace(
    admin: Admin, engine: Engine, server: FakeSite, keeper: Keeper, clock: Clock
) -> None:
    for number in range(50):
        every_minute(admin, name=f"name {number}")
        admin.cron_remove(f"name {number}")
    clock.go(MINUTE)
    assert jobs(engine) == []
    assert len(keeper.kept) == 1, "one place, used again and again"
    assert restarted(engine, server, keeper)[1].crons() == []


def test_a_clock_moved_back_a_little_repeats_nothing(admin: Admin, engine: Engine, clock: Clock) -> None:
    every_minute(admin)
    clock.go(MINUTE)
    clock.jump(-30 * MINUTE)
    clock.go(30 * MINUTE)
    assert len(engine.jobs) == 1
    clock.go(MINUTE)
    assert len(engine.jobs) == 2


def test_a_clock_that_was_far_ahead_is_followed(admin: Admin, engine: Engine, clock: Clock) -> None:
    every_minute(admin)
    clock.jump(365 * 24 * 3600)
    assert len(engine.jobs) == 1
    clock.jump(-365 * 24 * 3600)
    clock.go(3 * MINUTE)
    assert len(engine.jobs) == 4


def test_many_at_once_are_all_run(admin: Admin, engine: Engine, clock: Clock) -> None:
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
        ({"expression": "0 0 30 2 *"}, "no cron expression"),
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
def test_nonsense_is_refused(admin: Admin, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(AdminError, match=words) as refused:
        every_minute(admin, **changes)
    assert refused.value.kind == "bad-request"
    assert admin.crons() == []


def test_a_schedule_that_cannot_be_read_is_reported_and_left_alone(
    engine: Engine, server: FakeSite, keeper: Keeper, caplog: pytest.LogCaptureFixture
) -> None:
    keeper.kept = {"cron.0": b'{"from": "the future"}'}
    _, admin = restarted(engine, server, keeper)
    assert admin.crons() == []
    assert [entry.getMessage() for entry in caplog.records] == ["schedule cannot be read and does not run"]
    every_minute(admin)
    assert keeper.kept["cron.0"] == b'{"from": "the future"}'
    assert "cron.1" in keeper.kept


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


def test_summer_time() -> None:
    """A daily time that does not exist comes an hour later, one that comes twice is taken once."""
    spring = moments("30 2 * * *", "Europe/Berlin", datetime.datetime(2026, 3, 28, 12), 2)
    assert spring == ["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"]
    autumn = moments("30 2 * * *", "Europe/Berlin", datetime.datetime(2026, 10, 24, 12), 2)
    assert autumn == ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"]


def test_zones_differ() -> None:
    assert CronExpression("0 9 * * *").after(NOW) == NOW + 3600
    assert CronExpression("0 9 * * *", "Europe/Berlin").after(NOW) == NOW + 24 * 3600
