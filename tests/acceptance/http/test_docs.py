"""The curl commands of docs/http.md, executed against a real server."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from geartrain.doors.http import problems
from tests.acceptance.http.conftest import HTTP
from tests.support import serving
from tests.support.http_peer import Peer

PAGE = (Path(__file__).parents[3] / "docs" / "http.md").read_text()
USUAL = "http://127.0.0.1:4780"
WORKER = re.compile(r'"id":"([^"]+)","lease"')


class Step(NamedTuple):
    """A command, and what the page says it prints; `...` stands for the rest."""

    command: str
    output: str


def steps() -> list[Step]:
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append(Step(command, output.strip()))
    return found


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    """A server on a new disk, where ids begin with 1."""
    store = f"sqlite://{tmp_path_factory.mktemp('store')}/jobs.db"
    with serving.serve("--store", store, "--listen", HTTP, "--handle-prefix", "H:lap") as server:
        yield Peer(server.url)


@pytest.mark.peer("curl")
def test_the_commands_of_the_page(fresh: Peer) -> None:
    worker = "WORKER"
    assert len(steps()) > 8
    for step in steps():
        command = step.command.replace(USUAL, f"http://127.0.0.1:{fresh.port}").replace("WORKER", worker)
        ran = subprocess.run(shlex.split(command), capture_output=True, text=True, timeout=30, check=True)
        if found := WORKER.search(ran.stdout):
            worker = found[1]
        expected, more, _ = step.output.replace("WORKER", worker).partition("...")
        assert ran.stdout.startswith(expected), step
        assert more or ran.stdout == expected, step


def test_every_kind_of_problem_is_explained() -> None:
    assert set(re.findall(r"`([a-z-]+)`", " ".join(re.findall(r"^  \| (`.*?) \|", PAGE, re.MULTILINE)))) == (
        set(problems.STATUSES) - {"unsupported"}
    )
