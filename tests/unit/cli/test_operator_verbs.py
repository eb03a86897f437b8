"""dump, load and compact: what they say, where they read and write, and with which exit code they end."""

import io
import json
import os
import pty
import re
import select
import shutil
from pathlib import Path

import pytest

from geartrain.cli import progress
from geartrain.store.sqlite import SqliteStore
from tests.unit.cli.conftest import Outcome, Run
from tests.unit.cli.stores import change, damage, fill, job

VERBS = ("dump", "load", "doctor", "compact")

# What all of them have in common


@pytest.mark.parametrize("verb", VERBS)
def test_help_teaches_with_examples(run: Run, verb: str) -> None:
    code, out, _ = run(verb, "--help")
    text = re.sub(r"[│\s]+", " ", out)
    assert code == 0
    assert f"Examples • geartrain {verb}" in text
    assert "--store" in text
    assert "--config" in text
    assert "…" not in text


def test_verbs_are_listed(run: Run) -> None:
    text = run("--help").out
    for verb in VERBS:
        assert re.search(rf"^│ {verb} ", text, re.MULTILINE)


@pytest.mark.parametrize("words", [["dump"], ["compact"]])
def test_store_that_is_not_there_is_one_line(run: Run, path: Path, words: list[str]) -> None:
    code, out, err = run(*words)
    assert (code, out) == (1, "")
    assert err.startswith(f"geartrain: {path} does not exist; name the store with --store.")
    assert err.count("\n") == 1
    assert not path.parent.exists()


@pytest.mark.parametrize("words", [["dump"], ["compact"], ["load", "-"]])
def test_memory_store_has_no_file(run: Run, words: list[str]) -> None:
    code, out, err = run(*words, "--store", "memory")
    assert (code, out) == (1, "")
    assert err.startswith("geartrain: a memory store has no file")


@pytest.mark.parametrize("verb", VERBS)
def test_wrong_settings_are_told(run: Run, verb: str) -> None:
    words = ["-"] if verb == "load" else []
    code, out, err = run(verb, *words, "--store", "mysql://here")
    assert code == 1
    assert "--store mysql://here: must be memory, or sqlite:///path/to/file" in " ".join((out + err).split())


