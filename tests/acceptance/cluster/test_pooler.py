"""Through PgBouncer in transaction mode: servers, and everything that operators do. tests/chaos has the load."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.cluster.conftest import POSTGRESQL, member
from tests.support import pgbouncer, postgres, serving
from tests.support.gearman_peer import Kind, Peer, worker
from tests.support.http_peer import Peer as HttpPeer
from tests.support.waiting import wait_for

pytestmark = [POSTGRESQL, pytest.mark.peer(pgbouncer.PEER)]

FUNCTION = b"f"


@pytest.fixture
def pooler(cluster: postgres.Cluster) -> Iterator[pgbouncer.PgBouncer]:
    with pgbouncer.PgBouncer(cluster.port) as running:
        yield running


def geartrain(folder: Path, *words: str) -> str:
    done = serving.run_command(folder, *words)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def run_all(server: serving.ServerProcess, count: int) -> set[bytes]:
    """Run so many jobs; their handles."""
    ran = set()
    with worker(server.port, FUNCTION) as taker:
        while len(ran) < count:
            handle = taker.grab().handle
            taker.send(Kind.WORK_COMPLETE, handle, b"")
            ran.add(handle)
        taker.silence()
    return ran


def test_no_acknowledged_job_is_lost_with_the_pooler(pooler: pgbouncer.PgBouncer, schema: str) -> None:
    """One client submits without a pause while PgBouncer is restarted three times."""
    with member(pooler.url(schema=schema), "one", "--store-patience", "60s") as server:
        acknowledged: set[bytes] = set()
        over = threading.Event()

        def submit() -> None:
            with Peer(server.port) as client:
                while not over.is_set():
                    acknowledged.add(client.submit(FUNCTION, b"", b"", kind=Kind.SUBMIT_JOB_BG))

        submitter = threading.Thread(target=submit)
        submitter.start()
        try:
            for _ in range(3):
                before = len(acknowledged)
                pooler.stop()
                pooler.start()
                wait_for(lambda before=before: len(acknowledged) > before + 1, "jobs are acknowledged again")  # type: ignore[misc]
        finally:
            over.set()
            submitter.join()
        assert run_all(server, len(acknowledged)) == acknowledged
        assert HttpPeer(server.urls[1]).get("/overview?local=true")["queued"] == 0


def test_operators_through_the_pooler(tmp_path: Path, pooler: pgbouncer.PgBouncer, schema: str) -> None:
    url = pooler.url(schema=schema)
    with member(url, "one") as one, member(url, "two") as two:
        with Peer(one.port) as client:
            handles = {client.submit(FUNCTION, b"", b"x", kind=Kind.SUBMIT_JOB_BG) for _ in range(3)}
        geartrain(tmp_path, "dump", "jobs.dump", "--store", url)
        report = json.loads(geartrain(tmp_path, "load", "jobs.dump", "--store", url, "--json"))
        assert (report["jobs"], report["present"]) == (0, 3)
        findings = json.loads(serving.run_command(tmp_path, "doctor", "--store", url, "--json").stdout)["findings"]
        assert {each["check"]: each["level"] for each in findings}["orphans"] == "ok"
        expected = {"ports", "safety"}  # the servers have others, and this PostgreSQL does not wait for the disk
        assert {each["check"] for each in findings if each["level"] == "problem"} <= expected
        geartrain(tmp_path, "cluster", "drain", "one", "--server", two.url)
        assert one.wait() == 0
        wait_for(lambda: HttpPeer(two.urls[1]).get("/overview?local=true")["queued"] == 3, "the other one has the jobs")
        assert run_all(two, 3) == handles
