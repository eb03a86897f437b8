"""The pages for those who come from another queue: both programs of each run as written, and ours is no longer."""

import contextlib
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import pages, process, redis_server, serving
from tests.support.postgres import Cluster
from tests.support.postgres_fixtures import cluster as cluster
from tests.support.postgres_fixtures import clusters as clusters
from tools import peers

BIN = peers.ENVIRONMENTS / "other-queues" / "bin"
ON_REDIS = ["from-celery.md", "from-rq.md", "from-dramatiq.md"]
PAGES = [*ON_REDIS, "from-procrastinate.md"]
SECONDS = 60
NO_CODE = {tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def sessions(page: str) -> tuple[list[str], list[str]]:
    """The commands of the two console sessions: theirs, and ours."""
    theirs, ours = (re.findall(r"^\$ (.*)$", block.text, re.MULTILINE) for block in pages.blocks(page, "console"))
    return theirs, ours


def command(line: str, address: str = "") -> list[str]:
    """A command of the page, with the programs of the environment that they are in."""
    words = re.sub(r"\w+://127\.0\.0\.1:\d+", address, line).split() if address else line.split()
    if words[0] == "geartrain":
        return [str(serving.installed_command()), *words[1:]]
    if words[0] == "python":
        return [sys.executable if words[1] == "shop.py" else str(BIN / "python"), *words[1:]]
    return ["env", "PYTHONPATH=.", str(BIN / words[0]), *words[1:]]


def run(folder: Path, line: str, address: str = "") -> str:
    ran = subprocess.run(
        command(line, address), cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert ran.returncode == 0, f"{line}: {ran.stdout}{ran.stderr}"
    return ran.stdout


@contextlib.contextmanager
def worker(folder: Path, line: str, address: str = "") -> Iterator[None]:
    running = process.Process(command(line, address), folder, merge_stderr=True)
    try:
        yield
    except BaseException:
        print("\n".join(running.lines))  # pytest shows it with the failure
        raise
    finally:
        running.process.terminate()  # their workers have processes of their own, which SIGKILL would leave behind
        running.wait()


@pytest.fixture(scope="module")
def server() -> Iterator[serving.ServerProcess]:
    with serving.serve("--store", "memory", "--listen", f"gearman://{serving.HOST}:0") as running:
        yield running


@pytest.mark.parametrize("page", ON_REDIS)
def test_ours(page: str, server: serving.ServerProcess, tmp_path: Path) -> None:
    pages.write_files(page, tmp_path, _4730=server.url)
    work, submit = sessions(page)[1]
    with worker(tmp_path, work):
        assert run(tmp_path, submit) == "6\n"


def test_ours_beside_procrastinate(server: serving.ServerProcess, tmp_path: Path) -> None:
    page = "from-procrastinate.md"
    pages.write_files(page, tmp_path, _4730=server.url)
    submit, work = sessions(page)[1]
    assert run(tmp_path, submit) == ""
    assert "6\n" in run(tmp_path, work)


@pytest.mark.peer("other-queues", "redis-server")
@pytest.mark.parametrize("page", ON_REDIS)
def test_theirs_on_redis(page: str, tmp_path: Path) -> None:
    with redis_server.serve() as redis:
        address = f"redis://{serving.HOST}:{redis.port}"
        pages.write_files(page, tmp_path, _6379=address)
        work, submit = sessions(page)[0]
        with worker(tmp_path, work, address):
            assert run(tmp_path, submit) == "6\n"


@pytest.mark.peer("other-queues", "postgresql-18")
def test_procrastinate(cluster: Cluster, tmp_path: Path) -> None:
    cluster.query("CREATE DATABASE procrastinate")
    pages.write_files("from-procrastinate.md", tmp_path, _5432=cluster.url("procrastinate"))
    create, submit, work = sessions("from-procrastinate.md")[0]
    for line in (create, submit):
        run(tmp_path, line)
    assert "6\n" in run(tmp_path, work)


def lines_of_code(text: str) -> int:
    """Lines with something on them that is no comment."""
    lines = iter(text.splitlines(keepends=True))
    tokens = tokenize.generate_tokens(lambda: next(lines, ""))
    return len({token.start[0] for token in tokens if token.type not in NO_CODE})


@pytest.mark.parametrize("page", PAGES)
def test_ours_is_no_longer(page: str) -> None:
    theirs, ours = (lines_of_code(block.text) for block in pages.blocks(page, "python"))
    assert ours <= theirs
    their_commands, our_commands = sessions(page)
    assert len(our_commands) <= len(their_commands)
