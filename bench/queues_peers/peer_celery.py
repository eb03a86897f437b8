"""Celery: one producer for all; the solo pool, which does not hand tasks to another process."""

from typing import Any

import asked
import celery
import tasks
from celery.result import ResultSet

app = celery.Celery("bench", broker=asked.URL, backend=asked.URL if asked.RESULTS else None)
app.conf.worker_prefetch_multiplier = 100
app.conf.broker_connection_retry_on_startup = True
QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=CRITICAL")


@app.task(name="empty", ignore_result=True)
def empty() -> None:
    tasks.empty()


@app.task(name="echo")
def echo(number: int) -> int:
    return tasks.echo(number)


@app.task(name="add")
def add(numbers: list[int]) -> int:
    return tasks.add(numbers)


@app.task(name="fail_first", bind=True, ignore_result=True, max_retries=1)
def fail_first(self: Any) -> None:
    try:
        tasks.fail_first(self.request.retries + 1)
    except tasks.FirstAttemptError as error:
        raise self.retry(exc=error, countdown=0) from error


def submit(size: int) -> None:
    _submit(empty, size)


def submit_failing(size: int) -> None:
    _submit(fail_first, size)


def _submit(task: Any, size: int) -> None:
    with app.producer_or_acquire() as producer:
        for _ in range(size):
            task.apply_async(producer=producer)


def fetch(size: int) -> Any:
    with app.producer_or_acquire() as producer:
        results = [echo.apply_async((number,), producer=producer) for number in range(size)]
    return ResultSet(results).join_native(timeout=60)


def chord(size: int) -> Any:
    return celery.chord([echo.s(number) for number in range(size)])(add.s()).get(timeout=60)


def work() -> None:
    app.worker_main(["worker", "--pool=solo", *QUIET])


def work_many(processes: str) -> None:
    app.worker_main(["worker", "--pool=prefork", f"--concurrency={processes}", *QUIET])
