"""`geartrain load`: sources, reports and errors."""

import io
import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Outcome, Run
from tests.unit.cli.stores import fill, job


def test_load_from_a_file_and_from_stdin(run: Run, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(path, job(1), job(2), over=1)
    target = tmp_path / "jobs.dump"
    run("dump", "--records", target)
    for number, source in enumerate((str(target), "-")):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(target.read_bytes())))
        copy = tmp_path / str(number) / "jobs.db"
        outcome = run("load", source, "--store", f"sqlite://{copy}")
        assert outcome == Outcome(0, f"loaded 2 jobs and 1 record into {copy}\n", "")
        again = run("dump", "--records", "--store", f"sqlite://{copy}").out.splitlines()[1:]
        assert again == target.read_text().splitlines()[1:]


def test_load_with_json(run: Run, path: Path, tmp_path: Path) -> None:
    fill(path, job(1), job(2))
    target = tmp_path / "jobs.dump"
    run("dump", target)
    assert run("load", target).out.endswith("; 2 already present\n")
    assert json.loads(run("load", target, "--replace", "--json").out) == {
        "file": str(path), "jobs": 2, "records": 0, "values": 0, "replaced": 2, "present": 0, "clashing": 0,
        "next_id": 5000,
    }  # fmt: skip


def test_load_reports_file_and_line_of_an_error(run: Run, path: Path, tmp_path: Path) -> None:
    fill(path, job(1))
    target = tmp_path / "jobs.dump"
    run("dump", target)
    target.write_text(target.read_text().replace('"id":1', '"id":"one"'))
    assert run("load", target) == Outcome(
        1, "", f"geartrain: {target}: line 2: id: Expected int, got str; nothing was loaded\n"
    )


def test_load_reports_conflicts(run: Run, path: Path, tmp_path: Path) -> None:
    fill(path, job(1))
    target = tmp_path / "jobs.dump"
    run("dump", target)
    target.write_text(target.read_text().replace("H:host:1", "H:other:1"))
    code, out, err = run("load", target)
    assert (code, err) == (0, "geartrain: H:other:1 was not loaded: H:host:1 has the same id\n")
    assert out.endswith("; 1 skipped: their id, handle or unique key belongs to another job\n")


def test_load_of_a_missing_file(run: Run, path: Path, tmp_path: Path) -> None:
    missing = tmp_path / "jobs.dump"
    assert run("load", missing) == Outcome(1, "", f"geartrain: {missing}: No such file or directory\n")
    assert not path.exists()
