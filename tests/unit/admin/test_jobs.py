"""Lists of jobs, and actions on one and on many."""

import asyncio
import math
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from geartrain.admin import job_scan, jobs, loop_break
from geartrain.admin.service import Admin
from geartrain.admin.verbs import VERBS
from geartrain.admin.views import JobView, Page
from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Journal
from geartrain.engine.job import LiveJob
from geartrain.errors import AdminError
from geartrain.job_query import JobQuery
from geartrain.model import Attempt, JobState, Record, pack_attempts
from geartrain.runtime.tick import TickLoop
from tests.unit.admin.conftest import NOW, FakeArchive, FakeServer
from tests.unit.engine.recording import RecordingWatcher, claim, hire

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(coroutine)


def record(id: int, **changes: Any) -> Record:
    made = Record(
        id, b"H:localhost:%d" % id, b"old", b"", 1, int(JobState.DONE), NOW, NOW + 1, NOW + 2, 2, "gearman", "danga",
        b"bob", 0, "", b"result", pack_attempts([Attempt(NOW, NOW + 1, "periodic", b"al", "it left")]),
    )  # fmt: skip
    return made._replace(**changes)


def everything(engine: Engine) -> dict[str, LiveJob]:
    """A job in every state that is not over."""
    worker = hire(engine, b"f", name=b"bob")
    found = {}
    found["running"] = engine.submit(b"f", b"key", b"running", background=True, door="gearman")
    claim(engine, worker)
    found["dead"] = engine.submit(b"f", b"", b"dead", background=True, door="danga", keeps_result=False)
    claim(engine, worker)
    engine.mark_dead(found["dead"], "hopeless")
    found["queued"] = engine.submit(b"f", b"", b"queued", background=True, door="gearman")
    found["scheduled"] = engine.submit(b"g", b"", b"scheduled", background=True, run_at=NOW + 60, door="periodic")
    return found


def payloads(page: Page[JobView]) -> list[object]:
    return [view.payload if view.payload is not None else view.id for view in page.items]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (JobQuery(), ["scheduled", "queued", "dead", "running"]),
        (JobQuery.parse(state="queued"), ["queued"]),
        (JobQuery.parse(state="running"), ["running"]),
        (JobQuery.parse(state="scheduled"), ["scheduled"]),
        (JobQuery.parse(state="dead"), ["dead"]),
        (JobQuery.parse(state="done"), []),
        (JobQuery.parse(function=b"f"), ["queued", "dead", "running"]),
        (JobQuery.parse(function=b"nobody's"), []),
        (JobQuery.parse(search="ey"), ["running"]),
        (JobQuery.parse(search="ead"), ["dead"]),
        (JobQuery.parse(search="localhost"), ["scheduled", "queued", "dead", "running"]),
        (JobQuery.parse(door="danga"), ["dead"]),
        (JobQuery.parse(since=NOW + 1), []),
        (JobQuery.parse(until=NOW), []),
        (JobQuery.parse(since=NOW, until=NOW + 1, function=b"g"), ["scheduled"]),
        (JobQuery.parse(limit=2), ["scheduled", "queued"]),
    ],
)
@pytest.mark.usefixtures("many")
def test_filters(admin: Admin, engine: Engine, wanted: JobQuery, expected: list[str]) -> None:
    everything(engine)
    assert payloads(run(admin.jobs(wanted))) == expected


def test_known_totals_are_returned(admin: Admin, engine: Engine) -> None:
    everything(engine)
    for state in ("queued", "running", "scheduled", "dead"):
        assert run(admin.jobs(JobQuery.parse(state=state))).total == 1
        assert run(admin.jobs(JobQuery.parse(state=state, function=b"g"))).total == (state == "scheduled")
        assert run(admin.jobs(JobQuery.parse(state=state, function=b"nobody's"))).total == 0
    assert run(admin.jobs(JobQuery())).total is None
    assert run(admin.jobs(JobQuery.parse(state="queued", search="x"))).total is None


