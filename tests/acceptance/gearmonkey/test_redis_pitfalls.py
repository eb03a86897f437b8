"""What goes wrong with GearMonkey on a real Redis if one is not careful, and does not with our library."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis as redis_py

from geartrain.client.gearmonkey import OPT_BLOCKING, OPT_ROLLCALL, Client, Worker
from geartrain.client.redis import flow, names, scripts, worker_flow
from geartrain.errors import AddressError, ClientError, JobTimeoutError, NoWorkersError, UncertainError
from tests.acceptance.gearmonkey import redis_py_peer
from tests.support import redis_server, serving
from tests.support.peer import until
from tests.support.redis_proxy import cut_after

pytestmark = pytest.mark.peer("redis-server")


@pytest.fixture(scope="module")
def redis() -> Iterator[redis_server.RedisProcess]:
    with redis_server.serve() as running:
        yield running


@pytest.fixture
def raw(redis: redis_server.RedisProcess) -> Iterator[Any]:
    connection = redis_py_peer.connect(redis.port)
    yield connection
    connection.close()


@pytest.fixture
def client(redis: redis_server.RedisProcess) -> Iterator[Client]:
    with Client(redis.url) as made:
        yield made


@pytest.fixture
def worker(redis: redis_server.RedisProcess, function: str) -> Iterator[Worker]:
    with Worker(redis.url, bytes.upper) as made:
        made.accept(function)
        assert not made.run_one(0.01)
        yield made


def test_the_script_is_the_documents(raw: Any) -> None:
    assert raw.script_load(scripts.DUE.text) == scripts.DUE.sha1 == redis_py_peer.SHA1


def test_keys_and_commands_are_the_documents(redis: redis_server.RedisProcess, function: str, raw: Any) -> None:
    """Everything that happens to GearMonkey's keys, in its order, as Redis itself saw it."""
    with raw.monitor() as monitor, Client(redis.url) as client, Worker(redis.url, work := _Work()) as worker:
        work.worker = worker
        worker.accept(function)
        client.run(function, b"x", options=OPT_BLOCKING & OPT_ROLLCALL)
        client.run(function, b"x", "scheduled", scheduled=1)
        assert worker.run_one()
        assert worker.run_one()
        worker.close()
        raw.ping()
        seen = []
        for entry in monitor.listen():
            if entry["command"] == "PING":
                break
            if function in entry["command"] and "geartrain:" not in entry["command"]:
                seen.append(entry["command"].replace(function, "FN"))
    working = [
        "PUBLISH channel:FN start:{n}",
        "HMSET job:FN:{n} status busy",
        "HMSET job:FN:{n} status:dividend 1 status:divisor 2",
        "HMSET job:FN:{n} status success output x",
        "EXPIRE job:FN:{n} 90000",
        "PUBLISH channel:FN finish:{n}",
        "LPUSH lock:FN:{n} OK",
        "EXPIRE lock:FN:{n} 10",
    ]
    only_looking = ("ZRANGEBYSCORE", "HMGET")
    assert [command for command in seen if not command.startswith(only_looking)] == [
        "INCR uid:FN",
        "HMSET job:FN:1 status idle input x",
        "PUBLISH channel:FN create:1",
        "LPUSH queue:FN:normal 1",
        "INCR uid:FN",
        "HMSET job:FN:2 status idle input x",
        "PUBLISH channel:FN create:2",
        "ZADD queue:FN:scheduled 1 2",
        "INCR count:FN",
        "ZREM queue:FN:scheduled 2",
        *[command.format(n=2) for command in working],
        "RPOP queue:FN:high",
        "RPOP queue:FN:normal",
        *[command.format(n=1) for command in working],
        "DECR count:FN",
    ]


class _Work:
    worker: Worker

    def __call__(self, payload: bytes) -> bytes:
        self.worker.update(1, 2)
        return payload


def test_scripts_that_redis_has_forgotten_are_loaded_again(
    client: Client, worker: Worker, function: str, raw: Any
) -> None:
    number = client.run(function, b"x", "scheduled", scheduled=1)
    raw.script_flush()
    assert worker.run_one()
    assert client.get(function, number).output == b"X"


@pytest.mark.parametrize("count", ["-1", "0", "many", ""])
def test_roll_call_of_a_count_that_is_wrong(client: Client, function: str, raw: Any, count: str) -> None:
    raw.set(f"count:{function}", count)
    with pytest.raises(NoWorkersError):
        client.run(function, options=OPT_ROLLCALL)


