"""huey: one worker thread, or worker processes; a notification for each result, where there are results."""

from typing import Any

import asked
import huey
import tasks

queue = huey.RedisHuey("bench", url=asked.URL, results=asked.RESULTS, notify_result=asked.RESULTS)


@queue.task()
def empty() -> None:
    tasks.empty()


@queue.task()
def echo(number: int) -> int:
    return tasks.echo(number)


@queue.task(retries=1, retry_delay=0, context=True)
def fail_first(task: Any = None) -> None:
    tasks.fail_first(2 - task.retries)


def submit(size: int) -> None:
    for _ in range(size):
        empty()


def submit_failing(size: int) -> None:
    for _ in range(size):
        fail_first()


def fetch(size: int) -> list[Any]:
    results: list[Any] = echo.map(range(size)).get(blocking=True, timeout=60)
    return results


def work() -> None:
    queue.create_consumer(workers=1, periodic=False, initial_delay=0.01).run()


def work_many(processes: str) -> None:
    options = {"workers": int(processes), "worker_type": "process", "periodic": False, "initial_delay": 0.01}
    queue.create_consumer(**options).run()
