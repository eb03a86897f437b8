"""What tasks log, as it is kept with their jobs."""

import asyncio
import datetime
import logging
import re
import threading
from collections.abc import Iterator

import pytest

from geartrain.app import App
from geartrain.app.runner import TaskRunner
from geartrain.app.task_log import MOST_BYTES, MOST_LINES, TaskLog
from geartrain.app.threads import DaemonThreads
from geartrain.testing import InMemory

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (\w+) ([\w.]+): (.*)")


@pytest.fixture(autouse=True)
def log(app: App) -> Iterator[logging.Logger]:
    """A logger that lets everything through."""
    logger = logging.getLogger("shop.work")
    logger.setLevel(logging.DEBUG)
    yield logger
    logger.setLevel(logging.NOTSET)


def lines(app: App, name: str) -> list[str]:
    """The logged lines of the last submission of a task."""
    with InMemory(app) as memory:
        handle = app.tasks[f"shop.{name}"].submit_sync()
        memory.drain_sync()
        return handle.logs()


def said(logged: list[str]) -> list[tuple[str, ...]]:
    """Level, logger and text of each line."""
    return [match.groups() for match in map(LINE.fullmatch, logged) if match is not None]


def test_records_from_the_level_on_are_kept_with_time_level_and_logger(log: logging.Logger) -> None:
    with App("shop", keep_logs="info") as app:

        @app.task
        def plain() -> None:
            log.debug("too low")
            log.info("%d lines", 2)
            log.warning("careful")

        before = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
        logged = lines(app, "plain")
    assert logged[0] == "attempt 1"
    assert said(logged) == [("INFO", "shop.work", "2 lines"), ("WARNING", "shop.work", "careful")]
    moment = datetime.datetime.fromisoformat(logged[1].split("Z")[0])
    assert moment >= before.replace(microsecond=before.microsecond // 1000 * 1000)


@pytest.mark.parametrize("of_app", [None, False, "ERROR"])
def test_nothing_is_kept_by_default_and_a_task_can_say_otherwise(
    of_app: str | bool | None, log: logging.Logger
) -> None:
    with App("shop", keep_logs=of_app) as app:

        @app.task
        def quiet() -> None:
            log.info("a secret")

        @app.task(keep_logs="INFO")
        def loud() -> None:
            log.info("no secret")

        assert lines(app, "quiet") == []
        assert said(lines(app, "loud")) == [("INFO", "shop.work", "no secret")]


def test_task_can_keep_nothing_where_the_app_keeps_all(log: logging.Logger) -> None:
    with App("shop", keep_logs=True) as app:

        @app.task(keep_logs=False)
        def quiet() -> None:
            log.error("a secret")

        assert lines(app, "quiet") == []


@pytest.mark.parametrize("level", ["loud", "", -1, 0])
def test_unknown_level_is_refused(level: str | int) -> None:
    with pytest.raises(ValueError, match="keep_logs"):
        App("shop", keep_logs=level)


def test_attempts_at_the_same_time_do_not_mix(log: logging.Logger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    app = App("shop", keep_logs="INFO")
    both = threading.Barrier(2, timeout=30)

    @app.task
    def plain(name: str) -> None:
        both.wait()
        log.info("plain %s", name)
        both.wait()

    @app.task
    async def coroutine(name: str) -> None:
        async def child() -> None:
            log.info("child of %s", name)

        await asyncio.gather(child(), asyncio.to_thread(log.info, "thread of %s", name))

    async def scenario() -> list[list[str]]:
        threads = DaemonThreads("test")
        async with app, InMemory(app) as memory:
            await app.submit_many([plain.bind("a"), plain.bind("b"), coroutine.bind("c"), coroutine.bind("d")])
            runs = [TaskRunner(app.around_runs, threads).run(job.task, job) for job in memory.submitted]
            attempts = await asyncio.gather(*runs)
        threads.close()
        return [sorted(text for _, _, text in said(attempt.log.splitlines())) for attempt in attempts]

    logged = asyncio.run(scenario())
    assert logged == [["plain a"], ["plain b"], ["child of c", "thread of c"], ["child of d", "thread of d"]]
    assert logging.getLogger().handlers == []


def test_every_attempt_adds_its_lines_and_tracebacks_are_lines(log: logging.Logger) -> None:
    with App("shop", keep_logs="INFO") as app:

        @app.task(retries=1, backoff=0)
        def shaky() -> None:
            try:
                raise ConnectionError("cut")
            except ConnectionError:
                log.exception("no luck")
                raise

        with InMemory(app) as memory:
            handle = shaky.submit_sync()
            memory.drain_sync()
            logged = handle.logs()
    assert [line for line in logged if line.startswith("attempt")] == ["attempt 1", "attempt 2"]
    assert logged.count("ConnectionError: cut") == 2
    assert said(logged) == [("ERROR", "shop.work", "no luck")] * 2


def test_without_handlers_of_the_application_warnings_are_still_printed(
    log: logging.Logger, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    with App("shop", keep_logs="INFO") as app:

        @app.task
        def plain() -> None:
            log.warning("seen by all")
            log.info("kept only")

        assert len(said(lines(app, "plain"))) == 2
    assert capfd.readouterr().err.splitlines() == ["seen by all"]


def record(text: str, *args: object) -> logging.LogRecord:
    return logging.LogRecord("shop", logging.INFO, __file__, 1, text, args, None)


def test_last_lines_are_kept_within_the_limits() -> None:
    log = TaskLog(logging.INFO, 1)
    for number in range(MOST_LINES + 7):
        log.add(record("line %d", number))
    lines = log.text().splitlines()
    assert lines[:2] == ["attempt 1", "(7 earlier lines were left out)"]
    assert len(lines) == MOST_LINES + 2
    assert lines[-1].endswith(f"line {MOST_LINES + 6}")
    log.add(record("ä" * 50_000))
    assert log.text().endswith("ä...\n")
    for _ in range(20):
        log.add(record("x" * 10_000))
    assert len(log.text().encode()) < MOST_BYTES + 200


def test_record_that_cannot_be_formatted_does_no_harm() -> None:
    log = TaskLog(logging.INFO, 2)
    log.add(record("%d", "seven"))
    log.add(record("fine"))
    assert log.text().splitlines()[:2] == ["attempt 2", "(record cannot be formatted: TypeError)"]
    assert said(log.text().splitlines()) == [("INFO", "shop", "fine")]
