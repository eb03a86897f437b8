"""RQ: many in one pipeline; SimpleWorker, which does not fork for each task."""

from typing import Any

import asked
import redis
import rq
import run_peer
import tasks

connection = redis.Redis.from_url(asked.URL)
queue = rq.Queue("bench", connection=connection)


def fail_first() -> None:
    job = rq.get_current_job()
    assert job is not None
    tasks.fail_first(2 - (job.retries_left or 0))


def submit(size: int) -> None:
    queue.enqueue_many([rq.Queue.prepare_data(tasks.empty, result_ttl=0) for _ in range(size)])


def submit_failing(size: int) -> None:
    once = rq.Retry(max=1)  # without an interval: at once
    queue.enqueue_many([rq.Queue.prepare_data(fail_first, result_ttl=0, retry=once) for _ in range(size)])


def fetch(size: int) -> list[Any]:
    jobs = queue.enqueue_many([rq.Queue.prepare_data(tasks.echo, (number,)) for number in range(size)])
    results = [job.latest_result(timeout=60) for job in jobs]
    return [result.return_value for result in results if result is not None]


def work() -> None:
    rq.SimpleWorker([queue], connection=connection).work(logging_level="CRITICAL")


def work_many(processes: str) -> None:
    options = ["--num-workers", processes, "--worker-class", "rq.SimpleWorker", "--logging-level", "CRITICAL"]
    run_peer.command("-m", "rq.cli", "worker-pool", "bench", "--url", asked.URL, *options)
