"""Invalid rows are moved to the table `broken` and logged; the other jobs are loaded."""

import contextlib
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.contract.stores.factories import batch, ids, job
from tests.support.store_fixtures import Opened

BREAKS = {
    "priority 9": ("UPDATE jobs SET priority = 9", "invalid priority 9"),
    "priority -1": ("UPDATE jobs SET priority = -1", "invalid priority -1"),
    "state 77": ("UPDATE jobs SET state = 77", "invalid state 77"),
    "state done": ("UPDATE jobs SET state = 3", "invalid state 3"),
    "empty handle": ("UPDATE jobs SET handle = x''", "invalid id or empty handle"),
    "after nonsense": ("UPDATE jobs SET after_jobs = x'0102'", "the jobs that it waits for cannot be read"),
    "door no text": ("UPDATE jobs SET door = CAST(x'ff' AS TEXT)", "door is bytes, not text"),
    "reason no text": ("UPDATE jobs SET reason = CAST(x'c328' AS TEXT)", "door is bytes, not text"),
}


def edit(path: Path, statement: str) -> None:
    """By hand, while no server has it."""
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        connection.execute(statement)


def broken(path: Path) -> list[tuple[Any, ...]]:
    with contextlib.closing(apsw.Connection(str(path), apsw.SQLITE_OPEN_READONLY)) as connection:
        return connection.execute("SELECT complaint, id, handle, payload FROM broken ORDER BY id").fetchall()


@pytest.mark.parametrize(("statement", "complaint"), BREAKS.values(), ids=BREAKS)
def test_invalid_row_is_quarantined_and_the_others_are_loaded(
    path: Path, opened: Opened, statement: str, complaint: str, caplog: pytest.LogCaptureFixture
) -> None:
    opened().commit(batch(job(id) for id in range(1, 6)))
    opened().close(6)
    edit(path, f"{statement} WHERE id = 3")
    store = opened()
    assert ids(store) == [1, 2, 4, 5]
    ((said, id, handle, payload),) = broken(path)
    assert (said, id, payload) == (complaint, 3, b"payload 3")
    assert handle == (b"" if "handle =" in statement else b"H:host:3")
    (entry,) = caplog.records
    assert entry.getMessage() == "invalid row moved to table broken"
    assert entry.__dict__["fields"]["why"] == f"id 3: {complaint}"


def test_invalid_row_is_logged_once(path: Path, opened: Opened, caplog: pytest.LogCaptureFixture) -> None:
    opened().commit(batch([job(1), job(2)]))
    opened().close(3)
    edit(path, "UPDATE jobs SET state = 77 WHERE id = 1")
    assert ids(opened()) == [2]
    assert len(caplog.records) == 1
    assert ids(opened()) == [2]
    assert len(caplog.records) == 1


def test_many_invalid_rows(path: Path, opened: Opened) -> None:
    """More than are read at once, broken at the seams between two readings as well."""
    opened().commit(batch(job(id) for id in range(1, 6001)))
    opened().close(6001)
    wrong = {1, 2, 1999, 2000, 2001, 3000, 4000, 4001, 6000}
    numbers = ", ".join(map(str, wrong))
    edit(path, f"UPDATE jobs SET priority = 9, reason = CAST(x'ff' AS TEXT) WHERE id IN ({numbers})")
    store = opened()
    assert ids(store) == [id for id in range(1, 6001) if id not in wrong]
    assert {row[1] for row in broken(path)} == wrong


@pytest.mark.parametrize("id", [0, -1, -(2**63) + 1])
def test_row_with_an_invalid_id(path: Path, opened: Opened, id: int) -> None:
    opened().commit(batch([job(1), job(2)]))
    opened().close(3)
    edit(path, f"UPDATE jobs SET id = {id} WHERE id = 1")
    assert ids(opened()) == [2]
    assert [row[:2] for row in broken(path)] == [("invalid id or empty handle", id)]


def test_invalid_row_that_cannot_be_quarantined_is_skipped(path: Path, opened: Opened) -> None:
    opened().commit(batch([job(1), job(2), job(3)]))
    opened().close(4)
    edit(path, "UPDATE jobs SET state = 77 WHERE id = 2; DROP TABLE broken")
    store = opened()
    assert ids(store) == [1, 3]
    store.commit(batch([job(4)]))
    assert ids(store) == [1, 3, 4]
