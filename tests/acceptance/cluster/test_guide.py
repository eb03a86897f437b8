"""The page `docs/cluster.md`, command by command; and what it says about failovers, PgBouncer and its own files.

The commands run as they are written, in one shell; ports, the host name, times and the numbers of nodes and jobs are
others. A number that the page shows twice must be the same both times.
"""

import contextlib
import os
import random
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.cluster.conftest import POSTGRESQL, member
from tests.support import pgbouncer, postgres, postgres_pair, process, serving
from tests.support.console import Shell, Step, steps
from tests.support.gearman_peer import Kind, Peer, worker
from tests.support.waiting import wait_for

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "cluster.md"
PROMISES = ROOT / "docs" / "promises.md"
PORTS = ("4731", "4732", "4733", "4741", "4742", "4743")
PID_FILES = ("one.pid", "two.pid", "three.pid")
# What is asked again until it is as on the page: servers join, are taken over and leave in their own time.
ASKED_AGAIN = ("geartrain cluster --server", "cat ", "geartrain show")
# What differs from run to run: time, date and version, in the table of servers.
VARIABLE = re.compile(r"\b\d+(?:\.\d+)?(?:ms|s)\b|\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\b|\b\d+\.\d+\.\d+(?=\s+serving)")
NUMBER = re.compile(r"\b(?:10485\d\d|45\d{14})\b")  # of a node, or of a job

pytestmark = POSTGRESQL


class Machine:
    """The page's machine: a shell, its PostgreSQL, and free ports for its ports."""

    def __init__(self, home: Path, cluster: postgres.Cluster) -> None:
        self._folder = home / "shell"
        tools = home / "tools"
        tools.mkdir()
        (tools / "geartrain").symlink_to(serving.installed_command())
        (tools / "psql").symlink_to(cluster.programs.folder / "psql")
        free = filter(serving.is_free, random.sample(serving.PORTS, 100))
        self._names = {port: str(ours) for port, ours in zip(PORTS, free, strict=False)} | {"5432": str(cluster.port)}
        self._numbers: dict[str, str] = {}  # ours, by the page's
        self._shell = Shell(home, tools)
        self._shell.run(f"export PGHOST={serving.HOST} PGPORT={cluster.port} PGUSER={postgres.USER}")

    def show(self, step: Step) -> str:
        """What a step prints, in the page's words."""
        command = step.command
        for name, ours in {**self._names, **self._numbers}.items():
            command = command.replace(name, ours)
        command = command.replace("H:lap:", f"H:{os.uname().nodename}:")
        started = re.search(r"^geartrain serve .* > (\S+) 2>&1 &$", command)
        log = self._folder / (started.group(1) if started else "no.log")
        log.unlink(missing_ok=True)
        printed = self._shell.run(command)
        if started:
            wait_for(lambda: log.exists() and "listening " in log.read_text(), f"{log.name} says that it listens")
        for name, ours in self._names.items():
            printed = printed.replace(f":{ours}", f":{name}")
        return self._renumbered(printed.replace(f"H:{os.uname().nodename}:", "H:lap:"), step.output)

    def _renumbered(self, printed: str, page: str) -> str:
        """With the numbers of the page, where these are new or have stood for ours before."""
        theirs, ours = NUMBER.findall(page), NUMBER.findall(printed)
        if len(theirs) == len(ours):
            for their, own in zip(theirs, ours, strict=True):
                if own not in self._numbers.values():
                    self._numbers.setdefault(their, own)
        for their, own in self._numbers.items():
            printed = printed.replace(own, their)
        return printed

    def close(self) -> None:
        for name in PID_FILES:
            with contextlib.suppress(OSError, ValueError):
                os.kill(int((self._folder / name).read_text()), signal.SIGKILL)
        self._shell.close()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with postgres.running() as cluster:
        one = Machine(tmp_path, cluster)
        yield one
        one.close()


def same(printed: str, page: str) -> bool:
    """Whether two outputs differ in nothing but times, the version, and the width of columns."""

    def words(text: str) -> list[list[str]]:
        return [VARIABLE.sub("*", line).split() for line in text.splitlines()]

    return words(printed) == words(page)


def test_page(machine: Machine) -> None:
    page = steps(PAGE.read_text())
    for words, count in {"geartrain serve": 4, "kill -9": 1, "geartrain cluster drain": 1, "psql": 2}.items():
        assert sum(step.command.startswith(words) for step in page) == count, words
    for step in page:
        deadline = time.monotonic() + process.PATIENCE
        printed = machine.show(step)
        while not same(printed, step.output) and step.command.startswith(ASKED_AGAIN) and time.monotonic() < deadline:
            printed = machine.show(step)
        assert same(printed, step.output), f"after $ {step.command}: {printed}"


def submit(server: serving.ServerProcess, payload: bytes) -> None:
    with Peer(server.port) as client:
        client.submit(b"report", b"", payload, kind=Kind.SUBMIT_JOB_BG)


def run_one(server: serving.ServerProcess) -> bytes:
    """Run the next job; return its payload."""
    with worker(server.port, b"report") as peer:
        job = peer.grab()
        peer.send(Kind.WORK_COMPLETE, job.handle, b"")
        return job.data


def test_a_failover() -> None:
    with postgres_pair.Pair() as pair, member(pair.url, "one", "--lease", "60s") as server:
        submit(server, b"before")
        pair.fail_over()
        submit(server, b"after")
        assert [run_one(server), run_one(server)] == [b"before", b"after"]


@pytest.mark.peer(pgbouncer.PEER)
def test_through_pgbouncer(cluster: postgres.Cluster, schema: str) -> None:
    """With two connections to PostgreSQL for each server."""
    with (
        pgbouncer.PgBouncer(cluster.port, pool_size=4) as pooler,
        member(pooler.url(schema=schema), "one") as one,
        member(pooler.url(schema=schema), "two"),
    ):
        submit(one, b"monday")
        assert run_one(one) == b"monday"


def test_a_role_that_does_not_own_the_database(cluster: postgres.Cluster, schema: str) -> None:
    cluster.query("CREATE ROLE tenant LOGIN")
    try:
        cluster.query(f"CREATE SCHEMA {schema} AUTHORIZATION tenant")
        url = cluster.url(schema=schema).replace(f"{postgres.USER}@", "tenant@")
        with member(url, "one") as server:
            submit(server, b"monday")
            assert run_one(server) == b"monday"
    finally:
        cluster.query(f"DROP SCHEMA {schema} CASCADE; DROP ROLE tenant")


def test_tests_that_the_guarantees_name() -> None:
    rows = re.findall(r"`(tests/[a-z_/]+\.py)`(?: \(((?:`\w+`(?:, )?)+)\))?", PROMISES.read_text())
    assert len(rows) > 10
    for path, names in rows:
        source = (ROOT / path).read_text()
        for name in re.findall(r"\w+", names):
            assert re.search(rf"^ *(?:def|class) {name}\b", source, re.MULTILINE), f"{path} has no {name}"