def test_job_whose_hash_is_gone_is_passed_over(worker: Worker, function: str, raw: Any) -> None:
    """A hash that is made anew by `status busy` would stay for ever, and the work function would get nothing."""
    raw.lpush(f"queue:{function}:normal", 77)
    assert not worker.run_one(0.01)
    assert not raw.exists(f"job:{function}:77")
    assert not raw.exists(f"geartrain:taken:{function}")


def test_job_that_was_queued_twice_runs_once(client: Client, worker: Worker, function: str, raw: Any) -> None:
    number = client.run(function, b"x")
    raw.lpush(f"queue:{function}:normal", number)
    assert worker.run_one()
    raw.hset(f"job:{function}:{number}", "output", "first")
    assert not worker.run_one(0.01)
    assert client.get(function, number).output == b"first"


@pytest.mark.parametrize("what", ["no number", "wrong kind", "hash of another kind"])
def test_rubbish_in_a_queue_stops_nobody(client: Client, worker: Worker, function: str, raw: Any, what: str) -> None:
    ids = {"no number": "a b", "wrong kind": "77", "hash of another kind": "a"}
    raw.lpush(f"queue:{function}:normal", ids[what])
    if what == "wrong kind":
        raw.set(f"job:{function}:77", "text")
    elif what == "hash of another kind":
        raw.hset(f"job:{function}:a", "status", "idle")
    number = client.run(function, b"x")
    assert worker.run_one(5)
    assert client.get(function, number).output == b"X"
    assert not raw.exists(f"geartrain:taken:{function}", f"queue:{function}:normal")


@pytest.mark.parametrize("output", [{"a": 1}, True, object()])
def test_output_that_redis_cannot_keep(
    redis: redis_server.RedisProcess, client: Client, function: str, output: object
) -> None:
    with Worker(redis.url, lambda payload: output) as worker:
        worker.accept(function)
        number = client.run(function)
        assert worker.run_one()
    assert client.get(function, number).status == "error"
    assert b"returns bytes, text or a number" in (client.get(function, number).output or b"")


def test_job_that_woke_a_worker_gives_way_to_a_better_one(client: Client, function: str, raw: Any) -> None:
    """And it goes back to where it was: ahead of what came later."""
    duties = worker_flow.WorkerFlow(30)
    duties.functions.append(function)
    taking = duties.next(5)
    request = next(taking)
    while not isinstance(request, flow.Moves):
        request = _answered(raw, taking, request)
    low = [client.run(function, b"%d" % n, "low") for n in range(2)]
    queue, popped = request.lists[names.PRIORITIES.index("low")]
    assert raw.rpoplpush(queue, popped) == b"%d" % low[0]
    high = client.run(function, b"h", "high")
    with pytest.raises(StopIteration) as taken:
        _answered(raw, taking, taking.send([None, None, b"%d" % low[0]]))
    assert taken.value.value == (function, "high", high, b"h")
    assert raw.lrange(queue, 0, -1) == [b"%d" % number for number in reversed(low)]
    assert not raw.exists(popped)


def _answered(raw: Any, taking: Any, request: Any) -> Any:
    """Carry out one command of a flow."""
    try:
        return taking.send(raw.execute_command(*request.commands[0]))
    except redis_py.exceptions.NoScriptError:
        return taking.throw(flow.NoScriptError())


def test_waiting_is_no_polling(worker: Worker, raw: Any) -> None:
    raw.config_resetstat()
    assert not worker.run_one(1)
    calls = {name: stats["calls"] for name, stats in raw.info("commandstats").items()}
    assert calls["cmdstat_brpoplpush"] <= 6
    assert calls["cmdstat_evalsha"] <= 3


def test_ids_that_sort_as_text_all_run(client: Client, worker: Worker, function: str) -> None:
    """At the same time 10 comes before 9; none may be left behind for that."""
    numbers = [client.run(function, b"x", "scheduled", scheduled=1000) for _ in range(12)]
    assert [worker.run_one() for _ in numbers] == [True] * 12
    assert {client.get(function, number).status for number in numbers} == {"success"}