def test_store_comes_from_flag_environment_or_file(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, name in enumerate(("file", "environment", "flag"), start=1):
        fill(tmp_path / f"{name}.db", *(job(id) for id in range(1, number + 1)))
    config = tmp_path / "other.toml"
    config.write_text(f'store = "sqlite://{tmp_path}/file.db"\n')
    assert run("dump", "--config", config).out.count('"job"') == 1
    monkeypatch.setenv("GEARTRAIN_STORE", f"sqlite://{tmp_path}/environment.db")
    assert run("dump", "--config", config).out.count('"job"') == 2
    assert run("dump", "--config", config, "--store", f"sqlite://{tmp_path}/flag.db").out.count('"job"') == 3


@pytest.mark.parametrize("words", [["compact"], ["load", "-"]])
def test_store_that_is_in_use_names_its_process(run: Run, held: SqliteStore, words: list[str]) -> None:
    code, _, err = run(*words)
    assert code == 1
    assert err == f"geartrain: {held.path} is in use by process {os.getpid()}; stop it, or use another file\n"


# dump


def test_dump_goes_to_stdout(run: Run, path: Path) -> None:
    fill(path, job(1, payload=b"\xff"), over=1)
    code, out, err = run("dump")
    header, line, end = map(json.loads, out.splitlines())
    assert (code, err) == (0, "")
    assert (header["geartrain"], header["version"], header["next_id"]) == ("dump", 3, 5000)
    assert (line["handle"], line["payload"]) == ("H:host:1", {"base64": "/w=="})
    assert end == {"geartrain": "end", "jobs": 1, "records": 0}


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


def test_dump_into_a_folder_that_is_not_there(run: Run, path: Path, tmp_path: Path) -> None:
    fill(path, job(1))
    target = tmp_path / "nowhere" / "jobs.dump"
    assert run("dump", target) == Outcome(1, "", f"geartrain: {target}: No such file or directory\n")


def test_row_that_is_no_job_is_left_out_and_told(run: Run, path: Path) -> None:
    fill(path, job(1), job(2), job(3))
    change(path, "UPDATE jobs SET priority = 9 WHERE id = 2")
    code, out, err = run("dump")
    assert (code, err) == (0, "geartrain: row 2 skipped: invalid priority 9\n")
    assert '"jobs":2' in out


def test_text_that_is_no_text_does_not_end_the_dump(run: Run, path: Path) -> None:
    fill(path, job(1), job(2), over=2)
    change(path, "UPDATE jobs SET reason = CAST(X'ff' AS TEXT) WHERE id = 1")
    change(path, "UPDATE records SET reason = CAST(X'ff' AS TEXT) WHERE id = 1000")
    code, out, err = run("dump", "--records")
    assert code == 0
    assert err.splitlines() == [
        "geartrain: row 1 skipped: reason is bytes, not text",
        "geartrain: row 1000 skipped: door, worker_door or reason is not text",
    ]
    assert '"jobs":1,"records":1}' in out


def test_many_notices_are_counted(run: Run, path: Path) -> None:
    fill(path, *(job(id) for id in range(1, 21)))
    change(path, "UPDATE jobs SET priority = 9")
    err = run("dump").err.splitlines()
    assert len(err) == 6
    assert err[-1] == "geartrain: and 15 more"


def test_database_of_somebody_else_is_not_dumped(run: Run, tmp_path: Path) -> None:
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


# load


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


def test_load_for_machines(run: Run, path: Path, tmp_path: Path) -> None:
    fill(path, job(1), job(2))
    target = tmp_path / "jobs.dump"
    run("dump", target)
    assert run("load", target).out.endswith("; 2 already present\n")
    assert json.loads(run("load", target, "--replace", "--json").out) == {
        "file": str(path), "jobs": 2, "records": 0, "replaced": 2, "present": 0, "clashing": 0, "next_id": 5000,
    }  # fmt: skip


def test_load_names_file_and_line_of_what_is_wrong(run: Run, path: Path, tmp_path: Path) -> None:
    fill(path, job(1))
    target = tmp_path / "jobs.dump"
    run("dump", target)
    target.write_text(target.read_text().replace('"id":1', '"id":"one"'))
    assert run("load", target) == Outcome(
        1, "", f"geartrain: {target}: line 2: id: Expected int, got str; nothing was loaded\n"
    )


def test_load_names_jobs_that_clash(run: Run, path: Path, tmp_path: Path) -> None:
    fill(path, job(1))
    target = tmp_path / "jobs.dump"
    run("dump", target)
    target.write_text(target.read_text().replace("H:host:1", "H:other:1"))
    code, out, err = run("load", target)
    assert (code, err) == (0, "geartrain: H:other:1 was not loaded: H:host:1 has the same id\n")
    assert out.endswith("; 1 skipped: their id, handle or unique key belongs to another job\n")


def test_load_of_a_file_that_is_not_there(run: Run, path: Path, tmp_path: Path) -> None:
    missing = tmp_path / "jobs.dump"
    assert run("load", missing) == Outcome(1, "", f"geartrain: {missing}: No such file or directory\n")
    assert not path.exists()


# compact


def test_compact_shrinks_a_file_and_keeps_what_is_in_it(run: Run, path: Path) -> None:
    fill(path, *(job(id, payload=b"x" * 1000) for id in range(1, 500)))
    change(path, "DELETE FROM jobs WHERE id > 5")
    before = run("dump").out.splitlines()[1:]
    was = path.stat().st_size
    sizes = json.loads(run("compact", "--json").out)
    assert sizes == {"file": str(path), "before": was, "after": path.stat().st_size}
    assert sizes["after"] < was / 10
    assert run("dump").out.splitlines()[1:] == before
    assert re.fullmatch(rf"{path}: \d+\.0 KiB before, \d+\.0 KiB after\n", run("compact").out)


def test_compact_looks_for_room_first(run: Run, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(path, *(job(id) for id in range(1, 100)))
    before = path.read_bytes()
    real = shutil.disk_usage(path.parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: real._replace(free=4096))
    code, _, err = run("compact")
    assert code == 1
    assert err.startswith(f"geartrain: not enough space in {path.parent}: 4.0 KiB free, compacting needs ")
    assert len(before) == path.stat().st_size


# Progress


def test_progress_is_shown_on_a_terminal_and_goes_away(monkeypatch: pytest.MonkeyPatch, run: Run, path: Path) -> None:
    fill(path, *(job(id) for id in range(1, 2001)))
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_REPORTS", 0.0)
    reader, writer = pty.openpty()
    with open(writer, "w") as terminal, open(reader, "rb", buffering=0) as screen:
        monkeypatch.setattr("sys.stderr", terminal)
        assert run("dump").out.count("\n") == 2002
        shown = b""
        while select.select([screen], [], [], 0)[0]:
            shown += screen.read(1000)
    assert shown == b"\rdumping 1,000\rdumping 2,000\r             \r"


def test_progress_is_not_shown_in_a_file(monkeypatch: pytest.MonkeyPatch, run: Run, path: Path) -> None:
    fill(path, *(job(id) for id in range(1, 2001)))
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_REPORTS", 0.0)
    assert run("dump").err == ""
