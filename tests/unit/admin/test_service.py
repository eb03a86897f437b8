"""The overview, functions, workers and events."""

import asyncio

import pytest

from geartrain.admin.service import Admin
from geartrain.admin.views import JobEvent
from geartrain.engine.engine import Engine
from geartrain.errors import AdminError
from tests.unit.admin.conftest import NOW, FakeServer
from tests.unit.engine.recording import claim, hire


def names(admin: Admin, **wanted: str | int) -> list[object]:
    return [view.name for view in asyncio.run(admin.functions(**wanted)).items]  # type: ignore[arg-type]


def test_overview(admin: Admin, engine: Engine, server: FakeServer) -> None:
    worker = hire(engine, b"f")
    for function in (b"f", b"g", b"g"):
        engine.submit(function, background=True)
    engine.submit(b"g", background=True, run_at=NOW + 60)
    claim(engine, worker)
    server.now = NOW + 10
    view = admin.overview()
    assert (view.now, view.uptime, view.oldest) == (NOW + 10, 10.0, NOW)
    assert (view.queued, view.running, view.scheduled, view.dead) == (2, 1, 1, 0)
    assert (view.functions, view.workers, view.connections) == (2, 1, 3)
    assert (view.submitted, view.completed, view.failed) == (4, 0, 0)


def test_oldest_job_is_searched_at_most_once_a_second(admin: Admin, engine: Engine, server: FakeServer) -> None:
    assert admin.overview().oldest is None
    engine.submit(b"f")
    assert admin.overview().oldest is None
    server.now += 1.0
    assert admin.overview().oldest == NOW
    server.now -= 3600  # the clock was moved back
    engine.cancel(next(iter(engine.jobs.values())))
    assert admin.overview().oldest is None


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("name", ["a", "b", "c"]),
        ("queued", ["c", "b", "a"]),
        ("oldest", ["b", "c", "a"]),
        ("running", ["a", "b", "c"]),
        ("failed", ["a", "b", "c"]),
    ],
)
def test_functions_are_sorted(admin: Admin, engine: Engine, sort: str, expected: list[str]) -> None:
    engine.function(b"a")
    engine.submit(b"b")
    engine.now = NOW + 1
    engine.submit(b"c")
    engine.submit(b"c")
    assert names(admin, sort=sort) == expected


def test_functions_are_searched_and_paged(admin: Admin, engine: Engine) -> None:
    for number in range(10):
        engine.function(b"f%d" % number)
    engine.function(b"\xff")
    assert names(admin, search="f1") == ["f1"]
    page = asyncio.run(admin.functions(limit=4))
    seen = [view.name for view in page.items]
    assert page.total == 11
    while page.after:
        page = asyncio.run(admin.functions(limit=4, after=page.after))
        seen += [view.name for view in page.items]
    assert seen[:10] == [f"f{number}" for number in range(10)]
    assert len(seen) == 11


def test_workers_are_searched_and_paged(admin: Admin, engine: Engine) -> None:
    for number in range(5):
        hire(engine, b"f", b"only %d" % number, name=b"bob %d" % number)
    assert [view.name for view in asyncio.run(admin.workers(search="only 3")).items] == ["bob 3"]
    assert [view.name for view in asyncio.run(admin.workers(search="bob 4")).items] == ["bob 4"]
    assert asyncio.run(admin.workers(search="nobody")).items == []
    page = asyncio.run(admin.workers(limit=2))
    seen = [view.id for view in page.items]
    assert page.total == 5
    while page.after:
        page = asyncio.run(admin.workers(limit=2, after=page.after))
        seen += [view.id for view in page.items]
    assert seen == [1, 2, 3, 4, 5]


def test_lists_of_a_worker_are_cut(admin: Admin, engine: Engine) -> None:
    worker = hire(engine, *(b"f%d" % number for number in range(150)))
    for number in range(120):
        engine.submit(b"f%d" % number)
        engine.now += 1
        claim(engine, worker)
    (view,) = asyncio.run(admin.workers()).items
    assert (len(view.functions), view.function_count, len(view.running)) == (100, 150, 100)
    assert view.running_since == NOW + 1


def test_drop(admin: Admin, engine: Engine) -> None:
    engine.submit(b"f")
    with pytest.raises(AdminError, match="has workers or jobs") as refused:
        admin.drop(b"f")
    assert refused.value.kind == "conflict"
    engine.cancel(next(iter(engine.jobs.values())))
    admin.drop(b"f")
    with pytest.raises(AdminError) as unknown:
        admin.function(b"f")
    assert unknown.value.kind == "not-found"


def test_invalid_arguments_are_refused(admin: Admin) -> None:
    for call in (
        lambda: asyncio.run(admin.functions(sort="age")),
        lambda: asyncio.run(admin.functions(limit=0)),
        lambda: asyncio.run(admin.functions(after="x")),
        lambda: asyncio.run(admin.workers(limit=-1)),
        lambda: admin.history(0),
        lambda: admin.limit(b"f", -1, 0, 0),
    ):
        with pytest.raises(AdminError) as refused:
            call()
        assert refused.value.kind == "bad-request"


def test_the_engine_is_observed_only_while_there_are_listeners(admin: Admin, engine: Engine) -> None:
    heard: list[JobEvent] = []
    others: list[JobEvent] = []
    assert engine.observer is None
    admin.events.subscribe(heard.append)
    admin.events.subscribe(others.append)
    worker = hire(engine, b"f", name=b"bob")
    job = engine.submit(b"f", background=True, door="gearman")
    claim(engine, worker)
    engine.fail(worker, job, "broken")
    admin.events.unsubscribe(heard.append)
    engine.submit(b"f", background=True)
    admin.events.unsubscribe(others.append)
    assert engine.observer is None
    assert [(event.what, event.worker, event.reason) for event in heard] == [
        ("submitted", "", ""), ("started", "bob", ""), ("failed", "", "broken"),
    ]  # fmt: skip
    assert (heard[0].handle, heard[0].function, heard[0].door, heard[0].at) == (
        job.handle.decode(),
        "f",
        "gearman",
        NOW,
    )
    assert len(others) == 4
    admin.events.unsubscribe(heard.append)
