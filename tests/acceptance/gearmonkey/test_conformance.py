"""GearMonkey's scenarios: on a real Redis and on our door, by our programs and by plain ones, in every mix."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from geartrain.client.gearmonkey import OPT_BLOCKING, OPT_ROLLCALL
from geartrain.errors import NoWorkersError

BINARY = bytes(range(256))
MakeWorker = Callable[..., Any]


def test_job_is_run(client: Any, make_worker: MakeWorker, function: str) -> None:
    worker = make_worker(function)
    number = client.run(function, b"hello")
    assert (client.get(function, number).status, client.get(function, number).input) == ("idle", b"hello")
    assert worker.run_one()
    job = client.get(function, number)
    assert (job.status, job.output, job.input) == ("success", b"olleh", b"hello")


def test_payloads_are_bytes(client: Any, make_worker: MakeWorker, function: str) -> None:
    worker = make_worker(function)
    number = client.run(function, BINARY * 1000)
    assert worker.run_one()
    assert client.get(function, number).output == BINARY[::-1] * 1000


def test_empty_payload(client: Any, make_worker: MakeWorker, function: str) -> None:
    worker = make_worker(function)
    number = client.run(function)
    assert worker.run_one()
    assert client.get(function, number)[:3] == ("success", b"", b"")


def test_blocking_client_returns_when_the_job_is_finished(client: Any, make_worker: MakeWorker, function: str) -> None:
    worker = make_worker(function)
    thread = threading.Thread(daemon=True, target=lambda: worker.run_one(10))
    thread.start()
    number = client.run(function, b"abc", options=OPT_BLOCKING, timeout=10)
    thread.join()
    assert client.get(function, number).output == b"cba"


def test_error_is_a_finished_job(client: Any, make_worker: MakeWorker, function: str) -> None:
    def fail(payload: bytes) -> bytes:
        raise ValueError("no such luck")

    worker = make_worker(function, fail)
    number = client.run(function, b"abc")
    assert worker.run_one()
    assert client.get(function, number)[:3] == ("error", b"abc", b"no such luck")


def test_roll_call(client: Any, make_worker: MakeWorker, function: str, raw: Any) -> None:
    with pytest.raises(NoWorkersError):
        client.run(function, options=OPT_ROLLCALL)
    assert not raw.exists(f"queue:{function}:normal")
    worker = make_worker(function)
    number = client.run(function, b"ab", options=OPT_ROLLCALL)
    assert worker.run_one()
    assert client.get(function, number).output == b"ba"
    worker.close()
    with pytest.raises(NoWorkersError):
        client.run(function, options=OPT_ROLLCALL)


def test_count_of_workers(make_worker: MakeWorker, function: str, raw: Any) -> None:
    workers = [make_worker(function) for _ in range(3)]
    assert raw.get(f"count:{function}") == b"3"
    workers[0].close()
    assert raw.get(f"count:{function}") == b"2"


def test_priorities_then_the_order_of_submission(client: Any, make_worker: MakeWorker, function: str) -> None:
    done: list[bytes] = []
    worker = make_worker(function, lambda payload: done.append(payload) or b"")
    for priority in ("low", "normal", "high", "low", "normal", "high"):
        client.run(function, f"{priority}{len(done)}", priority)
    client.run(function, b"last", "high")
    while worker.run_one(0.01):
        pass
    assert done == [b"high0", b"high0", b"last", b"normal0", b"normal0", b"low0", b"low0"]


def test_scheduled_job_waits_for_its_time(client: Any, make_worker: MakeWorker, function: str) -> None:
    done: list[bytes] = []
    worker = make_worker(function, lambda payload: done.append(payload) or b"")
    later = client.run(function, b"later", "scheduled", scheduled=int(time.time()) + 1000)
    client.run(function, b"low", "low")
    client.run(function, b"due", "scheduled", scheduled=int(time.time()) - 10)
    while worker.run_one(0.01):
        pass
    assert done == [b"due", b"low"]
    assert client.get(function, later).status == "idle"


def test_scheduled_job_runs_when_its_time_has_come(client: Any, make_worker: MakeWorker, function: str) -> None:
    worker = make_worker(function)
    soon = int(time.time()) + 1
    number = client.run(function, b"ab", "scheduled", scheduled=soon)
    deadline = time.monotonic() + 10
    while not worker.run_one(0.1) and time.monotonic() < deadline:
        pass
    assert time.time() >= soon
    assert client.get(function, number).output == b"ba"


def test_progress(client: Any, make_worker: MakeWorker, function: str) -> None:
    seen: list[tuple[Any, ...]] = []

    def work(payload: bytes) -> bytes:
        worker.update(1, 4)
        seen.append(client.get(function, number))
        return payload

    worker = make_worker(function, work)
    number = client.run(function, b"x")
    assert worker.run_one()
    assert seen[0].status == "busy"
    assert (seen[0].dividend, seen[0].divisor) == (1, 4)


def test_events(client: Any, make_worker: MakeWorker, function: str, raw: Any) -> None:
    worker = make_worker(function)
    subscriber = raw.pubsub()
    subscriber.subscribe(f"channel:{function}")
    assert subscriber.get_message(timeout=5)["type"] == "subscribe"
    number = client.run(function, b"x")
    assert worker.run_one()
    heard = [subscriber.get_message(timeout=5) for _ in range(3)]
    subscriber.close()
    assert [message["data"].decode() for message in heard] == [
        f"create:{number}",
        f"start:{number}",
        f"finish:{number}",
    ]


def test_hash_expires_after_25_hours(client: Any, make_worker: MakeWorker, function: str, raw: Any) -> None:
    worker = make_worker(function)
    number = client.run(function, b"x")
    assert raw.ttl(f"job:{function}:{number}") == -1
    assert worker.run_one()
    assert 89990 <= raw.ttl(f"job:{function}:{number}") <= 90000


def test_ids_are_never_used_twice(client: Any, function: str) -> None:
    numbers = [client.run(function) for _ in range(12)]
    assert sorted(set(numbers)) == numbers


def test_two_clients_can_wait_in_turn(client: Any, make_worker: MakeWorker, function: str) -> None:
    worker = make_worker(function)
    thread = threading.Thread(daemon=True, target=lambda: [worker.run_one(10) for _ in range(2)])
    thread.start()
    numbers = [client.run(function, b"ab", options=OPT_BLOCKING, timeout=10) for _ in range(2)]
    thread.join()
    assert [client.get(function, number).status for number in numbers] == ["success"] * 2


def test_worker_of_several_functions(client: Any, make_worker: MakeWorker, function: str) -> None:
    worker = make_worker(function)
    worker.accept(function + "b")
    numbers = [(name, client.run(name, b"ab")) for name in (function + "b", function)]
    assert worker.run_one()
    assert worker.run_one()
    assert [client.get(*number).output for number in numbers] == [b"ba", b"ba"]