@pytest.mark.parametrize("scheduled", [-1.0, float("inf"), float("nan")])
def test_time_at_which_no_job_would_ever_run(client: Client, function: str, scheduled: float) -> None:
    with pytest.raises(ClientError, match="is no time"):
        client.run(function, b"x", "scheduled", scheduled=scheduled)


def test_what_makes_no_sense_is_refused(client: Client, function: str) -> None:
    for arguments in ({"priority": "urgent"}, {"priority": "scheduled"}, {"scheduled": 1.0}):
        with pytest.raises(ClientError):
            client.run(function, b"", **arguments)  # type: ignore[arg-type]
    with pytest.raises(ClientError):
        client.run("", b"")
    for url in ("redis://127.0.0.1", "gearman://127.0.0.1:1", "gearmonkey://127.0.0.1/jobs"):
        with pytest.raises(AddressError):
            Client(url)


def test_blocking_and_scheduled_together(client: Client, worker: Worker, function: str) -> None:
    thread = threading.Thread(daemon=True, target=lambda: worker.run_one(10))
    thread.start()
    when = time.time() + 0.5
    number = client.run(function, b"x", "scheduled", OPT_BLOCKING, timeout=10, scheduled=when)
    thread.join()
    assert client.get(function, number).status == "success"


def test_lock_that_has_expired_does_not_keep_a_client_waiting(
    redis: redis_server.RedisProcess, client: Client, function: str, raw: Any
) -> None:
    """The lock lives for 10 seconds, and wakes one client."""

    def finish_and_forget(payload: bytes) -> bytes:
        raw.hset(f"job:{function}:1", mapping={"status": "success", "output": "done"})
        return b"done"

    with Worker(redis.url, finish_and_forget) as worker:
        worker.accept(function)
        number = client.run(function, b"x")
        assert worker.run_one()
    raw.delete(f"lock:{function}:{number}")
    client.wait(function, number, 0.05)


def test_wait_longer_than_redis_py_waits_for_an_answer(client: Client, function: str, raw: Any) -> None:
    """By its defaults it would cut the pop after 5 seconds and send it again, ten times."""
    raw.config_resetstat()
    with pytest.raises(JobTimeoutError) as waited:
        client.run(function, b"x", options=OPT_BLOCKING, timeout=5.5)
    assert client.get(function, waited.value.id).status == "idle"
    assert raw.info("commandstats")["cmdstat_brpop"]["calls"] == 2
    assert raw.llen(f"queue:{function}:normal") == 1


def test_push_that_may_have_arrived_is_not_repeated(redis: redis_server.RedisProcess, function: str, raw: Any) -> None:
    with cut_after(redis.port, b"LPUSH") as port, Client(f"gearmonkey://{serving.HOST}:{port}") as client:
        with pytest.raises(UncertainError) as uncertain:
            client.run(function, b"x")
        assert uncertain.value.id == 1
        assert raw.llen(f"queue:{function}:normal") == 1
        assert client.run(function, b"x") == 2, "the client does not recover"


def test_what_may_be_repeated_is(redis: redis_server.RedisProcess, function: str, raw: Any) -> None:
    with cut_after(redis.port, b"HMSET") as port, Client(f"gearmonkey://{serving.HOST}:{port}") as client:
        assert client.run(function, b"x") == 1
    assert raw.llen(f"queue:{function}:normal") == 1


def test_redis_that_is_started_again(function: str) -> None:
    """Everything in it is gone, scripts and counts included; clients and workers go on."""
    work = threading.Event()
    with redis_server.serve() as first:
        client = Client(first.url)
        # A job that came while the worker was finding its connections broken is back after a lease.
        worker = Worker(first.url, lambda payload: work.set() or payload.upper(), lease=2.0)
        worker.accept(function)
        thread = threading.Thread(target=worker.run, daemon=True)
        thread.start()
        client.run(function, b"x", options=OPT_BLOCKING, timeout=20)
        work.clear()
    with redis_server.serve(first.port), redis_py_peer.connect(first.port) as raw:
        number = client.run(function, b"again", options=OPT_BLOCKING, timeout=20)
        assert client.get(function, number).output == b"AGAIN"
        # The job may have been popped by a command that was under way; the worker is counted again after it.
        until(lambda: raw.get(f"count:{function}") == b"1", "the worker is counted again")
        worker.stop()
        thread.join()
        worker.close()
        assert raw.get(f"count:{function}") == b"0"
    client.close()
