"""Groups of failed and dead jobs."""

import asyncio
from typing import Any

import pytest

from geartrain.admin import failure_groups
from geartrain.admin.service import Admin
from geartrain.admin.views import FailureGroups
from geartrain.engine.engine import Engine
from geartrain.errors import AdminError
from geartrain.job_query import JobQuery
from geartrain.model import JobState, Record
from tests.unit.admin.conftest import NOW, FakeArchive
from tests.unit.engine.recording import claim, hire


def failed(id: int, reason: str, function: bytes = b"old", **changes: Any) -> Record:
    made = Record(
        id, b"H:localhost:%d" % id, function, b"", 1, int(JobState.FAILED), NOW, NOW + 1, NOW + id, 1, "gearman",
        "danga", b"bob", 1, reason, b"a traceback",
    )  # fmt: skip
    return made._replace(**changes)


def make_dead(engine: Engine, reason: str, function: bytes = b"f") -> bytes:
    worker = hire(engine, function)
    job = engine.submit(function, background=True)
    claim(engine, worker)
    assert engine.mark_dead(job, reason)
    return job.handle


def groups(admin: Admin, **query: Any) -> FailureGroups:
    return asyncio.run(admin.failures(JobQuery.parse(**query)))


def test_equal_reasons_are_counted_together(admin: Admin, engine: Engine, archive: FakeArchive) -> None:
    archive.records = [failed(1001, "no order 17", b"ship"), failed(1002, "no order 4", b"bill"), failed(1003, "full")]
    make_dead(engine, "no order 99", b"ship")
    answer = groups(admin)
    assert [(group.reason, group.failed, group.dead) for group in answer.groups] == [
        ("no order #", 2, 1),
        ("full", 1, 0),
    ]
    assert (answer.scanned, answer.others, answer.more) == (4, 0, False)
    largest = answer.groups[0]
    assert sorted(map(str, largest.functions)) == ["bill", "ship"]
    assert (largest.first_at, largest.last_at) == (NOW, NOW + 1002)
    assert (largest.handle, largest.example) == ("H:localhost:1002", "no order 4")


def test_groups_are_filtered(admin: Admin, engine: Engine, archive: FakeArchive) -> None:
    archive.records = [failed(1001, "no order 17", b"ship"), failed(1002, "full", state=int(JobState.DONE))]
    make_dead(engine, "no order 99")
    assert [(group.failed, group.dead) for group in groups(admin, state="failed").groups] == [(1, 0)]
    assert [(group.failed, group.dead) for group in groups(admin, state="dead").groups] == [(0, 1)]
    with pytest.raises(AdminError, match="not done"):
        groups(admin, state="done")


def test_a_group_is_listed(admin: Admin, engine: Engine, archive: FakeArchive) -> None:
    archive.records = [failed(1001, "no order 17"), failed(1002, "full"), failed(1003, "no order 1", state=3)]
    dead = make_dead(engine, "no order 99")
    make_dead(engine, "another reason")
    engine.submit(b"f", background=True)
    page = asyncio.run(admin.jobs(JobQuery.parse(reason="no order #")))
    assert [view.handle for view in page.items] == ["H:localhost:1001", dead.decode()]


def test_a_group_is_retried(admin: Admin, engine: Engine) -> None:
    handles = [make_dead(engine, reason) for reason in ("no order 1", "full", "no order 2")]
    report = asyncio.run(admin.bulk("retry", JobQuery.parse(reason="no order #", state="dead")))
    assert (report.done, report.refused, report.more) == (2, 0, False)
    assert [engine.find_dead(handle) is not None for handle in handles] == [False, True, False]


def test_jobs_and_groups_are_bounded(
    admin: Admin, engine: Engine, archive: FakeArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failure_groups, "SCANNED", 20)
    monkeypatch.setattr(failure_groups, "GROUPS", 3)
    monkeypatch.setattr(failure_groups, "_PAGE", 7)
    words = ("ant", "bee", "cat", "dog", "elk")
    archive.records = [failed(1000 + id, words[id % 5]) for id in range(30)]
    answer = groups(admin)
    assert (len(answer.groups), answer.scanned, answer.others, answer.more) == (3, 20, 8, True)
    archive.records = archive.records[:20]
    assert not groups(admin).more
