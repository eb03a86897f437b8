"""Dramatiq: its usual eight threads in each process."""

import signal
from typing import Any

import asked
import dramatiq
import run_peer
import tasks
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware import CurrentMessage
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

THREADS = 8
broker = RedisBroker(url=asked.URL)
if asked.ROW == "retries":
    broker.add_middleware(CurrentMessage())
if asked.RESULTS:
    broker.add_middleware(Results(backend=RedisBackend(url=asked.URL)))
dramatiq.set_broker(broker)


@dramatiq.actor(queue_name="bench")
def empty() -> None:
    tasks.empty()


@dramatiq.actor(queue_name="bench", **({"store_results": True} if asked.RESULTS else {}))
def echo(number: int) -> int:
    return tasks.echo(number)


@dramatiq.actor(queue_name="bench", max_retries=1, min_backoff=0)
def fail_first() -> None:
    message = CurrentMessage.get_current_message()
    assert message is not None
    tasks.fail_first(message.options.get("retries", 0) + 1)


def submit(size: int) -> None:
    for _ in range(size):
        empty.send()


def submit_failing(size: int) -> None:
    for _ in range(size):
        fail_first.send()


def fetch(size: int) -> list[Any]:
    sent = dramatiq.group(echo.message(number) for number in range(size)).run()
    return list(sent.get_results(block=True, timeout=60_000))


def work() -> None:
    worker = dramatiq.Worker(broker, worker_threads=THREADS)
    worker.start()
    signal.sigwait({signal.SIGTERM})
    worker.stop()


def work_many(processes: str) -> None:
    run_peer.command("-m", "dramatiq", "peer_dramatiq", "--processes", processes, "--threads", str(THREADS))
