"""doctor: its findings for healthy, damaged and foreign stores, and that it changes none of them."""

import json
import os
import re
import shutil
import socket
from pathlib import Path

import pytest

from geartrain.address import Address
from geartrain.maintenance.doctor import contents, disk, examination, machine
from geartrain.maintenance.doctor.finding import Check, Finding, Level
from geartrain.model import JobState
from geartrain.server import listeners
from geartrain.server.config.settings import Settings
from geartrain.store import lock
from geartrain.store.sqlite import SqliteStore
from tests.unit.cli.conftest import Run
from tests.unit.cli.stores import change, damage, fill, job


def examined(path: Path, thorough: bool = False) -> dict[str, Finding]:
    flags = {"store": f"sqlite://{path}"}
    return {finding.check: finding for finding in examination.examine(flags, thorough)}


def levels(found: dict[str, Finding]) -> dict[str, str]:
    """Of everything that is not well."""
    return {check: finding.level.value for check, finding in found.items() if finding.level is not Level.OK}


@pytest.mark.parametrize("thorough", [False, True])
def test_healthy_store(run: Run, path: Path, thorough: bool) -> None:
    fill(path, job(1))
    code, out, err = run("doctor", *(["--thorough"] if thorough else []))
    assert (code, err) == (0, "")
    assert out.endswith("0 problems, 0 warnings\n")
    assert {line.split("  ")[0] for line in out.splitlines()[:-1] if line[0] != " "} == {"ok"}
    for check in ("settings", "folder", "space", "disk speed", "lock", "layout", "integrity", "jobs", "ports"):
        assert re.search(rf"^ok       {check} ", out, re.MULTILINE), check


def test_doctor_before_the_first_start_makes_nothing(run: Run, path: Path) -> None:
    code, out, _ = run("doctor")
    assert code == 0
    assert "the server creates it" in out
    assert not path.parent.exists()


def test_doctor_for_machines(run: Run, path: Path) -> None:
    fill(path, job(1, state=JobState.DEAD, reason="given up"))
    code, out, _ = run("doctor", "--json")
    report = json.loads(out)
    assert (code, report["warning"], report["problem"]) == (0, 1, 0)
    [dead] = [finding for finding in report["findings"] if finding["level"] != "ok"]
    assert (dead["check"], dead["text"].startswith("0 unfinished, 1 dead")) == ("jobs", True)
    assert "geartrain jobs --state dead" in dead["advice"]


