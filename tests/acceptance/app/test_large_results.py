"""Results of any size: whole up to `result_max`, and an error that says so where they are not whole or gone."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from geartrain.app import App
from geartrain.errors import ResultCutError, ResultGoneError
from tests.crash import store_file
from tests.support import apps, serving

# Protocols by which an app gets the results of submitted tasks.
DOORS = ("gearman", "periodic", "http", "danga", "gearmonkey")
LARGEST = 1024 * 1024
Urls = dict[str, str]


def served(*options: str) -> Iterator[Urls]:
    """URLs by protocol."""
    listens = [word for scheme in DOORS for word in ("--listen", f"{scheme}://{serving.HOST}:0")]
    with serving.serve(*options, "--result-max", str(LARGEST), *listens) as running:
        yield {url.partition(":")[0]: url for url in running.urls}


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Urls]:
    yield from served("--store", f"sqlite://{tmp_path_factory.mktemp('store')}/jobs.db")


@pytest.fixture(scope="module")
def in_memory() -> Iterator[Urls]:
    yield from served("--store", "memory")


@pytest.fixture(params=["on_disk", "in_memory"])
def urls(request: pytest.FixtureRequest) -> Urls:
    found: Urls = request.getfixturevalue(request.param)
    return found


def play(url: str, scenario: Callable[[App, Any], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario with an app, its task `repeat`, and a worker."""
    app = App("large" + url.partition(":")[0], url)

    @app.task
    async def repeat(text: str, times: int) -> str:
        return text * times

    async def run() -> None:
        async with apps.working(app):
            await scenario(app, repeat)

    asyncio.run(run())


@pytest.mark.parametrize("door", DOORS)
def test_large_result_of_a_submitted_task(urls: Urls, door: str) -> None:
    async def scenario(app: App, repeat: Any) -> None:
        handles = [await repeat.submit("x", size) for size in (100_000, 10, 500_000)]
        assert [len(await handle.result(apps.SECONDS)) for handle in handles] == [100_000, 10, 500_000]

    play(urls[door], scenario)


@pytest.mark.parametrize("door", DOORS)
def test_result_above_the_maximum_is_cut_and_the_error_says_so(on_disk: Urls, door: str) -> None:
    """The GearMonkey door has the latest outputs in memory, and there they are whole."""

    async def scenario(app: App, repeat: Any) -> None:
        handle = await repeat.submit("x", LARGEST + 1)
        if door == "gearmonkey":
            assert len(await handle.result(apps.SECONDS)) == LARGEST + 1
            return
        while await handle.state() != "done":  # whoever waits for the end gets it whole; others ask for what is kept
            await asyncio.sleep(0.01)
        with pytest.raises(ResultCutError, match="was cut"):
            await handle.result(apps.SECONDS)

    play(on_disk[door], scenario)


@pytest.mark.parametrize("door", ["gearman", "http", "periodic"])
def test_result_whose_record_was_removed(tmp_path: Path, door: str) -> None:
    path = tmp_path / "jobs.db"

    async def scenario(app: App, repeat: Any) -> None:
        handle = await repeat.submit("x", 10)
        await asyncio.to_thread(store_file.wait_for, path, "SELECT state FROM records", lambda rows: rows == [(3,)])
        with contextlib.closing(apsw.Connection(str(path))) as connection:
            connection.set_busy_timeout(5000)
            connection.execute("DELETE FROM records")
        with pytest.raises(ResultGoneError):
            await handle.result(apps.SECONDS)

    for urls in served("--store", f"sqlite://{path}"):
        play(urls[door], scenario)
