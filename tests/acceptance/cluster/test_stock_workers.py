"""Stock Gearman workers that know three servers, of which one after the other is killed: every job runs."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.members import Fleet, Member
from tests.support import process, serving
from tests.support.gearman_peer import Kind, Peer
from tests.support.postgres_fixtures import cluster as cluster
from tests.support.postgres_fixtures import clusters as clusters
from tests.support.postgres_fixtures import schema as schema
from tests.support.postgres_fixtures import schema_url as schema_url
from tests.support.postgres_programs import NEWEST, PEERS
from tests.support.waiting import wait_for

HERE = Path(__file__).parent / "workers"
WORKERS = {
    "perl": ("perl", str(HERE / "worker.pl")),
    "php": ("php", str(HERE / "worker.php")),
    "gear": (sys.executable, str(HERE / "worker.py")),
}
JOBS = 30  # per round
FUNCTION = b"note"

pytestmark = pytest.mark.peer(PEERS[NEWEST])


@contextlib.contextmanager
def working(command: tuple[str, ...], log: Path, fleet: Fleet) -> Iterator[None]:
    servers = [f"{serving.HOST}:{port}" for port in fleet.ports()]
    environment = process.clean_environment(log.parent)
    complaints = log.with_name("complaints")
    with (
        complaints.open("wb") as stderr,
        subprocess.Popen([*command, str(log), *servers], env=environment, stderr=stderr) as worker,
    ):
        try:
            yield
        finally:
            status = worker.poll()
            worker.kill()
            print("exit status of the worker:", status, complaints.read_text(errors="replace"), sep="\n")


def submit(fleet: Fleet, when: str) -> set[str]:
    """Submit background jobs at every server that is up; return the payloads of those that were acknowledged."""
    acknowledged = set()
    for member in fleet.alive:
        with Peer(member.port) as client:
            for number in range(JOBS):
                payload = f"{when} {member.name} {number}"
                client.submit(FUNCTION, b"", payload.encode(), kind=Kind.SUBMIT_JOB_BG)
                acknowledged.add(payload)
    return acknowledged


def wait_for_lines(log: Path, expected: set[str]) -> None:
    def missing() -> set[str]:
        return expected - set(log.read_text().splitlines())

    try:
        wait_for(lambda: not missing(), "every job run")
    except AssertionError:
        raise AssertionError(f"never run: {sorted(missing())}") from None


@pytest.mark.parametrize("library", [pytest.param(name, marks=pytest.mark.peer(name)) for name in WORKERS])
def test_every_job_runs_although_one_server_after_the_other_is_killed(
    schema_url: str, tmp_path: Path, library: str
) -> None:
    log = tmp_path / "log"
    log.touch()
    with Fleet([Member(f"server-{number}", schema_url) for number in range(3)]) as fleet:
        with working(WORKERS[library], log, fleet):
            expected = submit(fleet, "before")
            for member in fleet.members:
                expected |= submit(fleet, f"with {member.name}")
                member.kill()
                expected |= submit(fleet, f"without {member.name}")
                wait_for_lines(log, expected)
                member.start()
        assert set(log.read_text().splitlines()) == expected, "none was invented"
