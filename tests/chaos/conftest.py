"""Several servers on one PostgreSQL, and faults while they are under load.

    pytest tests/chaos --chaos-rounds 1000 --chaos-seed 7 --chaos-only "kill -9 of the postmaster"

The options exist when this folder is named on the command line (`make chaos`); without them, no fault occurs twice.
"""

import random

import pytest

SHORT = 0  # rounds: one for each fault, or as many as a test has time for


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--chaos-rounds", type=int, default=SHORT, help="how many faults occur; each kind in turn")
    parser.addoption("--chaos-seed", type=int, default=None, help="repeat the faults and jobs of an earlier run")
    parser.addoption(
        "--chaos-only", action="append", default=[], metavar="FAULT", help="faults with this in their name"
    )


@pytest.fixture
def chaos_rounds(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--chaos-rounds", SHORT))


@pytest.fixture
def only(request: pytest.FixtureRequest) -> list[str]:
    return list(request.config.getoption("--chaos-only", []))


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Another one each time, unless told; pytest shows it with a failure."""
    seed = request.config.getoption("--chaos-seed", None)
    seed = random.SystemRandom().randrange(2**32) if seed is None else int(seed)
    print(f"--chaos-seed {seed}")
    return seed
