"""dump, load, doctor and compact as processes, with a running server and with the files of a stopped one."""

import json
import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.support import process, serving
from tests.support.gearman_peer import Kind, Peer, worker

FREE_PORT = ("--listen", "gearman://127.0.0.1:0")
FAR_AWAY = b"4000000000"  # seconds; in the year 2096
DUMPS = 5
SUBMITTERS = 4


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
def store(path: Path) -> tuple[str, str]:
    """The flags for this store."""
    return "--store", f"sqlite://{path}"


def run(*words: str | Path, code: int = 0, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[bytes]:
    """Run the installed command; it must end with this exit code and without a traceback."""
    command = [*before, str(serving.installed_command()), *map(str, words)]
    environment = process.clean_environment(Path("/nonexistent"))
    done = subprocess.run(command, env=environment, capture_output=True, timeout=120)
    assert done.returncode == code, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    return done


def dumped(*words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run("dump", *words).stdout.splitlines()]


def findings(*words: str, code: int = 0, before: tuple[str, ...] = ()) -> dict[str, dict[str, str]]:
    """The findings of doctor by check."""
    report = json.loads(run("doctor", "--json", *words, code=code, before=before).stdout)
    return {finding["check"]: finding for finding in report["findings"]}


def submit(client: Peer, function: bytes, count: int, data: bytes = b"") -> list[bytes]:
    return [client.submit(function, data=data, kind=Kind.SUBMIT_JOB_BG) for _ in range(count)]


# With a running server


def test_dump_under_load_has_every_acknowledged_job(store: tuple[str, str]) -> None:
    acknowledged: list[bytes] = []  # appended to by all submitters
    enough = threading.Event()

    def keep_submitting(port: int) -> None:
        with Peer(port) as client:
            while not enough.is_set():
                acknowledged.append(client.submit(b"work", data=os.urandom(100), kind=Kind.SUBMIT_JOB_BG))

    with serving.serve(*store, *FREE_PORT) as server:
        threads = [threading.Thread(target=keep_submitting, args=(server.port,)) for _ in range(SUBMITTERS)]
        for thread in threads:
            thread.start()
        dumps = []
        try:
            for _ in range(DUMPS):
                before = set(acknowledged)
                dumps.append((before, dumped(*store)))
        finally:
            enough.set()
            for thread in threads:
                thread.join(process.PATIENCE)
        with worker(server.port, b"work") as last:
            assert last.listing("status")[0] == [b"work", b"%d" % len(acknowledged), b"0", b"1"]
    sizes = []
    for before, (_, *jobs, end) in dumps:
        handles = {job["handle"].encode() for job in jobs}
        assert before <= handles <= set(acknowledged)
        assert end == {"geartrain": "end", "jobs": len(handles), "records": 0, "values": 0}
        sizes.append(len(handles))
    assert sizes == sorted(sizes)
    assert sizes[-1] > 0


def test_doctor_sees_the_server_and_does_not_disturb_it(store: tuple[str, str], tmp_path: Path) -> None:
    with serving.serve(*store, *FREE_PORT) as server:
        config = tmp_path / "geartrain.toml"
        config.write_text(f'listen = ["{server.url}"]\n')
        with Peer(server.port) as client:
            submit(client, b"work", 3)
            found = findings(*store, "--config", str(config))
            assert found["lock"]["text"].startswith(f"process {server.pid} (")
            assert found["ports"]["text"] == f"{server.url}: in use by the server that has the store open"
            assert found["jobs"]["text"] == "3 unfinished, 0 dead"
            submit(client, b"work", 1)
        assert "warning" not in server.stderr


def test_doctor_names_another_process_at_the_port(store: tuple[str, str], tmp_path: Path) -> None:
    with serving.serve("--store", "memory", *FREE_PORT) as stranger:
        config = tmp_path / "geartrain.toml"
        config.write_text(f'listen = ["{stranger.url}"]\n')
        found = findings(*store, "--config", str(config), code=1)
        assert found["ports"]["text"] == f"{stranger.url}: in use by process {stranger.pid}"


def test_load_and_compact_refuse_a_store_in_use(store: tuple[str, str], path: Path) -> None:
    with serving.serve(*store, *FREE_PORT) as server:
        for words in (("load", os.devnull), ("compact",)):
            complaint = run(*words, *store, code=1).stderr.decode()
            assert complaint == (f"geartrain: {path} is in use by process {server.pid}; stop it, or use another file\n")
        with Peer(server.port) as client:
            submit(client, b"work", 1)


# From one server to another


def test_jobs_move_with_their_handles_priorities_and_order(tmp_path: Path, store: tuple[str, str]) -> None:
    with serving.serve(*store, *FREE_PORT) as old, Peer(old.port) as client:
        kinds = (Kind.SUBMIT_JOB_LOW_BG, Kind.SUBMIT_JOB_BG, Kind.SUBMIT_JOB_HIGH_BG)
        handles = {
            (kind, number): client.submit(b"move", b"key %d %d" % (kind, number), b"\xff\0%d" % number, kind=kind)
            for number in range(3)
            for kind in kinds
        }
        client.send(Kind.SUBMIT_JOB_EPOCH, b"later", b"", FAR_AWAY, b"not now")
        scheduled = client.body(Kind.JOB_CREATED)
        client.send(Kind.SUBMIT_REDUCE_JOB_BG, b"reduce", b"", b"sum", b"0", b"numbers")
        reduced = client.body(Kind.JOB_CREATED)
    run("dump", *store, tmp_path / "jobs.dump")
    other = ("--store", f"sqlite://{tmp_path}/other/jobs.db")
    told = run("load", tmp_path / "jobs.dump", *other).stdout.decode()
    assert told == f"loaded 11 jobs and 0 records into {tmp_path}/other/jobs.db\n"
    assert dumped(*other)[1:] == dumped(*store)[1:]
    with serving.serve(*other, *FREE_PORT) as new, worker(new.port, b"move", b"reduce") as runner:
        assert runner.status(scheduled) == (1, 0, 0, 0)
        expected = [(handles[kind, number], kind, number) for kind in reversed(kinds) for number in range(3)]
        given = [runner.grab(Kind.GRAB_JOB_ALL) for _ in range(10)]
        assert [job.handle for job in given if job.function == b"move"] == [handle for handle, _, _ in expected]
        assert [job.data for job in given if job.function == b"move"] == [b"\xff\0%d" % n for _, _, n in expected]
        assert [job.unique for job in given if job.function == b"move"] == [
            b"key %d %d" % (kind, number) for _, kind, number in expected
        ]
        [last] = [job for job in given if job.function == b"reduce"]
        assert (last.handle, last.reducer, last.data) == (reduced, b"sum", b"numbers")
        for job in given:
            runner.send(Kind.WORK_COMPLETE, job.handle, b"done")
        fresh = runner.submit(b"move", kind=Kind.SUBMIT_JOB_BG)
        assert fresh not in {*handles.values(), scheduled, reduced}


def test_finished_jobs_are_dumped_with_records(store: tuple[str, str]) -> None:
    with serving.serve(*store, *FREE_PORT) as server, worker(server.port, b"work") as runner:
        handle = runner.submit(b"work", data=b"in", kind=Kind.SUBMIT_JOB_BG)
        assert runner.grab().handle == handle
        runner.send(Kind.WORK_COMPLETE, handle, b"out")
        runner.silence()
    assert [entry["geartrain"] for entry in dumped(*store)] == ["dump", "end"]
    _, record, end = dumped(*store, "--records")
    assert (record["handle"].encode(), record["state"], record["result"]) == (handle, "done", "out")
    assert end["records"] == 1


def test_old_dump_does_not_repeat_finished_jobs(tmp_path: Path, store: tuple[str, str]) -> None:
    backup = tmp_path / "jobs.dump"
    with serving.serve(*store, *FREE_PORT) as server, worker(server.port, b"work") as runner:
        handles = submit(runner, b"work", 2)
        run("dump", *store, backup)
        assert runner.grab().handle == handles[0]
        runner.send(Kind.WORK_COMPLETE, handles[0], b"")
        runner.silence()
    summary = json.loads(run("load", backup, *store, "--json").stdout)
    assert (summary["jobs"], summary["present"]) == (0, 2)
    with serving.serve(*store, *FREE_PORT) as server, worker(server.port, b"work") as runner:
        assert runner.grab().handle == handles[1]
        assert runner.take() is None


def test_dump_into_a_closed_pipe_is_quiet(store: tuple[str, str]) -> None:
    with serving.serve(*store, *FREE_PORT) as server, Peer(server.port) as client:
        submit(client, b"work", 200, data=b"x" * 10_000)
    command = [str(serving.installed_command()), "dump", *store]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as dump:
        assert dump.stdout is not None
        assert dump.stderr is not None
        assert dump.stdout.readline().startswith(b'{"geartrain":"dump"')
        dump.stdout.close()
        assert dump.stderr.read() == b""
        assert dump.wait(process.PATIENCE) == 1


# After crashes and damage


def killed_server(store: tuple[str, str], jobs: int) -> list[bytes]:
    """Leave a store that its server has not closed."""
    with serving.serve(*store, *FREE_PORT) as server:
        with Peer(server.port) as client:
            handles = submit(client, b"work", jobs)
        server.kill()
    return handles


def test_store_of_a_killed_server(store: tuple[str, str], path: Path) -> None:
    handles = killed_server(store, 10)
    log = path.with_name("jobs.db-wal").read_bytes()
    assert log
    assert [job["handle"].encode() for job in dumped(*store)[1:-1]] == handles
    found = findings(*store)
    assert found["last stop"]["level"] == "warning"
    assert found["lock"]["text"] == "no server has the store open"
    assert path.with_name("jobs.db-wal").read_bytes() == log
    assert run("compact", *store).stdout
    assert [job["handle"].encode() for job in dumped(*store)[1:-1]] == handles


def test_damaged_store_is_reported_and_the_server_recovers_jobs(store: tuple[str, str], path: Path) -> None:
    with serving.serve(*store, *FREE_PORT) as server, Peer(server.port) as client:
        submit(client, b"work", 100, data=b"x" * 1000)
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2)
        file.write(b"\xa5" * 4096)
    assert findings(*store, code=1)["integrity"]["level"] == "problem"
    assert run("dump", *store, code=1).stderr.startswith(b"geartrain: %b is damaged: " % os.fsencode(path))
    with serving.serve(*store, *FREE_PORT):
        pass
    assert findings(*store)["damaged files"]["level"] == "warning"
    assert 0 < len(dumped(*store)) - 2 < 100


