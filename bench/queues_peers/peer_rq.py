"""RQ: many in one pipeline; SimpleWorker, which does not fork for each task."""

import redis
import rq
import submitting
import tasks

connection = redis.Redis.from_url(submitting.URL)
queue = rq.Queue("bench", connection=connection)


def batch(size: int) -> None:
    queue.enqueue_many([rq.Queue.prepare_data(tasks.empty, result_ttl=0) for _ in range(size)])


if submitting.ACTION == "submit":
    submitting.report(batch)
else:
    rq.SimpleWorker([queue], connection=connection).work(logging_level="ERROR")
