"""Schedules: when they run, what a run is, and what becomes of them in a crash, a pause and a moved clock."""

import datetime
import zoneinfo
from typing import Any

import pytest

from geartrain.engine.engine import Engine
from geartrain.errors import SteeringError
from geartrain.model import JobState
from geartrain.steering import crons
from geartrain.steering.calendar import Calendar
from geartrain.steering.steward import Steward
from tests.unit.engine.recording import claim, hire
from tests.unit.steering.conftest import NOW, FakeSite, Keeper, restarted

MINUTE = 60.0


@pytest.fixture
def clock(engine: Engine, site: FakeSite) -> "Clock":
    return Clock(engine, site)


class Clock:
    def __init__(self, engine: Engine, site: FakeSite) -> None:
        self.engine, self.site = engine, site

    def go(self, seconds: float) -> None:
        """Let time pass, as the pulse would: with a tick at every deadline."""
        end = self.site.now + seconds
        while (due := self.engine.deadline()) <= end:
            self.site.now = max(due, self.site.now)
            self.engine.tick(self.site.now)
        self.site.now = end
        self.engine.tick(end)

    def jump(self, seconds: float) -> None:
        """Move the clock, which is noticed at the next tick."""
        self.site.now += seconds
        self.engine.tick(self.site.now)


def every_minute(steward: Steward, **changes: Any) -> None:
    steward.cron_set(**{"name": "tick", "expression": "* * * * *", "function": b"f", **changes})


def jobs(engine: Engine) -> list[tuple[bytes, bytes, int, str, bool]]:
    return [(job.function, job.payload, job.priority, job.door, job.background) for job in engine.jobs.values()]


def test_a_run_is_a_background_job(steward: Steward, engine: Engine, clock: Clock) -> None:
    every_minute(steward, payload=b"in", priority="high")
    clock.go(MINUTE - 1)
    assert jobs(engine) == []
    clock.go(1)
    assert jobs(engine) == [(b"f", b"in", 0, "cron", True)]
    (job,) = engine.jobs.values()
    view = steward.cron("tick")
    assert (view.last_at, view.last_handle, view.next_at) == (NOW + MINUTE, job.handle.decode(), NOW + 2 * MINUTE)
    clock.go(10 * MINUTE)
    assert len(engine.jobs) == 11


def test_a_run_and_the_next_time_are_journalled_together(
    steward: Steward, engine: Engine, keeper: Keeper, clock: Clock
) -> None:
    every_minute(steward)
    keeper.calls.clear()
    engine.tick(NOW + MINUTE)
    assert keeper.calls == ["accepted", "kept"]


def test_schedules_outlive_a_restart(steward: Steward, engine: Engine, site: FakeSite, keeper: Keeper) -> None:
    every_minute(steward, payload=b"\xff", unique=True, timezone="Europe/Berlin")
    every_minute(steward, name="other", expression="0 3 * * 1")
    steward.cron_pause("other")
    _, again = restarted(engine, site, keeper)
    assert again.crons() == steward.crons()


def test_runs_that_were_missed_are_one(steward: Steward, engine: Engine, site: FakeSite, keeper: Keeper) -> None:
    every_minute(steward)
    site.now += 3 * 24 * 3600 + 10
    other, again = restarted(engine, site, keeper)
    assert other.deadline() <= site.now
    other.tick(site.now)
    assert len(other.jobs) == 1
    assert again.cron("tick").next_at == site.now - 10 + MINUTE


def test_a_crash_before_the_commit_loses_and_doubles_nothing(
    steward: Steward, engine: Engine, site: FakeSite, keeper: Keeper
) -> None:
    every_minute(steward)
    before = dict(keeper.kept)
    site.now += MINUTE
    engine.tick(site.now)
    assert len(engine.jobs) == 1
    keeper.kept = before  # neither the job nor the next time reached the disk
    other, _ = restarted(engine, site, keeper)
    other.tick(site.now)
    assert len(other.jobs) == 1


@pytest.mark.parametrize("unique", [True, False])
def test_unique_leaves_a_run_out_while_the_last_is_not_over(
    steward: Steward, engine: Engine, clock: Clock, unique: bool
) -> None:
    every_minute(steward, unique=unique)
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


def test_running_one_now_changes_no_time(steward: Steward, engine: Engine, clock: Clock) -> None:
    every_minute(steward, unique=True)
    handle = steward.cron_run("tick")
    job = engine.find(handle)
    assert job is not None
    assert job.state is JobState.QUEUED
    assert steward.cron("tick").next_at == NOW + MINUTE
    with pytest.raises(SteeringError, match="not over") as refused:
        steward.cron_run("tick")
    assert refused.value.kind == "conflict"


def test_a_pause_is_not_made_up_for(steward: Steward, engine: Engine, clock: Clock) -> None:
    every_minute(steward)
    steward.cron_pause("tick")
    assert steward.cron("tick").next_at is None
    clock.go(5 * MINUTE)
    steward.cron_resume("tick")
    clock.go(1)
    assert jobs(engine) == []
    clock.go(MINUTE)
    assert len(engine.jobs) == 1


