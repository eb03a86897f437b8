"""Dramatiq: its usual eight threads in each process."""

import signal
from typing import Any

import asked
import dramatiq
import run_peer
import tasks
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware import CurrentMessage, GroupCallbacks
from dramatiq.rate_limits.backends import RedisBackend as Barriers
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

THREADS = 8
broker = RedisBroker(url=asked.URL)
if asked.ROW == "retries":
    broker.add_middleware(CurrentMessage())
if asked.ROW == "chords":
    broker.add_middleware(GroupCallbacks(Barriers(url=asked.URL)))
if asked.RESULTS:
    broker.add_middleware(Results(backend=RedisBackend(url=asked.URL)))
dramatiq.set_broker(broker)


@dramatiq.actor(queue_name="bench")
def empty() -> None:
    tasks.empty()


@dramatiq.actor(queue_name="bench", **({"store_results": True} if asked.RESULTS else {}))
def echo(number: int) -> int:
    return tasks.echo(number)


@dramatiq.actor(queue_name="bench", **({"store_results": True} if asked.RESULTS else {}))
def all_done() -> bool:
    return True


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


def chord(size: int) -> int:
    """Its callback gets no results: the submitter fetches them, and waits for the callback."""
    group = dramatiq.group(echo.message(number) for number in range(size))
    callback = all_done.message()
    group.add_completion_callback(callback)
    group.run()
    total = tasks.add(list(group.get_results(block=True, timeout=60_000)))
    callback.get_result(block=True, timeout=60_000)
    return total


def work() -> None:
    worker = dramatiq.Worker(broker, worker_threads=THREADS)
    worker.start()
    signal.sigwait({signal.SIGTERM})
    worker.stop()


def work_many(processes: str) -> None:
    run_peer.command("-m", "dramatiq", "peer_dramatiq", "--processes", processes, "--threads", str(THREADS))
