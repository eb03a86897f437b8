"""Long lists let others run between their slices, and are the same as lists that are made at once."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from geartrain.admin import loop_break, schedules
from geartrain.admin.service import Admin
from geartrain.engine.engine import Engine
from geartrain.errors import AdminError
from geartrain.job_query import JobQuery
from tests.unit.engine.recording import hire

MANY = 4 * loop_break.SLICE


def fill(engine: Engine, admin: Admin) -> None:
    for number in range(MANY):
        engine.submit(b"f%d" % number, background=True)
        hire(engine, b"f", name=b"bob %d" % number)
        admin.cron_set(f"schedule {number}", "0 0 * * *", b"f")


@pytest.mark.parametrize(
    "listing",
    [
        lambda admin: admin.jobs(JobQuery.parse(limit=1000)),
        lambda admin: admin.functions(limit=1000),
        lambda admin: admin.functions(search="nothing has this"),
        lambda admin: admin.workers(limit=1000),
        lambda admin: admin.workers(search="nothing has this"),
        lambda admin: admin.crons(),
    ],
    ids=["jobs", "functions", "no function", "workers", "no worker", "schedules"],
)
def test_others_run_while_a_long_list_is_made(
    admin: Admin,
    engine: Engine,
    listing: Callable[[Admin], Coroutine[Any, Any, object]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop_break, "_SLICE_SECONDS", -1.0)  # every break is taken
    fill(engine, admin)

    async def turns() -> int:
        count = 0
        task = asyncio.ensure_future(listing(admin))
        while not task.done():
            await asyncio.sleep(0)
            count += 1
        return count

    assert asyncio.run(turns()) >= MANY // loop_break.SLICE


def test_pages_are_those_of_a_sorted_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_break, "_RUN", 7)
    numbers = random.Random(1).choices(range(50), k=100)

    async def check() -> None:
        for start, stop in [(0, 0), (0, 10), (0, 1000), (93, 103), (100, 110), (200, 210)]:
            page = await loop_break.page_of(numbers, lambda number: -number, start, stop)
            assert page == sorted(numbers, reverse=True)[start:stop]
        assert await loop_break.select(numbers, lambda number: number > 20) == [n for n in numbers if n > 20]
        assert await loop_break.select(numbers, lambda number: number > 20, 3) == [n for n in numbers if n > 20][:3]

    asyncio.run(check())


def test_the_payloads_of_all_schedules_are_bounded(admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "PAYLOADS_MOST", 100)
    admin.cron_set("one", "0 0 * * *", b"f", bytes(60))
    with pytest.raises(AdminError, match="at most 100 bytes"):
        admin.cron_set("two", "0 0 * * *", b"f", bytes(60))
    admin.cron_set("one", "0 0 * * *", b"f", bytes(90))
    assert [view.name for view in asyncio.run(admin.crons())] == ["one"]
