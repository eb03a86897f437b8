"""Every test here runs once per target; targets.py says what a new protocol needs."""

import contextlib
import gc
from collections.abc import Callable, Iterator

import pytest

from tests.contract.protocols.targets import SERVERS, Target, Urls, parameters

Start = Callable[[str], Urls]


@pytest.fixture(scope="session")
def start() -> Iterator[Start]:
    """Starts a server when its first test needs it."""
    running: dict[str, Urls] = {}
    with contextlib.ExitStack() as stack:

        def start(name: str) -> Urls:
            if name not in running:
                running[name] = stack.enter_context(SERVERS[name]())
            return running[name]

        yield start


@pytest.fixture(scope="session", autouse=True)
def quick_garbage_collection() -> None:
    """Every test collects garbage to find what was left open: what was there before need not be looked at again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(params=parameters())
def target(request: pytest.FixtureRequest) -> Target:
    target: Target = request.param
    return target


@pytest.fixture
def urls(target: Target, start: Start) -> Urls:
    """All doors of the target's server."""
    return start(target.server)


@pytest.fixture
def url(target: Target, urls: Urls) -> str:
    return urls[target.scheme]
