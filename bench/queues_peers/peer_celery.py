"""Celery: one producer for all; the solo pool, which does not hand tasks to another process."""

import celery
import submitting

app = celery.Celery("bench", broker=submitting.URL)
app.conf.task_ignore_result = True
app.conf.worker_prefetch_multiplier = 100
app.conf.broker_connection_retry_on_startup = True


@app.task(name="empty", ignore_result=True)
def empty() -> None:
    """Nothing."""


def batch(size: int) -> None:
    with app.producer_or_acquire() as producer:
        for _ in range(size):
            empty.apply_async(producer=producer)


if submitting.ACTION == "submit":
    submitting.report(batch)
else:
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=ERROR"]
    app.worker_main(["worker", "--pool=solo", *quiet])
