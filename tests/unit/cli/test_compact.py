"""`geartrain compact`."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run
from tests.unit.cli.stores import change, fill, job


def test_compact_shrinks_a_file_and_keeps_its_jobs(run: Run, path: Path) -> None:
    fill(path, *(job(id, payload=b"x" * 1000) for id in range(1, 500)))
    change(path, "DELETE FROM jobs WHERE id > 5")
    before = run("dump").out.splitlines()[1:]
    was = path.stat().st_size
    sizes = json.loads(run("compact", "--json").out)
    assert sizes == {"file": str(path), "before": was, "after": path.stat().st_size}
    assert sizes["after"] < was / 10
    assert run("dump").out.splitlines()[1:] == before
    assert re.fullmatch(rf"{path}: \d+\.0 KiB before, \d+\.0 KiB after\n", run("compact").out)


def test_compact_checks_free_space_first(run: Run, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(path, *(job(id) for id in range(1, 100)))
    before = path.read_bytes()
    real = shutil.disk_usage(path.parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: real._replace(free=4096))
    code, _, err = run("compact")
    assert code == 1
    assert err.startswith(f"geartrain: not enough space in {path.parent}: 4.0 KiB free, compacting needs ")
    assert len(before) == path.stat().st_size