def test_a_full_queue_leaves_a_run_out(
    steward: Steward, engine: Engine, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    every_minute(steward)
    engine.limit(b"f", 1, 1, 1)
    clock.go(3 * MINUTE)
    assert len(engine.jobs) == 1
    assert [entry.getMessage() for entry in caplog.records] == ["a run was left out"] * 2
    with pytest.raises(SteeringError, match="full"):
        steward.cron_run("tick")


def test_a_run_that_cannot_be_made_durable_is_tried_again(
    steward: Steward, engine: Engine, site: FakeSite, clock: Clock
) -> None:
    every_minute(steward, expression="1 8 * * *")
    site.slow = True
    clock.go(MINUTE)
    (job,) = engine.jobs.values()
    engine.retract(job)  # as the committer does before it tells who waits
    site.settle(failed=True)
    assert jobs(engine) == []
    assert steward.cron("tick").last_at is None
    clock.go(5)
    assert len(engine.jobs) == 1
    site.settle()
    clock.go(MINUTE)
    assert len(engine.jobs) == 1


def test_a_run_that_was_begun_with_is_not_tried_again(
    steward: Steward, engine: Engine, site: FakeSite, clock: Clock
) -> None:
    every_minute(steward, expression="1 8 * * *")
    site.slow = True
    worker = hire(engine, b"f")
    clock.go(MINUTE)
    job = claim(engine, worker)
    engine.retract(job)
    site.settle(failed=True)
    engine.complete(worker, job, b"")
    clock.go(MINUTE)
    assert jobs(engine) == []


def test_changing_keeps_the_past(steward: Steward, clock: Clock) -> None:
    every_minute(steward)
    clock.go(MINUTE)
    last = steward.cron("tick")
    every_minute(steward, payload=b"new")
    assert (steward.cron("tick").next_at, steward.cron("tick").last_at) == (last.next_at, last.last_at)
    every_minute(steward, expression="0 9 * * *")
    assert steward.cron("tick").next_at == NOW + 3600
    assert steward.cron("tick").last_handle == last.last_handle


def test_removed_ones_run_no_more_and_leave_no_trace(
    steward: Steward, engine: Engine, site: FakeSite, keeper: Keeper, clock: Clock
) -> None:
    for number in range(50):
        every_minute(steward, name=f"name {number}")
        steward.cron_remove(f"name {number}")
    clock.go(MINUTE)
    assert jobs(engine) == []
    assert len(keeper.kept) == 1, "one place, used again and again"
    assert restarted(engine, site, keeper)[1].crons() == []


def test_a_clock_moved_back_a_little_repeats_nothing(steward: Steward, engine: Engine, clock: Clock) -> None:
    every_minute(steward)
    clock.go(MINUTE)
    clock.jump(-30 * MINUTE)
    clock.go(30 * MINUTE)
    assert len(engine.jobs) == 1
    clock.go(MINUTE)
    assert len(engine.jobs) == 2


def test_a_clock_that_was_far_ahead_is_followed(steward: Steward, engine: Engine, clock: Clock) -> None:
    every_minute(steward)
    clock.jump(365 * 24 * 3600)
    assert len(engine.jobs) == 1
    clock.jump(-365 * 24 * 3600)
    clock.go(3 * MINUTE)
    assert len(engine.jobs) == 4


def test_many_at_once_are_all_run(steward: Steward, engine: Engine, clock: Clock) -> None:
    count = crons._FIRED_AT_ONCE + 7
    for number in range(count):
        every_minute(steward, name=str(number), expression="1 8 * * *")
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
        ({"payload": b"x" * (1024 * 1024 + 1)}, "at most"),
        ({"priority": "urgent"}, "no priority 'urgent'"),
    ],
)
def test_nonsense_is_refused(steward: Steward, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(SteeringError, match=words) as refused:
        every_minute(steward, **changes)
    assert refused.value.kind == "bad-request"
    assert steward.crons() == []


def test_a_schedule_that_cannot_be_read_is_reported_and_left_alone(
    engine: Engine, site: FakeSite, keeper: Keeper, caplog: pytest.LogCaptureFixture
) -> None:
    keeper.kept = {"cron.0": b'{"from": "the future"}'}
    _, steward = restarted(engine, site, keeper)
    assert steward.crons() == []
    assert [entry.getMessage() for entry in caplog.records] == ["a schedule cannot be read, and does not run"]
    every_minute(steward)
    assert keeper.kept["cron.0"] == b'{"from": "the future"}'
    assert "cron.1" in keeper.kept


def moments(expression: str, zone: str, start: datetime.datetime, count: int) -> list[str]:
    calendar = Calendar(expression, zone)
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
    assert Calendar("0 9 * * *").after(NOW) == NOW + 3600
    assert Calendar("0 9 * * *", "Europe/Berlin").after(NOW) == NOW + 24 * 3600
