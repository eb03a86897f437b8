"""`geartrain import periodic`: the bytes that a server sends as a DUMP, imported into the store of another."""

import json
from pathlib import Path

from tests.acceptance.periodic.conftest import Start
from tests.support import serving
from tests.support.periodic_peer import WORKER, Command, Dialect, Peer

JOBS = {
    (b"mail", b"scheduled", b"payload", 4_000_000_000, 0, 0),
    (b"mail", b"-", bytes(range(256)), 4_000_000_001, -7, 9),
    (b"resize", b"counted", b"", 1000, 3, 0),
    (b"resize", b"due", b"", 2000, 0, 5),
}


def test_jobs_of_a_dump(start: Start, dialect: Dialect, tmp_path: Path) -> None:
    """A dry run first; then the jobs are in a new server's store, and a second import adds none."""
    dump, store = tmp_path / "jobs.dump", f"sqlite://{tmp_path / 'jobs.db'}"
    with start() as old, Peer(old.port, dialect) as client:
        for function, name, payload, run_at, count, timeout in JOBS:
            client.submit(function, name, payload, run_at, count=count, timeout=timeout)
        dump.write_bytes(client.data(client.send(Command.DUMP)))
    words = ("import", "periodic", str(dump), "--store", store)
    shown = json.loads(_run(tmp_path, *words, "--dry-run", "--json"))
    assert {row["function"]: (row["normal"], row["scheduled"]) for row in shown["functions"]} == {
        "mail": (2, 2),
        "resize": (2, 0),
    }
    assert not (tmp_path / "jobs.db").exists()
    assert _run(tmp_path, *words) == f"imported 4 jobs from {dump} into {tmp_path / 'jobs.db'}\n"
    assert "imported 0 jobs" in (again := _run(tmp_path, *words))
    assert "4 already present" in again
    listen = ("--store", store, "--listen", "periodic://127.0.0.1:0")
    with serving.serve(*listen) as new, Peer(new.port, dialect, WORKER) as worker:
        assert {entry[1:7] for entry in worker.dump()} == JOBS
        worker.offer(b"resize")
        assert [worker.take().name, worker.take().name] == [b"counted", b"due"]


def test_unknown_file(tmp_path: Path) -> None:
    other = tmp_path / "passwd"
    other.write_text("root:x:0:0\n")
    done = serving.run_command(tmp_path, "import", "periodic", str(other), "--dry-run")
    assert done.returncode == 1
    assert f"{other} is not a dump of a Periodic server" in done.stderr
    assert other.read_text() == "root:x:0:0\n"


def _run(folder: Path, *words: str) -> str:
    done = serving.run_command(folder, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout
