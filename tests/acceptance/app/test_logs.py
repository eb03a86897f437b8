"""Logs of tasks: sent by real workers, kept by real servers, read in every way."""

import asyncio
import json
import logging
import urllib.request
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from geartrain.app import App, Task, current_task
from geartrain.errors import AdminError, JobFailedError, UnsupportedError
from tests.support import apps, serving

DOORS = ("gearman", "periodic", "gearmonkey", "http")  # whose workers know which job they have


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


def url_of(server: serving.ServerProcess, scheme: str) -> str:
    return next(url for url in server.urls if url.startswith(f"{scheme}:"))


@pytest.fixture
def log() -> Iterator[logging.Logger]:
    logger = logging.getLogger("acceptance")
    logger.setLevel(logging.INFO)
    yield logger
    logger.setLevel(logging.NOTSET)


def logging_app(url: str, log: logging.Logger) -> tuple[App, Task[[], str]]:
    """An app with a task that logs a line."""
    app = App("shop", url, keep_logs="INFO")

    @app.task
    def plain() -> str:
        log.info("at work")
        return "done"

    return app, plain


def texts(lines: list[str]) -> list[str]:
    """The lines without their times."""
    return [line.partition("Z ")[2] or line for line in lines]


@pytest.mark.parametrize("door", DOORS)
def test_over_every_protocol(server: serving.ServerProcess, app: App, log: logging.Logger, door: str) -> None:
    app = App(app.name, url_of(server, door), keep_logs="INFO")

    @app.task
    def plain(name: str) -> str:
        log.info("for %s", name)
        return name

    async def scenario() -> None:
        async with apps.working(app):
            handle = await plain.submit("Ada")
            assert await handle.result(apps.SECONDS) == "Ada"
            assert texts(await handle.logs()) == ["attempt 1", "INFO acceptance: for Ada"]
            assert await plain.handle(handle.handle, handle.server).logs() == await handle.logs()

    run(scenario())


def test_lines_of_all_attempts(server: serving.ServerProcess, app: App, log: logging.Logger, tmp_path: Path) -> None:
    @app.task(retries=1, backoff=0, keep_logs="INFO")
    async def shaky() -> None:
        log.warning("try %d", current_task().attempt)
        raise ConnectionError("cut")

    expected = ["attempt 1", "WARNING acceptance: try 1", "attempt 2", "WARNING acceptance: try 2"]
    stored: list[str] = []

    async def scenario() -> None:
        async with apps.working(app):
            handle = await shaky.submit()
            with pytest.raises(JobFailedError):
                await handle.result(apps.SECONDS)
            stored.append(handle.handle)
            assert texts(await handle.logs()) == expected
            await apps.ask(app, "retry", handle=handle.handle)
            while len(await handle.logs()) < 2 * len(expected):
                await asyncio.sleep(0.01)
            assert texts(await handle.logs()) == expected * 2

    run(scenario())
    [handle] = stored
    with urllib.request.urlopen(f"{url_of(server, 'http')}/api/v1/jobs/{handle}/log", timeout=30) as answer:
        assert texts(answer.read().decode().splitlines()) == expected * 2
    only = serving.run_command(tmp_path, "show", handle, "--log", "--server", server.url)
    assert texts(only.stdout.splitlines()) == expected * 2
    page = serving.run_command(tmp_path, "show", handle, "--server", server.url).stdout.splitlines()
    shown = page[page.index("log") + 1 :]
    assert texts([line.removeprefix("  ") for line in shown]) == expected * 2


def test_foreground_call_and_task_that_logs_nothing(app: App, log: logging.Logger) -> None:
    @app.task(keep_logs="INFO")
    async def greet(loud: bool) -> str:
        if loud:
            log.info("hello")
        return "Hello"

    async def scenario() -> None:
        async with apps.working(app):
            assert await greet.call(True) == "Hello"
            handle = await greet.submit(False)
            await handle.result(apps.SECONDS)
            assert await handle.logs() == []
            assert await greet.handle("H:nowhere:1").logs() == []

    run(scenario())