@pytest.mark.usefixtures("many")
def test_pages_show_everything_once(admin: Admin, engine: Engine, archive: FakeArchive) -> None:
    for number in range(20):
        job = engine.submit(b"f", background=True, run_at=NOW + 60 - number)
        if number % 3 == 0:
            engine.cancel(job)
            archive.records.append(record(job.id, state=int(JobState.CANCELLED)))
    seen: list[int] = []
    after = ""
    while True:
        page = run(admin.jobs(JobQuery.parse(limit=3, after=after)))
        seen += [view.id for view in page.items]
        after = page.after
        if not after:
            break
    assert seen == list(range(20, 0, -1))


def test_a_job_that_ends_while_it_is_listed_is_listed_once(
    admin: Admin, engine: Engine, archive: FakeArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [engine.submit(b"f", background=True) for _ in range(3)]

    async def newest(query: object, limit: int) -> list[Record]:
        return [record(jobs[1].id)]

    monkeypatch.setattr(archive, "newest", newest)
    page = run(admin.jobs(JobQuery()))
    assert [(view.id, view.state) for view in page.items] == [(3, "queued"), (2, "done"), (1, "queued")]


@pytest.fixture(params=["listed in one go", "looked up by id"])
def many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The two ways to find jobs, which must find the same."""
    if request.param == "looked up by id":
        monkeypatch.setattr(job_scan, "FILTERED_AT_ONCE", 0)


@pytest.mark.usefixtures("many")
def test_listing_many_jobs_does_not_block_the_loop(
    admin: Admin, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop comes round after each slice, as far as the clock is concerned."""
    monkeypatch.setattr(loop_break, "_SLICE_SECONDS", -1.0)
    for _ in range(10 * loop_break.SLICE):
        engine.submit(b"f", background=True)

    async def listed() -> int:
        turns = 0
        listing_task = asyncio.ensure_future(admin.jobs(JobQuery.parse(search="nothing has this")))
        while not listing_task.done():
            await asyncio.sleep(0)
            turns += 1
        return turns

    assert run(listed()) >= 10


def test_view_of_a_job_that_has_not_ended(admin: Admin, engine: Engine) -> None:
    found = everything(engine)
    view = run(admin.job(found["running"].handle))
    assert (view.state, view.worker, view.worker_door, view.started_at, view.attempts) == (
        "running", "bob", "test", NOW, 1,
    )  # fmt: skip
    dead = run(admin.job(found["dead"].handle))
    assert (dead.state, dead.reason, dead.code, dead.finished_at, dead.door) == ("dead", "hopeless", 255, NOW, "danga")
    assert [(trial.worker, trial.why) for trial in dead.trials] == [("bob", "hopeless")]


def test_view_of_a_job_that_has_ended(admin: Admin, archive: FakeArchive) -> None:
    archive.records = [record(3)]
    view = run(admin.job(b"H:localhost:3"))
    assert (view.state, view.result, view.result_size, view.payload, view.finished_at) == (
        "done", "result", 6, None, NOW + 2,
    )  # fmt: skip
    assert (view.worker, view.worker_door) == ("bob", "danga")
    assert [(trial.worker, trial.door, trial.why) for trial in view.trials] == [("al", "periodic", "it left")]


def test_lists_cut_bytes_but_not_sizes(admin: Admin, engine: Engine, archive: FakeArchive) -> None:
    engine.submit(b"f", payload=b"x" * 100_000, background=True)
    archive.records = [record(0, result=b"y" * 1000)]
    first, second = run(admin.jobs(JobQuery())).items
    assert (first.payload, first.payload_size) == ("x" * 256, 100_000)
    assert (second.result, second.result_size) == ("y" * 256, 1000)


def test_payload_and_result_are_complete(admin: Admin, engine: Engine, archive: FakeArchive) -> None:
    job = engine.submit(b"f", payload=b"\xff" * 100_000, background=True)
    assert run(admin.payload(job.handle)) == job.payload
    archive.records = [record(900, result=b"\xff" * 1000), record(901, door="gearman", keeps_result=False)]
    assert run(admin.result(b"H:localhost:900")) == b"\xff" * 1000
    for coroutine, kind in (
        (admin.result(job.handle), "conflict"),
        (admin.payload(b"H:localhost:900"), "not-found"),
        (admin.result(b"H:localhost:901"), "result-gone"),
        (admin.payload(b"nobody's"), "not-found"),
        (admin.result(b"nobody's"), "not-found"),
        (admin.job(b"nobody's"), "not-found"),
    ):
        with pytest.raises(AdminError) as refused:
            run(coroutine)
        assert refused.value.kind == kind


def test_actions_on_one_job(admin: Admin, engine: Engine) -> None:
    found = everything(engine)
    admin.hasten(found["scheduled"].handle)
    assert found["scheduled"].state is JobState.QUEUED
    admin.cancel(found["queued"].handle)
    assert found["queued"].state is JobState.CANCELLED
    admin.cancel(found["running"].handle)
    assert found["running"].state is JobState.CANCELLED
    run(admin.retry(found["dead"].handle))
    assert found["dead"].state is JobState.QUEUED
    claim(engine, hire(engine, b"f"))
    engine.mark_dead(found["dead"], "again")
    run(admin.delete(found["dead"].handle))
    assert engine.dead == {}


def test_actions_in_the_wrong_state_are_conflicts(admin: Admin, engine: Engine) -> None:
    found = everything(engine)
    wrong = [("cancel", "dead"), ("retry", "queued"), ("delete", "running"), ("hasten", "queued")]
    for verb, state in wrong:
        with pytest.raises(AdminError, match=f"is {state}, not ") as refused:
            run(admin.call(VERBS[verb], {"handle": found[state].handle}))
        assert refused.value.kind == "conflict"
        assert found[state].state.name.lower() == state


def test_retry_with_a_unique_key_in_use_is_a_conflict(admin: Admin, engine: Engine) -> None:
    job = engine.submit(b"f", b"key", background=True)
    claim(engine, hire(engine, b"f"))
    engine.mark_dead(job, "")
    engine.submit(b"f", b"key", background=True)
    with pytest.raises(AdminError, match="H:localhost:1 cannot be retried: job H:localhost:2 has its") as refused:
        run(admin.retry(job.handle))
    assert refused.value.kind == "conflict"
    report = run(admin.bulk("retry", JobQuery()))
    assert (report.done, report.refused, report.more) == (0, 1, False)


def test_bulk_is_bounded(admin: Admin, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "BULK_MOST", 4)
    for _ in range(6):
        engine.submit(b"f", background=True)
    first = run(admin.bulk("cancel", JobQuery.parse(function=b"f")))
    second = run(admin.bulk("cancel", JobQuery.parse(function=b"f")))
    assert [(each.done, each.more) for each in (first, second)] == [(4, True), (2, False)]


def test_bulk_acts_only_on_jobs_in_the_right_state(admin: Admin, engine: Engine, tick_loop: TickLoop) -> None:
    ticks: list[float] = []
    tick_loop.after.append(lambda: ticks.append(engine.now))
    found = everything(engine)
    assert run(admin.bulk("run", JobQuery())).done == 1
    assert run(admin.bulk("delete", JobQuery())).done == 1
    assert run(admin.bulk("cancel", JobQuery.parse(function=b"f"))).done == 2
    assert found["scheduled"].state is JobState.QUEUED
    assert len(ticks) == 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"state": "lost"}, "unknown state 'lost'"),
        ({"after": "x"}, "previous page"),
        ({"after": "\N{ARABIC-INDIC DIGIT ONE}"}, "previous page"),
        ({"after": "1" * 19}, "previous page"),
        ({"limit": -1}, "negative"),
    ],
)
def test_invalid_queries_are_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(AdminError, match=words) as refused:
        JobQuery.parse(**arguments)
    assert refused.value.kind == "bad-request"


