"""One server for the whole module, and the installed command beside it."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support import process, serving

# Of the server's URLs, in this order.
SCHEMES = ("gearman", "danga", "periodic", "memodb+tcp", "gearmonkey", "http")

Geartrain = Callable[..., "Outcome"]


class Outcome(NamedTuple):
    """Exit code and output of the command."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


def run(server: str, *words: str | Path, stdin: bytes = b"", code: int = 0) -> Outcome:
    """The installed command, which has to end with this code and without a traceback."""
    environment = {**process.clean_environment(Path("/nonexistent")), "GEARTRAIN_SERVER": server}
    command = [str(serving.installed_command()), *map(str, words)]
    done = subprocess.run(command, env=environment, input=stdin, capture_output=True, timeout=60)
    err = done.stderr.decode("utf-8", "replace")
    assert "Traceback" not in err, err
    assert done.returncode == code, err
    return Outcome(done.returncode, done.stdout, err)


@pytest.fixture(scope="module")
def server() -> Iterator[serving.ServerProcess]:
    listen = [word for scheme in SCHEMES for word in ("--listen", f"{scheme}://127.0.0.1:0")]
    with serving.serve(*listen) as running:
        yield running


@pytest.fixture(params=SCHEMES)
def url(server: serving.ServerProcess, request: pytest.FixtureRequest) -> str:
    """The server's URL for each protocol in turn."""
    return server.urls[SCHEMES.index(request.param)]


@pytest.fixture
def geartrain(server: serving.ServerProcess) -> Geartrain:
    return lambda *words, **more: run(server.url, *words, **more)


@pytest.fixture
def work(server: serving.ServerProcess, tmp_path: Path) -> Iterator[Callable[..., process.Process]]:
    """Starts `geartrain work`; what is started ends with the test."""
    started: list[process.Process] = []

    def work(*words: str, url: str = "") -> process.Process:
        home = tmp_path / f"work{len(started)}"
        home.mkdir()
        command = [str(serving.installed_command()), "work", "--server", url or server.url, *words]
        started.append(process.Process(command, home))
        return started[-1]

    yield work
    for worker in started:
        if not worker.closed:
            worker.process.terminate()
            worker.wait()
        assert "Traceback" not in worker.stderr
