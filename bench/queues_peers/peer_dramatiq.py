"""Dramatiq: one process with its usual eight threads."""

import dramatiq
import submitting
from dramatiq.brokers.redis import RedisBroker

broker = RedisBroker(url=submitting.URL)
dramatiq.set_broker(broker)


@dramatiq.actor(queue_name="bench")
def empty() -> None:
    """Nothing."""


def batch(size: int) -> None:
    for _ in range(size):
        empty.send()


def work() -> None:
    import signal

    worker = dramatiq.Worker(broker, worker_threads=8)
    worker.start()
    signal.sigwait({signal.SIGTERM})
    worker.stop()


if submitting.ACTION == "submit":
    submitting.report(batch)
else:
    work()