@pytest.mark.parametrize("name", ["handle", "unique", "handle as unique", "id"])
def test_a_running_job_by_every_kind_of_name(admin: Admin, engine: Engine, name: str) -> None:
    worker = hire(engine, b"f")
    job = engine.submit(b"f", b"key" if name == "unique" else b"", background=True)
    ways: dict[str, dict[str, Any]] = {
        "handle": {"handle": job.handle},
        "unique": {"function": b"f", "unique": b"key"},
        "handle as unique": {"function": b"f", "unique": job.handle},
        "id": {"function": b"f", "id": job.id},
    }
    claim(engine, worker)
    admin.postpone(seconds=5.0, reason="busy", **ways[name])
    assert (job.state, job.run_at) == (JobState.SCHEDULED, NOW + 5)
    engine.tick(NOW + 5)
    claim(engine, worker)
    admin.bury(reason="hopeless", **ways[name])
    assert (job.state, job.reason) == (JobState.DEAD, "hopeless")
    with pytest.raises(AdminError) as refused:
        admin.bury(**ways[name])
    assert refused.value.kind == "not-found"


class LogJournal(Journal):
    """Keeps what is added to logs."""

    def __init__(self) -> None:
        self.logs: list[tuple[int, bytes]] = []

    def add_log(self, id: int, added: bytes) -> None:
        self.logs.append((id, added))


