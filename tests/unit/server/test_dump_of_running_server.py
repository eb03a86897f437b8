"""Dumps of a running server, in pages, and loading one into a server with the memory store."""

import asyncio
import json
import math
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from geartrain.admin.views import LoadView
from geartrain.engine.engine import Engine, PollingWorker
from geartrain.engine.job import LiveJob
from geartrain.engine.policy import Policy
from geartrain.errors import AdminError
from geartrain.maintenance import running_server
from geartrain.model import JobState
from geartrain.runtime.memory_journal import MemoryJournal
from geartrain.runtime.records import RecordChanges, StoreArchive
from geartrain.runtime.tick import TickLoop
from geartrain.server import dump_pages
from geartrain.server.dump_loader import DumpLoader
from geartrain.server.dump_pages import DumpPages
from geartrain.store import dump
from geartrain.store.contract import Query, Quota, ResultLimits, Retention
from geartrain.store.memory import MemoryStore
from tests.contract.stores.factories import NOW, job, record

KEEP = Retention(Quota(math.inf, 100), Quota(math.inf, 100))


class Scene:
    """An engine with the memory store, and the verbs as a client calls them."""

    def __init__(self, policy: Policy | None = None) -> None:
        store = self.store = MemoryStore(ResultLimits())
        journal = MemoryJournal(store, KEEP)
        self.engine = journal.engine = Engine(policy, b"H:t", 1, journal)
        self.tick_loop = TickLoop(asyncio.get_running_loop(), self.engine, lambda: NOW)
        self.pages = DumpPages(self.tick_loop, store, StoreArchive(store, RecordChanges()))
        self.loader = DumpLoader(self.tick_loop, store, journal)
        self.worker = PollingWorker("test")
        self.engine.register(self.worker, b"f")
        self.values: dict[str, bytes] = {}
        self.asked = 0

    def submit(self, count: int = 1, **more: Any) -> list[LiveJob]:
        return [self.engine.submit(b"f", background=True, **more) for _ in range(count)]

    def fail(self) -> LiveJob:
        found = self.engine.claim(self.worker)
        assert found is not None
        self.engine.fail(self.worker, found)
        return found

    async def ask(self, verb: str, part: str, dump: str = "", after: str = "") -> dict[str, Any]:
        assert verb == "dump"
        self.asked += 1
        page = self.pages.begin() if part == "header" else await self.pages.page(part, int(dump), int(after or 0))
        return {"lines": page.lines, "after": page.after, "skipped": page.skipped}

    async def dump(self, records: bool = False) -> list[dict[str, Any]]:
        lines: list[bytes] = []
        await running_server.write_dump(self.ask, records, lines.append, pytest.fail, lambda count: None)
        assert list(dump.DumpReader().read(lines)) is not None
        return [json.loads(line) for line in lines]

    async def load(self, *lines: bytes, replace: bool = False) -> LoadView:
        return await self.loader.load(b"".join(lines), replace, self._load_value)

    def _load_value(self, name: str, value: bytes, replace: bool) -> tuple[bool, bool]:
        was_there = name in self.values
        self.values.setdefault(name, value)
        return not was_there, was_there


def play(story: Callable[[Scene], Awaitable[None]], **more: Any) -> None:
    async def run() -> None:
        scene = Scene(**more)
        await story(scene)
        scene.tick_loop.close()

    asyncio.run(run())


def ids(lines: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(line["geartrain"], line["id"]) for line in lines if "id" in line]


def whole(*lines: bytes, jobs: int = 0, records: int = 0, values: int = 0, next_id: int = 50) -> tuple[bytes, ...]:
    return dump.header(NOW, next_id), *lines, dump.end(jobs, records, values)


def test_pages_are_small_and_have_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dump_pages, "PAGE_BYTES", 1500)
    monkeypatch.setattr(dump_pages, "RECORDS_READ", 4)

    async def story(s: Scene) -> None:
        made = s.submit(40)
        for _ in range(10):
            s.fail()
        for _ in range(5):
            found = s.engine.claim(s.worker)
            assert found is not None
            s.engine.complete(s.worker, found, b"done")
        expected = [*(("job", found.id) for found in made[15:])]
        assert ids(await s.dump()) == [*expected, *(("record", id) for id in range(10, 0, -1))]
        assert s.asked > 10
        assert ids(await s.dump(records=True)) == [*expected, *(("record", id) for id in range(15, 0, -1))]

    play(story)


def test_foreground_jobs_and_later_ones_are_left_out() -> None:
    async def story(s: Scene) -> None:
        s.submit(2)
        s.engine.submit(b"f")
        header = await s.ask("dump", "header")
        s.submit(3)
        page = await s.ask("dump", "jobs", header["after"])
        assert ids([json.loads(line) for line in page["lines"].splitlines()]) == [("job", 1), ("job", 2)]

    play(story)


