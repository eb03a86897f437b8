"""`geartrain dump`: output, files, notices and exit codes."""

import json
from pathlib import Path

import pytest

from geartrain.store import dump
from tests.unit.cli.conftest import Outcome, Run
from tests.unit.cli.stores import change, damage, fill, job


def test_dump_goes_to_stdout(run: Run, path: Path) -> None:
    fill(path, job(1, payload=b"\xff"), over=1)
    code, out, err = run("dump")
    header, line, end = map(json.loads, out.splitlines())
    assert (code, err) == (0, "")
    assert (header["geartrain"], header["version"], header["next_id"]) == ("dump", dump.VERSION, 5000)
    assert (line["handle"], line["payload"]) == ("H:host:1", {"base64": "/w=="})
    assert end == {"geartrain": "end", "jobs": 1, "records": 0, "values": 0}


def test_dump_with_records(run: Run, path: Path) -> None:
    fill(path, job(1), over=2)
    kinds = [json.loads(line)["geartrain"] for line in run("dump", "--records").out.splitlines()]
    assert kinds == ["dump", "job", "record", "record", "end"]


def test_dump_to_a_file_replaces_it_and_keeps_secrets(run: Run, path: Path, tmp_path: Path) -> None:
    fill(path, job(1), job(2), over=1)
    target = tmp_path / "jobs.dump"
    target.write_text("old")
    assert run("dump", target) == Outcome(0, f"2 jobs in {target}\n", "")
    assert target.read_text().count("\n") == 4
    assert target.stat().st_mode & 0o077 == 0
    assert run("dump", target, "--records").out == f"2 jobs and 1 record in {target}\n"


def test_dump_that_fails_leaves_the_old_file(run: Run, path: Path, tmp_path: Path) -> None:
    fill(path, *(job(id, payload=b"x" * 1000) for id in range(1, 200)))
    damage(path)
    target = tmp_path / "jobs.dump"
    target.write_text("old")
    code, _, err = run("dump", target)
    assert (code, err.count("\n")) == (1, 1)
    assert err.startswith(f"geartrain: {path} is damaged: ")
    assert target.read_text() == "old"
    assert [file.name for file in tmp_path.glob(".jobs.dump*")] == []


def test_dump_writes_into_a_device_and_does_not_replace_it(run: Run, path: Path, tmp_path: Path) -> None:
    fill(path, job(1))
    link = tmp_path / "link"
    link.symlink_to("/dev/null")
    assert run("dump", link).code == 0
    assert link.is_symlink()
    assert Path("/dev/null").is_char_device()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_full_disk_is_one_line(run: Run, path: Path) -> None:
    fill(path, job(1))
    assert run("dump", "/dev/full") == Outcome(1, "", "geartrain: /dev/full: No space left on device\n")


def test_dump_into_a_missing_folder(run: Run, path: Path, tmp_path: Path) -> None:
    fill(path, job(1))
    target = tmp_path / "nowhere" / "jobs.dump"
    assert run("dump", target) == Outcome(1, "", f"geartrain: {target}: No such file or directory\n")


def test_row_that_is_not_a_job_is_skipped_and_reported(run: Run, path: Path) -> None:
    fill(path, job(1), job(2), job(3))
    change(path, "UPDATE jobs SET priority = 9 WHERE id = 2")
    code, out, err = run("dump")
    assert (code, err) == (0, "geartrain: row 2 skipped: invalid priority 9\n")
    assert '"jobs":2' in out


def test_invalid_text_does_not_end_the_dump(run: Run, path: Path) -> None:
    fill(path, job(1), job(2), over=2)
    change(path, "UPDATE jobs SET reason = CAST(X'ff' AS TEXT) WHERE id = 1")
    change(path, "UPDATE records SET reason = CAST(X'ff' AS TEXT) WHERE id = 1000")
    code, out, err = run("dump", "--records")
    assert code == 0
    assert err.splitlines() == [
        "geartrain: row 1 skipped: reason is bytes, not text",
        "geartrain: row 1000 skipped: door, worker_door, reason or progress is not text",
    ]
    assert '"jobs":1,"records":1,"values":0}' in out


def test_many_notices_are_counted(run: Run, path: Path) -> None:
    fill(path, *(job(id) for id in range(1, 21)))
    change(path, "UPDATE jobs SET priority = 9")
    err = run("dump").err.splitlines()
    assert len(err) == 6
    assert err[-1] == "geartrain: and 15 more"


def test_foreign_database_is_not_dumped(run: Run, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    change(other, "CREATE TABLE music (title)")
    code, _, err = run("dump", "--store", f"sqlite://{other}")
    assert (code, err) == (1, f"geartrain: {other} is not a Geartrain store\n")


def test_store_of_a_newer_version_is_not_dumped(run: Run, path: Path) -> None:
    fill(path, job(1))
    change(path, "PRAGMA user_version = 99")
    code, _, err = run("dump")
    assert code == 1
    assert "was written by a newer Geartrain (layout 99" in err