@pytest.mark.parametrize("name", ["handle", "unique", "id"])
def test_lines_are_added_to_the_log_of_a_running_job(admin: Admin, engine: Engine, name: str) -> None:
    journal = engine.journal = LogJournal()
    worker = hire(engine, b"f")
    job = engine.submit(b"f", b"key", background=True)
    ways: dict[str, dict[str, Any]] = {
        "handle": {"handle": job.handle},
        "unique": {"function": b"f", "unique": b"key"},
        "id": {"function": b"f", "id": job.id},
    }
    with pytest.raises(AdminError, match="queued, not running"):
        admin.add_log(b"too early", **ways[name])
    claim(engine, worker)
    for lines in (b"one", b"two\nthree\n", b""):
        admin.add_log(lines, **ways[name])
    assert journal.logs == [(job.id, b"one\n"), (job.id, b"two\nthree\n")]


def test_nothing_is_kept_of_foreground_jobs(admin: Admin, engine: Engine) -> None:
    worker = hire(engine, b"f")
    job = engine.submit(b"f", watcher=RecordingWatcher())
    claim(engine, worker)
    with pytest.raises(AdminError, match="foreground job") as refused:
        admin.add_log(b"one", job.handle)
    assert refused.value.kind == "conflict"


def test_log_of_a_job_before_and_after_its_end(admin: Admin, engine: Engine, archive: FakeArchive) -> None:
    job = engine.submit(b"f", background=True)
    archive.logs[job.id] = b"one\n"
    assert run(admin.log(job.handle)) == b"one\n"
    with pytest.raises(AdminError, match="no job") as refused:
        run(admin.log(b"H:nowhere:1"))
    assert refused.value.kind == "not-found"


def test_only_running_jobs_can_be_postponed(admin: Admin, engine: Engine) -> None:
    job = engine.submit(b"f", background=True)
    for seconds, kind in ((5.0, "conflict"), (-1.0, "bad-request"), (float("nan"), "bad-request")):
        with pytest.raises(AdminError) as refused:
            admin.postpone(job.handle, seconds)
        assert refused.value.kind == kind
    with pytest.raises(AdminError) as refused:
        admin.postpone(job.handle, 5.0, function=b"another")
    assert refused.value.kind == "not-found"


def ids(admin: Admin, **wanted: Any) -> list[int]:
    return [view.id for view in run(admin.jobs(JobQuery.parse(**wanted))).items]


