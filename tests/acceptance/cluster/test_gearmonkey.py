"""GearMonkey's keys and channels are those of the whole cluster."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from tests.acceptance.cluster.conftest import POSTGRESQL
from tests.support import postgres, postgres_programs, serving
from tests.support.postgres_fixtures import Clusters
from tests.support.waiting import PATIENCE, wait_for

pytestmark = POSTGRESQL

Pair = tuple[redis.Redis, redis.Redis]


def connect(server: serving.ServerProcess) -> redis.Redis:
    return redis.Redis(serving.HOST, server.port, socket_timeout=PATIENCE)


@pytest.fixture(scope="module")
def pair(clusters: Clusters) -> Iterator[Pair]:
    """Connections to two servers that are linked."""
    shared = clusters(postgres_programs.NEWEST)
    with postgres.fresh_schema(shared) as name:
        own = ("--store", shared.url(schema=name), "--lease", "60s", "--listen", f"gearmonkey://{serving.HOST}:0")
        with (
            serving.serve(*own, "--node-name", "one") as first,
            serving.serve(*own, "--node-name", "two") as second,
            connect(first) as one,
            connect(second) as two,
        ):
            one.incr("count:linked")
            wait_for(lambda: two.get("count:linked") == b"1", "the servers are linked")
            yield one, two


def submit(client: redis.Redis, function: str, payload: bytes = b"payload") -> int:
    number: Any = client.incr(f"uid:{function}")
    client.hset(f"job:{function}:{number}", mapping={"status": "idle", "input": payload})
    client.lpush(f"queue:{function}:normal", number)
    return int(number)


def finish(worker: redis.Redis, function: str, number: int) -> None:
    assert worker.blpop([f"queue:{function}:normal"], PATIENCE) == (
        f"queue:{function}:normal".encode(),
        b"%d" % number,
    )
    worker.hset(f"job:{function}:{number}", mapping={"status": "success", "output": b"result"})


def test_hash_is_read_at_any_server(pair: Pair) -> None:
    one, two = pair
    number = submit(one, "hashes")
    key = f"job:hashes:{number}"
    assert two.hgetall(key) == {b"status": b"idle", b"input": b"payload"}
    assert two.exists(key) == 1
    with pytest.raises(redis.ResponseError, match="at another server"):
        two.hset(key, "note", "x")
    finish(one, "hashes", number)
    assert two.hget(key, "output") == b"result"
    assert two.hget(key, "status") == b"success"


def test_job_is_deleted_at_any_server(pair: Pair) -> None:
    one, two = pair
    number = submit(one, "deletions")
    assert two.delete(f"job:deletions:{number}") == 1
    assert one.llen("queue:deletions:normal") == 0


@pytest.mark.parametrize("worker", ["one", "two"])
def test_end_of_a_job_is_waited_for_at_any_server(pair: Pair, worker: str) -> None:
    one, two = pair
    number = submit(one, "ends")
    lock = f"lock:ends:{number}"
    ended: list[Any] = []
    waiting = threading.Thread(target=lambda: ended.append(two.blpop([lock], PATIENCE)))
    waiting.start()
    finish(one if worker == "one" else two, "ends", number)
    waiting.join()
    assert ended == [(lock.encode(), b"OK")]
    assert two.hget(f"job:ends:{number}", "output") == b"result"


def test_events_reach_subscribers_of_other_servers(pair: Pair) -> None:
    one, two = pair
    with two.pubsub() as by_name, two.pubsub() as by_pattern:
        by_name.subscribe("channel:events")
        by_pattern.psubscribe("channel:ev*")
        wait_for(lambda: one.publish("channel:events", "hello") == 2, "the other server knows of both")
        number = submit(one, "events")
        finish(two, "events", number)  # each event is heard once, although the worker is at this server
        expected = [f"{event}:{number}".encode() for event in ("create", "start", "finish")]
        for subscription in (by_name, by_pattern):
            assert heard(subscription, 4) == [b"hello", *expected]
    wait_for(lambda: one.publish("channel:events", "hello") == 0, "the other server knows that they are gone")


def heard(subscription: Any, count: int) -> list[bytes]:
    messages: list[bytes] = []
    while len(messages) < count:
        message = subscription.get_message(timeout=PATIENCE)
        assert message is not None
        if message["type"] in ("message", "pmessage") and message["data"] not in messages:
            messages.append(message["data"])
    return messages


def test_counts_are_those_of_the_cluster(pair: Pair) -> None:
    one, two = pair
    one.incrby("count:sums", 2)
    two.incr("count:sums")
    wait_for(lambda: one.get("count:sums") == two.get("count:sums") == b"3", "both count three workers")
    submit(one, "sums")
    submit(two, "sums")
    wait_for(lambda: one.llen("queue:sums:normal") == two.llen("queue:sums:normal") == 2, "both count two jobs")


def test_jobs_are_removed_from_queues_of_any_server(pair: Pair) -> None:
    one, two = pair
    number, other = submit(one, "removals"), submit(two, "removals")
    assert two.lrem("queue:removals:low", 0, str(number)) == 0
    assert two.lrem("queue:removals:normal", 0, str(number)) == 1
    assert two.lrem("queue:removals:normal", 0, str(number)) == 0
    assert one.lrange("queue:removals:normal", 0, -1) == []
    assert two.lrange("queue:removals:normal", 0, -1) == [b"%d" % other]


def test_scheduled_jobs_of_any_server(pair: Pair) -> None:
    one, two = pair
    key = "queue:later:scheduled"
    numbers = []
    for client in (one, two):
        number: Any = client.incr("uid:later")
        client.hset(f"job:later:{number}", mapping={"status": "idle", "input": b""})
        client.zadd(key, {str(number): 4_000_000_000})
        numbers.append(str(number))
    wait_for(lambda: one.zcard(key) == two.zcard(key) == 2, "both count two jobs")
    assert one.zrem(key, *numbers) == 2
    wait_for(lambda: one.zcard(key) == two.zcard(key) == 0, "both count no jobs")


def test_queues_of_other_servers_exist(pair: Pair) -> None:
    one, two = pair
    submit(one, "existing")
    wait_for(lambda: two.exists("queue:existing:normal"), "the other server knows of the queue")
    assert two.type("queue:existing:normal") == b"list"
