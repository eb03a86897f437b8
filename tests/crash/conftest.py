"""Servers on a store that outlives them.

    pytest tests/crash --crash-rounds 1000 --crash-seed 7

The options exist when this folder is named on the command line; without them the usual number of rounds is run.
"""

import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.support import serving

ROUNDS = 50

Start = Callable[..., AbstractContextManager[serving.ServerProcess]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--crash-rounds", type=int, default=ROUNDS, help="how often a server is killed under load")
    parser.addoption("--workflow-members", type=int, default=300, help="how many jobs a workflow has")
    parser.addoption("--crash-seed", type=int, default=None, help="repeat the moments and jobs of an earlier run")


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--crash-rounds", ROUNDS))


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Another one each time, unless told; pytest shows it with a failure."""
    seed = request.config.getoption("--crash-seed", None)
    seed = random.SystemRandom().randrange(2**32) if seed is None else int(seed)
    print(f"--crash-seed {seed}")
    return seed


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of the store's file."""
    return tmp_path / "jobs.db"


@pytest.fixture
def start(path: Path) -> Start:
    """Starts a server on the file, with more flags if given; it stops cleanly unless the test kills it."""

    def serve(*flags: str) -> AbstractContextManager[serving.ServerProcess]:
        return serving.serve("--store", f"sqlite://{path}", "--listen", "gearman://127.0.0.1:0", *flags)

    return serve