@pytest.mark.usefixtures("many")
def test_restored_jobs_are_listed(admin: Admin, engine: Engine, server: FakeServer, archive: FakeArchive) -> None:
    before = [engine.submit(b"f", background=True, run_at=NOW + 100 - number) for number in range(5)]
    before[3].handle = b"H:another-host:4"
    again = Engine(first_id=10_000_000)
    other = Admin(server.tick_loop(again), server, archive, {})
    for job in sorted(before):
        again.restore(job)
    again.submit(b"f", background=True)
    again.cancel(again.submit(b"f", background=True))
    again.submit(b"f", background=True)
    expected = [10_000_002, 10_000_000, 5, 4, 3, 2, 1]
    assert ids(other) == expected
    again.cancel(before[1])
    assert ids(other) == [id for id in expected if id != 2]
    assert ids(other, after="5") == [4, 3, 1]
    assert ids(other, after="10000001", limit=2) == [10_000_000, 5]


def test_sparse_ids_are_not_looked_up_one_by_one(admin: Admin, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_scan, "FILTERED_AT_ONCE", 2)
    queued = []
    for _ in range(3):
        queued.append(engine.submit(b"f", background=True))
        engine.next_id += 10**12
    assert ids(admin) == [job.id for job in reversed(queued)]
    assert ids(admin, after=str(queued[2].id)) == [queued[1].id, queued[0].id]
    assert ids(admin, after=str(queued[1].id + 1), limit=1) == [queued[1].id]


@pytest.mark.usefixtures("many")
def test_jobs_that_were_taken_over_have_ids_below_and_above(admin: Admin, engine: Engine) -> None:
    own = [engine.submit(b"f", background=True).id for _ in range(3)]

    def restore(*ids: int) -> None:
        for id in ids:
            engine.restore(LiveJob(id, b"H:%d" % id, b"f", b"", b"", 1, True, NOW, NOW, "gearman"))

    restore(own[0] - 7, own[0] + 10**12)
    assert ids(admin) == [own[0] + 10**12, *reversed(own), own[0] - 7]
    restore(own[0] + 10**13)
    assert ids(admin, limit=2) == [own[0] + 10**13, own[0] + 10**12]
    assert ids(admin, after=str(own[0] + 10**12)) == [*reversed(own), own[0] - 7]
    assert ids(admin, after=str(own[1])) == [own[0], own[0] - 7]


def test_submit_with_options_that_protocols_lack(admin: Admin, engine: Engine) -> None:
    handle = run(admin.submit(b"f", b"in", "high", b"key", expires_at=NOW + 60, keep_for=5.0, timeout=3.0))
    job = engine.find(handle)
    assert job is not None
    assert (job.payload, job.priority, job.unique, job.background, job.door) == (b"in", 0, b"key", True, "control")
    assert (job.expires_at, job.keep_for, job.timeout) == (NOW + 60, 5.0, 3.0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"function": b""},
        {"function": b"geartrain.control"},
        {"priority": "urgent"},
        {"expires_at": -1.0},
        {"run_at": math.inf},
        {"timeout": math.nan},
    ],
)
def test_submit_with_invalid_options(admin: Admin, engine: Engine, wrong: dict[str, Any]) -> None:
    engine.builtin_workers.setdefault(b"geartrain.control", object())  # type: ignore[arg-type]
    with pytest.raises(AdminError) as refused:
        run(admin.submit(**{"function": b"f", **wrong}))
    assert refused.value.kind == "bad-request"
    assert not len(engine.jobs)


def test_a_job_says_until_when_it_is_kept(admin: Admin, engine: Engine, archive: FakeArchive) -> None:
    archive.records = [
        record(1001),  # done: kept for a minute
        record(1002, keep_until=NOW + 600),  # as its submitter wanted, for longer
        record(1003, keep_until=NOW + 30),  # for less: the server's setting applies
        record(1004, remove_at=NOW + 30),  # a setting of its function, which may be less
        record(1005, state=int(JobState.FAILED)),
        record(1006, state=int(JobState.CANCELLED)),  # without a limit of time here
    ]
    engine.submit(b"f", background=True)
    page = run(admin.jobs())
    assert [view.removed_at for view in reversed(page.items)] == [
        None, NOW + 62, NOW + 600, NOW + 62, NOW + 30, NOW + 3602, None,
    ]  # fmt: skip
