"""huey: one worker thread, no results."""

import logging

import huey
import submitting

queue = huey.RedisHuey("bench", url=submitting.URL, results=False)


@queue.task()
def empty() -> None:
    """Nothing."""


def batch(size: int) -> None:
    for _ in range(size):
        empty()


if submitting.ACTION == "submit":
    submitting.report(batch)
else:
    logging.getLogger("huey").setLevel(logging.ERROR)
    queue.create_consumer(workers=1, periodic=False, initial_delay=0.01).run()
