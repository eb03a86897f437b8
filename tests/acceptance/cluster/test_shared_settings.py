"""What operators set at one server holds at all of them, and schedules run once."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.members import Fleet, Member
from tests.support import serving
from tests.support.gearman_peer import Kind, Peer, worker
from tests.support.postgres_fixtures import cluster as cluster
from tests.support.postgres_fixtures import clusters as clusters
from tests.support.postgres_fixtures import schema as schema
from tests.support.postgres_fixtures import schema_url as schema_url
from tests.support.postgres_programs import NEWEST, PEERS
from tests.support.waiting import wait_for

pytestmark = pytest.mark.peer(PEERS[NEWEST])


@pytest.fixture
def fleet(schema_url: str) -> Iterator[Fleet]:
    with Fleet([Member(name, schema_url) for name in ("one", "two")]) as fleet:
        yield fleet


def geartrain(folder: Path, member: Member, *words: str) -> str:
    """Run a verb at a server."""
    done = serving.run_command(folder, *words, "--server", f"gearman://{serving.HOST}:{member.port}")
    assert done.returncode == 0, done.stderr
    return done.stdout


def listed(folder: Path, member: Member, *words: str) -> Any:
    return json.loads(geartrain(folder, member, *words, "--json"))


def is_paused(folder: Path, member: Member, function: str) -> bool:
    functions = listed(folder, member, "status")["functions"]
    return any(row["name"] == function and row["paused"] for row in functions)


def test_a_pause_holds_at_every_server(fleet: Fleet, tmp_path: Path) -> None:
    one, two = fleet.members
    geartrain(tmp_path, one, "pause", "resize")
    wait_for(lambda: is_paused(tmp_path, two, "resize"), "the pause is known at the other server")
    with Peer(two.port) as client, worker(two.port, b"resize") as busy:
        client.submit(b"resize", b"", b"x", kind=Kind.SUBMIT_JOB_BG)
        assert busy.take() is None
        geartrain(tmp_path, one, "resume", "resize")
        wait_for(lambda: not is_paused(tmp_path, two, "resize"), "the function is resumed at the other server")
        assert busy.grab().data == b"x"


def test_schedules_are_known_and_changed_everywhere(fleet: Fleet, tmp_path: Path) -> None:
    one, two = fleet.members
    geartrain(tmp_path, one, "cron", "add", "nightly", "0 3 * * *", "report")

    def names(member: Member) -> list[str]:
        return [json.loads(line)["name"] for line in geartrain(tmp_path, member, "cron", "list", "--json").splitlines()]

    wait_for(lambda: names(two) == ["nightly"], "the schedule is known at the other server")
    geartrain(tmp_path, two, "cron", "remove", "nightly")
    wait_for(lambda: names(one) == [], "the schedule is gone at the first server")


def test_a_schedule_runs_once_and_goes_on_with_another_leader(fleet: Fleet, tmp_path: Path) -> None:
    one, two = fleet.members  # the first one that started leads
    geartrain(tmp_path, two, "cron", "add", "often", "@every 1s", "tick")
    runs: dict[bytes, bytes] = {}

    def collect(peer: Peer, most: int) -> None:
        while len(runs) < most:
            job = peer.grab()
            assert job.handle not in runs, "a run was submitted twice"
            runs[job.handle] = job.data
            peer.send(Kind.WORK_COMPLETE, job.handle, b"")

    with worker(one.port, b"tick") as peer:
        collect(peer, 3)
        peer.silence()
        peer.submit(b"other", kind=Kind.SUBMIT_JOB_BG)  # acknowledged when the ends before it are stored
    one.kill()
    with worker(two.port, b"tick") as peer:
        collect(peer, 6)
