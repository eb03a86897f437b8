"""Every library's client with every library's worker: the server is what they have in common."""

import contextlib
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.interop.libraries import PAIRS, Library
from tests.interop.peer import Ask, Worker
from tests.support import serving

REPORTING = [(client, worker) for client, worker in PAIRS if client.hears and "report" in worker.offers]


def pairs(among: Iterable[tuple[Library, Library]]) -> pytest.MarkDecorator:
    """Ordered so that each worker is started once, for all the clients that come to it."""
    params = [pytest.param(client, worker, id=f"{client}-to-{worker}") for client, worker in among]
    return pytest.mark.parametrize(("client", "worker"), params, indirect=["worker"], scope="module")


@pytest.fixture(scope="module")
def worker(request: pytest.FixtureRequest, target: serving.ServerProcess) -> Iterator[Worker]:
    library: Library = request.param
    with tempfile.TemporaryDirectory(prefix="geartrain-peer-") as home, contextlib.ExitStack() as stack:
        worker = Worker(library, target.port, f"pair-{library}", Path(home))
        stack.callback(worker.kill)
        worker.wait_until_ready()
        yield worker


@pairs(PAIRS)
def test_a_result_comes_back(ask: Ask, client: Library, worker: Worker) -> None:
    asked = ask(client, "run", f"pair-{worker.library}-reverse", b"there and back")
    assert asked.heard() == ["complete kcab dna ereht"]


@pairs(PAIRS)
def test_many_jobs_at_once_keep_their_results_apart(ask: Ask, client: Library, worker: Worker) -> None:
    words = [f"word{number:02}" for number in range(20)]
    asked = ask(client, "batch", f"pair-{worker.library}-reverse", "\n".join(words).encode() + b"\n")
    assert asked.heard() == [f"complete {word[::-1]}" for word in words]


@pairs(REPORTING)
def test_progress_on_the_way(ask: Ask, client: Library, worker: Worker) -> None:
    assert ask(client, "run", f"pair-{worker.library}-report", b"go").heard() == list(client.hears)
