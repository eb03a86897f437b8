"""Fixtures for every test, and the account of peers that could not be tested."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # for `from tests.support import serving`, however pytest is started

from geartrain import compiled  # noqa: E402
from tests.support import compiled_core, order, serving  # noqa: E402

# Profiles of hypothesis: no time limits, which a busy machine exceeds. CI runs the same examples every time.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, database=None)
settings.register_profile("quick", settings.get_profile("default"), max_examples=10)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "default")

NOT_TESTED = pytest.StashKey[dict[str, str]]()  # why, by peer


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "peer(*names): needs these real programs or libraries (tools/peers.py)")
    outdated = compiled_core.outdated(ROOT / "src")
    if outdated and not compiled.is_pure_requested():
        names = " ".join(str(path.relative_to(ROOT)) for path in outdated)
        raise pytest.UsageError(f"the compiled core is older than its source; run `make compile` first: {names}")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the longest files first, skip the tests of peers that are missing here, and remember why."""
    items.sort(key=lambda item: order.rank(item.nodeid))
    needed = {item: _peers_of(item) for item in items}
    wanted = set().union(*needed.values())
    if not wanted:
        return
    missing = _missing_peers()
    config.stash[NOT_TESTED] = {name: missing[name] for name in sorted(wanted & missing.keys())}
    for item, names in needed.items():
        reasons = [f"{name}: {missing[name]}" for name in sorted(names & missing.keys())]
        if reasons:
            item.add_marker(pytest.mark.skip(reason="; ".join(reasons)))


def _peers_of(item: pytest.Item) -> set[str]:
    return {name for marker in item.iter_markers("peer") for name in marker.args}


def _missing_peers() -> dict[str, str]:
    command = [sys.executable, str(ROOT / "tools" / "peers.py"), "missing"]
    answer = subprocess.run(command, capture_output=True, check=True, timeout=120)
    missing: dict[str, str] = json.loads(answer.stdout)
    return missing


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> Iterator[None]:
    """Last of all, so that nobody takes a green run for more than it was."""
    yield
    missing = config.stash.get(NOT_TESTED, {})
    if config.getoption("numprocesses", None):  # the workers collected, and their stashes are not ours
        missing = _missing_peers()
    if missing:
        terminalreporter.section("PEERS NOT TESTED", sep="!", red=True, bold=True)
        for name, reason in missing.items():
            terminalreporter.line(f"{name}: {reason}", red=True)


@pytest.fixture
def server() -> Iterator[serving.ServerProcess]:
    """Our server as a process: nothing on disk, one Gearman door on a free port."""
    with serving.serve("--store", "memory", "--listen", f"gearman://{serving.HOST}:0") as running:
        yield running


@pytest.fixture
def gearmand() -> Iterator[serving.ServerProcess]:
    """The real gearmand on a free port; mark the test with `@pytest.mark.peer("gearmand")`."""
    with serving.gearmand() as running:
        yield running