def test_log_of_a_job_that_is_not_running_is_refused(app: App) -> None:
    @app.task
    async def later() -> None: ...

    async def scenario() -> None:
        async with app:
            handle = await later.options(delay=3600).submit()
            with pytest.raises(AdminError, match="not running"):
                await apps.ask(app, "add_log", handle=handle.handle, lines="x")
            with pytest.raises(AdminError, match="no running job"):
                await apps.ask(app, "add_log", handle="H:nowhere:1", lines="x")
            with pytest.raises(AdminError, match="lines"):
                await apps.ask(app, "add_log", handle=handle.handle)
            assert await apps.ask(app, "log", handle=handle.handle) == ""

    run(scenario())


def test_log_survives_a_kill_of_the_server(tmp_path: Path, log: logging.Logger) -> None:
    flags = ("--store", f"sqlite://{tmp_path / 'jobs.db'}", "--listen", f"gearman://{serving.HOST}:0")
    stored: list[str] = []
    with serving.serve(*flags) as server:
        app, plain = logging_app(server.url, log)

        async def work() -> None:
            async with apps.working(app):
                handle = await plain.submit()
                await handle.result(apps.SECONDS)
                stored.append(handle.handle)
                await apps.ask(app, "pause", function="another")  # answered when all that came before is on disk
                server.kill()

        run(work())
    with serving.serve(*flags) as server:
        [handle] = stored
        answer = serving.run_command(tmp_path, "show", handle, "--json", "--server", server.url)
        assert json.loads(answer.stdout)["state"] == "done"
        kept = serving.run_command(tmp_path, "show", handle, "--log", "--server", server.url)
        assert texts(kept.stdout.splitlines()) == ["attempt 1", "INFO acceptance: at work"]


def test_other_servers_keep_none_and_the_task_runs(log: logging.Logger) -> None:
    with serving.gearmand() as server:
        app, plain = logging_app(server.url, log)

        async def scenario() -> None:
            async with apps.working(app):
                assert await plain.call() == "done"
                with pytest.raises(UnsupportedError, match="keeps no logs"):
                    await (await plain.submit()).logs()

        run(scenario())


def test_worker_needs_the_right_to_work_and_a_reader_that_to_read(log: logging.Logger) -> None:
    scopes = ("work", "read", "submit")
    listens = [f"--listen=gearman://{serving.HOST}:0?may={scope}" for scope in scopes]
    with serving.serve("--store", "memory", *listens) as server:
        urls = dict(zip(scopes, server.urls, strict=True))
        worker = App("shop", urls["work"], keep_logs="INFO")

        @worker.task
        def plain() -> None:
            log.info("kept")

        submitter, reader = App("shop", urls["submit"]), App("shop", urls["read"])

        @submitter.task(name=plain.name)
        def same() -> None: ...

        async def scenario() -> None:
            async with apps.working(worker), submitter, reader:
                handle = await same.submit()
                await handle.result(apps.SECONDS)
                for allowed in (submitter, reader):
                    assert len(await allowed.handle(handle.handle).logs()) == 2
                with pytest.raises(AdminError, match="no right"):
                    await apps.ask(submitter, "add_log", handle=handle.handle, lines="forged")
                with pytest.raises(AdminError, match="no right"):
                    await apps.ask(worker, "log", handle=handle.handle)

        run(scenario())


def test_protocol_whose_workers_do_not_know_their_job(server: serving.ServerProcess, log: logging.Logger) -> None:
    app, plain = logging_app(url_of(server, "danga"), log)

    async def scenario() -> None:
        async with apps.working(app):
            handle = await plain.submit()
            assert await handle.result(apps.SECONDS) == "done"
            assert await handle.logs() == []

    run(scenario())