def test_compact_after_a_backlog(store: tuple[str, str], path: Path) -> None:
    with serving.serve(*store, *FREE_PORT) as server, worker(server.port, b"work") as runner:
        submit(runner, b"work", 300, data=b"x" * 5000)
        for _ in range(299):
            runner.send(Kind.WORK_COMPLETE, runner.grab().handle, b"")
        runner.silence()
    before, jobs = path.stat().st_size, dumped(*store, "--records")[1:]
    sizes = json.loads(run("compact", *store, "--json").stdout)
    assert sizes == {"file": str(path), "before": before, "after": path.stat().st_size}
    assert sizes["after"] < before / 5
    assert dumped(*store, "--records")[1:] == jobs


@pytest.fixture
def read_only(path: Path) -> tuple[str, ...]:
    """A command prefix that makes the store's folder read-only.

    Permissions do not stop root, so for root the folder is mounted again, for that command alone.
    """
    if os.geteuid():
        return ("sh", "-c", 'chmod 500 "$0"; "$@"; code=$?; chmod 700 "$0"; exit $code', str(path.parent))
    folder = str(path.parent)
    script = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    command = ("unshare", "--mount", "sh", "-c", script, folder)
    if not shutil.which("unshare") or subprocess.run([*command, "true"], capture_output=True).returncode:
        pytest.skip("folders cannot be mounted read-only here")
    return command