def test_wrong_settings_are_a_problem_and_the_rest_goes_on(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "wrong.toml"
    config.write_text("backlog = 0\n")
    code, out, _ = run("doctor", "--config", config)
    assert code == 1
    assert out.startswith(f"problem  settings       {tmp_path}")
    assert re.search(r"^ok       versions ", out, re.MULTILINE)


def test_damaged_store_is_a_problem(run: Run, path: Path) -> None:
    fill(path, *(job(id, payload=b"x" * 1000) for id in range(1, 200)))
    damage(path)
    before = path.read_bytes()
    code, out, _ = run("doctor")
    assert code == 1
    assert "1 problem, 0 warnings" in out
    assert re.search(r"^problem  integrity ", out, re.MULTILINE)
    assert path.read_bytes() == before


def test_file_that_is_no_database(run: Run, path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("this is my diary\n" * 100)
    assert levels(examined(path)) == {"layout": "problem"}


def test_file_of_a_newer_version(run: Run, path: Path) -> None:
    fill(path)
    change(path, "PRAGMA user_version = 99")
    assert levels(examined(path)) == {"layout": "problem"}


def test_wrong_index_is_found_when_one_is_thorough(run: Run, path: Path) -> None:
    fill(path, over=3)
    change(path, "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE INDEX records_by_id ON "
                 "records (attempts)' WHERE name = 'records_by_id'")  # fmt: skip
    assert levels(examined(path)) == {}
    assert levels(examined(path, thorough=True)) == {"integrity": "problem"}


def test_look_that_takes_too_long_is_given_up(run: Run, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(path, *(job(id, payload=b"x" * 5000) for id in range(1, 3000)))
    monkeypatch.setattr(contents, "READ_SECONDS", 1e-9)
    found = examined(path)
    assert levels(found) == {"integrity": "warning"}
    assert "--thorough" in found["integrity"].advice
    assert levels(examined(path, thorough=True)) == {}


def test_store_that_was_not_closed(run: Run, path: Path) -> None:
    fill(path)
    change(path, "UPDATE meta SET value = 0 WHERE name = 'clean'")
    assert levels(examined(path)) == {"last stop": "warning"}


def test_what_was_set_aside_is_told(run: Run, path: Path) -> None:
    fill(path, job(1))
    change(path, "INSERT INTO broken (found_at, complaint) VALUES (5, 'no job')")
    for name in ("jobs.db.damaged-20260101T000000-01", "jobs.db.damaged-20260101T000000-01-wal"):
        path.with_name(name).touch()
    found = examined(path)
    assert levels(found) == {"broken rows": "warning", "damaged files": "warning"}
    assert found["damaged files"].text.startswith("1 in ")


def test_large_log_is_told(run: Run, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(path, job(1))
    log = path.with_name("jobs.db-wal")
    with log.open("wb") as file:
        file.truncate(300 * 1024**2)
    assert levels(examined(path)) == {"log": "warning"}


@pytest.mark.parametrize(("free", "level"), [(1024**2, "problem"), (65 * 1024**2, "warning")])
def test_little_space_is_told(run: Run, path: Path, monkeypatch: pytest.MonkeyPatch, free: int, level: str) -> None:
    fill(path, job(1))
    with path.with_name("jobs.db-wal").open("wb") as log:
        log.truncate(100 * 1024**2)
    real = shutil.disk_usage(path.parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: real._replace(free=free))
    assert levels(examined(path)) == {"space": level}


def test_holder_of_the_lock_is_named(run: Run, held: SqliteStore) -> None:
    before = held.path.with_name("jobs.db.lock").read_bytes()
    found = examined(held.path)
    assert levels(found) == {}
    assert found["lock"].text.startswith(f"process {os.getpid()} (")
    assert held.path.with_name("jobs.db.lock").read_bytes() == before


def test_lock_that_nobody_holds_any_more(run: Run, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(path)
    path.with_name("jobs.db.lock").write_text(f"{os.getpid()}\n")
    assert lock.find_holder(path) is None
    monkeypatch.setattr(lock, "_LOCKS", path / "nothing")  # a system that has no such list
    path.with_name("jobs.db.lock").write_text(f"{2**30}\n")
    assert lock.find_holder(path) is None


def test_lock_on_a_system_without_a_list_of_locks(
    run: Run, held: SqliteStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(lock, "_LOCKS", tmp_path / "nothing")
    found = lock.find_holder(held.path)
    assert found is not None
    assert (found.pid, found.certain) == (os.getpid(), False)


@pytest.mark.parametrize(
    ("line", "held"),
    [
        ("1: FLOCK  ADVISORY  WRITE {pid} {device}:{inode} 0 EOF", True),
        ("1: FLOCK  ADVISORY  WRITE 0 {device}:{inode} 0 EOF", True),  # by a process in another container
        ("1: FLOCK  ADVISORY  WRITE {pid} 00:2a:{inode} 0 EOF", True),  # on a file system with devices of its own
        ("1: FLOCK  ADVISORY  WRITE 0 00:2a:{inode} 0 EOF", False),
        ("1: FLOCK  ADVISORY  WRITE {pid} {device}:1 0 EOF", False),
        ("1: POSIX  ADVISORY  WRITE {pid} {device}:{inode} 0 EOF", False),
        ("1: -> FLOCK", False),
    ],
)
def test_systems_list_of_locks_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, held: bool) -> None:
    lock_file = tmp_path / "jobs.db.lock"
    lock_file.write_text("4711\n")
    status = lock_file.stat()
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    locks = tmp_path / "locks"
    locks.write_text(line.format(pid=4711, device=device, inode=status.st_ino) + "\n")
    monkeypatch.setattr(lock, "_LOCKS", locks)
    found = lock.find_holder(tmp_path / "jobs.db")
    assert (found is not None) == held
    assert found is None or (found.pid, found.certain) == (4711, True)


def test_disk_is_measured_and_nothing_is_left(tmp_path: Path) -> None:
    speed = disk.measure(tmp_path)
    assert 0 < speed.median <= speed.p99
    assert list(tmp_path.iterdir()) == []


def test_port_that_somebody_has_is_a_problem(run: Run, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        config = tmp_path / "taken.toml"
        config.write_text(f'listen = ["gearman://127.0.0.1:{port}", "gearman://127.0.0.1:0"]\nstore = "memory"\n')
        code, out, _ = run("doctor", "--config", config)
    assert code == 1
    assert f"problem  ports          gearman://127.0.0.1:{port}: in use\n" in out
    assert "ok       ports          gearman://127.0.0.1:0 is free\n" in out
    assert "in memory: all jobs are lost" in out


def test_default_port_in_use_is_a_problem_only_if_all_are(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = Address("gearman", "127.0.0.1", other.getsockname()[1], "")
        free = taken._replace(port=0)
        for defaults, expected in (((taken, free), [Level.WARNING, Level.OK]), ((taken,), [Level.PROBLEM])):
            monkeypatch.setattr(listeners, "default_addresses", lambda tls, defaults=defaults: iter(defaults))
            found = machine.ports(Settings(), None, Check("ports"))
            assert [finding.level for finding in found] == expected


def test_address_that_cannot_be_is_a_problem() -> None:
    settings = Settings(listen=(Address("periodic+unix", "", 0, "/" + "x" * 200),))
    [found] = machine.ports(settings, None, Check("ports"))
    assert (found.level, "path too long" in found.text) == (Level.PROBLEM, True)