def test_a_job_that_is_retried_before_its_record_is_read() -> None:
    """It has failed while the jobs are read, waits while the records are, and has failed again at the end."""

    async def story(s: Scene) -> None:
        (made,) = s.submit()
        s.fail()
        header = await s.ask("dump", "header")
        assert (await s.ask("dump", "jobs", header["after"]))["lines"] == ""
        (kept,) = s.store.failed_jobs([made.id], LiveJob, 0)
        assert kept is not None
        s.engine.retry_failed(kept)
        assert (await s.ask("dump", "failed", header["after"]))["lines"] == ""
        s.fail()
        page = await s.ask("dump", "retried", header["after"])
        assert ids([json.loads(page["lines"])]) == [("record", made.id)]
        assert page["after"] == ""
        assert s.engine.observer is None
        with pytest.raises(AdminError, match="there is no dump 1"):
            await s.ask("dump", "retried", header["after"])

    play(story)


def test_dumps_that_are_not_asked_for_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(s: Scene) -> None:
        for _ in range(dump_pages.DUMPS_MOST):
            s.pages.begin()
        with pytest.raises(AdminError, match="4 dumps are being made"):
            s.pages.begin()
        s.pages._end(1)
        monkeypatch.setattr(dump_pages, "FORGET_SECONDS", 0.0)
        s.pages.begin()
        while 5 in s.pages._dumps:
            await asyncio.sleep(0.001)
        assert list(s.pages._dumps) == [2, 3, 4]

    play(story)


def test_loaded_jobs_have_their_order_and_later_ids() -> None:
    async def story(s: Scene) -> None:
        entries = [job(9, function=b"f", run_at=NOW - 5), job(3, function=b"f", run_at=NOW - 1)]
        entries += [job(4, function=b"f", run_at=NOW + 60), job(5, function=b"f", state=JobState.DEAD)]
        report = await s.load(*whole(*map(dump.job_line, entries), jobs=4))
        assert (report.jobs, report.next_id) == (4, 50)
        taken = [s.engine.claim(s.worker) for _ in range(3)]
        assert [found and found.id for found in taken] == [9, 3, None]
        assert (s.engine.jobs.get(4).state, list(s.engine.dead)) == (JobState.SCHEDULED, [5])  # type: ignore[union-attr]
        assert s.submit()[0].id == 50

    play(story)


def test_an_expired_job_is_given_to_no_worker() -> None:
    async def story(s: Scene) -> None:
        await s.load(*whole(dump.job_line(job(3, function=b"f", expires_at=NOW - 1)), jobs=1))
        assert s.engine.claim(s.worker) is None
        assert [found.state for found in s.store.records(Query())] == [JobState.EXPIRED]

    play(story)


def test_the_limit_of_all_payloads_applies() -> None:
    async def story(s: Scene) -> None:
        lines = [dump.job_line(job(id, function=b"f", payload=bytes(3000))) for id in (1, 2, 3)]
        with pytest.raises(AdminError, match=r"max_queued_bytes \(8000 bytes\)"):
            await s.load(*whole(*lines, jobs=3))
        assert s.engine.queued_bytes <= 8000
        assert len(s.engine.jobs) == 2

    play(story, policy=Policy(max_queued_bytes=8000))


def test_a_running_job_stays_and_is_replaced_on_demand() -> None:
    async def story(s: Scene) -> None:
        (mine,) = s.submit(unique=b"key")
        assert s.engine.claim(s.worker) is mine
        lines = whole(dump.job_line(job(30, function=b"f", unique=b"key")), jobs=1)
        report = await s.load(*lines)
        assert (report.jobs, report.clashing) == (0, 1)
        assert report.notices == ["H:host:30 was not loaded: H:t:1 has the same unique key"]
        report = await s.load(*lines, replace=True)
        assert (report.jobs, report.replaced) == (1, 1)
        assert s.engine.find_unique(b"key") is s.engine.jobs.get(30)
        assert mine.state is JobState.CANCELLED

    play(story)


def test_records_are_sorted_and_pruned_by_age() -> None:
    async def story(s: Scene) -> None:
        newest_first = [record(id, finished_at=NOW - 1000 + id) for id in range(150, 0, -1)]
        await s.load(*whole(*map(dump.record_line, newest_first), records=150, next_id=500))
        found = [kept.id for kept in s.store.records(Query(limit=1000))]
        assert found == list(range(150, 50, -1))

    play(story)


def test_times_of_their_own_and_cut_results_are_in_the_next_dump() -> None:
    async def story(s: Scene) -> None:
        entries = [record(3, keep_until=NOW + 9), record(2, remove_at=NOW + 8), record(1, result=b"cut", result_size=9)]
        await s.load(*whole(*map(dump.record_line, entries), records=3))
        lines = [line for line in await s.dump(records=True) if line["geartrain"] == "record"]
        assert lines == [json.loads(dump.record_line(entry)) for entry in entries]
        s.store.remove_record(3)
        assert s.store._times.keys() == {2}

    play(story)


def test_a_broken_line_changes_nothing() -> None:
    async def story(s: Scene) -> None:
        with pytest.raises(AdminError, match=r"line 3: .*; nothing was loaded"):
            await s.load(*whole(dump.job_line(job(3)), b"{}\n", jobs=1))
        assert (len(s.engine.jobs), s.engine.next_id) == (0, 1)

    play(story)


def test_values_go_to_those_who_use_them() -> None:
    async def story(s: Scene) -> None:
        lines = whole(dump.value_line(dump.SavedValue("a.0", b"x")), values=1)
        assert (await s.load(*lines)).values == 1
        report = await s.load(*lines)
        assert (report.values, report.present, s.values) == (0, 1, {"a.0": b"x"})

    play(story)
