"""Web applications and workers of tasks, as people start them."""

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support import process, serving
from tests.support.http_peer import Peer

UVICORN = (sys.executable, "-m", "uvicorn", "--port", "0")
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


@contextlib.contextmanager
def running(folder: Path, *command: str) -> Iterator[process.Process]:
    program = process.Process(command, folder, merge_stderr=True)
    try:
        yield program
    finally:
        program.kill()


@contextlib.contextmanager
def web_server(folder: Path, *command: str) -> Iterator[Peer]:
    """A web server, once it says where it listens."""
    with running(folder, *command) as program:
        program.wait_until(lambda lines: bool(_ADDRESS.search("\n".join(lines))), "where it listens")
        address = _ADDRESS.search("\n".join(program.lines))
        assert address is not None
        yield Peer(address[0])


@contextlib.contextmanager
def task_worker(folder: Path, target: str) -> Iterator[process.Process]:
    with running(folder, str(serving.installed_command()), "work", target) as program:
        yield program