@pytest.mark.parametrize("beside", [(), ("jobs.db-wal",)], ids=["alone", "with an empty log"])
def test_store_in_a_read_only_folder(
    store: tuple[str, str], path: Path, read_only: tuple[str, ...], beside: tuple[str, ...]
) -> None:
    with serving.serve(*store, *FREE_PORT) as server, Peer(server.port) as client:
        handles = submit(client, b"work", 3)
    for name in beside:
        path.with_name(name).touch()
    before = sorted(path.parent.iterdir())
    assert findings(*store, code=1, before=read_only)["folder"]["level"] == "problem"
    lines = run("dump", *store, before=read_only).stdout.splitlines()
    assert [json.loads(line)["handle"].encode() for line in lines[1:-1]] == handles
    for words in (("load", os.devnull), ("compact",)):
        assert run(*words, *store, code=1, before=read_only).stderr.startswith(b"geartrain: cannot ")
    assert sorted(path.parent.iterdir()) == before


def test_write_ahead_log_in_a_read_only_folder_is_an_error(
    store: tuple[str, str], path: Path, read_only: tuple[str, ...]
) -> None:
    killed_server(store, 3)
    path.with_name("jobs.db-shm").unlink()
    complaint = run("dump", *store, code=1, before=read_only).stderr.decode()
    assert complaint.startswith(f"geartrain: {path} has changes in jobs.db-wal, which cannot be read in a folder")
