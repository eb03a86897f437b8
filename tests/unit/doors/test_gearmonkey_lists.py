"""LRANGE, ZRANGE and their like: long lists are made in steps, and are the same as short ones."""

from collections.abc import Iterator

import pytest

from geartrain.doors.door import Limits
from geartrain.doors.gearmonkey import queue_lists
from tests.support import gearmonkey_door
from tests.support.gearmonkey_door import Bench

QUEUE = "queue:f:normal"
SCHEDULED = "queue:f:scheduled"
RANGES = [
    (0, -1),
    (0, 0),
    (-1, -1),
    (0, 9),
    (-10, -1),
    (5, 25),
    (-25, -6),
    (3, 2),
    (29, 99),
    (30, 30),
    (-99, 1),
    (0, -31),
]


@pytest.fixture
def bench() -> Iterator[Bench]:
    """Thirty queued jobs, some of them put before others; twenty scheduled ones, of which five are due."""
    with gearmonkey_door.opened() as bench:
        for number in range(30):
            run_at = bench.now - 100 * (number % 7 == 3)
            bench.engine.submit(b"f", background=True, run_at=run_at)
            bench.engine.submit(b"other", background=True)
        peer = bench.peer()
        for number in range(20):
            id = peer.ask("INCR uid:f")[1:].strip().decode()
            when = bench.now + 5 if number < 5 else bench.now + 100 * (number // 4)
            peer.ask(f"HMSET job:f:{id} status idle input x", f"ZADD {SCHEDULED} {when} {id}")
        bench.pass_time(10)
        yield bench


def replies(bench: Bench, commands: list[str]) -> list[bytes]:
    """The reply to each command, in both versions of the protocol."""
    found = []
    for hello in ("HELLO 2", "HELLO 3"):
        for command in commands:
            peer = bench.peer()
            peer.ask(hello)
            peer.transport.written = b""
            peer.ask(command)
            for _ in range(5):
                bench.turn()
            found.append(peer.transport.written)
            peer.close()
    return found


def test_a_list_in_steps_is_the_same_as_at_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = [f"LRANGE {QUEUE} {first} {last}" for first, last in RANGES]
    commands += [f"ZRANGE {SCHEDULED} {first} {last}" for first, last in RANGES]
    commands += [f"ZRANGE {SCHEDULED} {first} {last} WITHSCORES" for first, last in RANGES]
    commands += [f"ZCARD {SCHEDULED}", f"ZRANGEBYSCORE {SCHEDULED} -inf +inf"]
    commands += [f"ZRANGEBYSCORE {SCHEDULED} {bench.now} ({bench.now + 200} WITHSCORES LIMIT 1 {n}" for n in (-1, 0, 5)]
    at_once = replies(bench, commands)
    monkeypatch.setattr(queue_lists, "_AT_ONCE", -1)
    monkeypatch.setattr(queue_lists, "_RUN", 4)
    assert replies(bench, commands) == at_once
    assert at_once[0].startswith(b"*30\r\n")
    assert at_once[commands.index(f"ZCARD {SCHEDULED}")] == b":20\r\n"


def test_ids_are_listed_in_the_order_of_the_queue(bench: Bench) -> None:
    function = bench.engine.functions[b"f"]
    order = [b"%d" % job.id for job in function.queues[1]]
    assert bench.ask(f"LRANGE {QUEUE} 0 -1").split(b"\r\n")[2::2] == order[::-1]
    assert bench.ask(f"LRANGE {QUEUE} -3 -1").split(b"\r\n")[2::2] == order[2::-1]
    assert bench.ask(f"LRANGE {QUEUE} 0 2").split(b"\r\n")[2::2] == order[:-4:-1]


def test_the_time_of_a_scheduled_job(bench: Bench) -> None:
    due, late = [bench.ask(f"ZRANGE {SCHEDULED} {place} {place}").split(b"\r\n")[2].decode() for place in (0, 19)]
    assert bench.ask(f"ZSCORE {SCHEDULED} {due}").endswith(b"\r\n1000005\r\n")
    assert bench.ask(f"ZSCORE {SCHEDULED} {late}").endswith(b"\r\n1000400\r\n")
    queued = next(iter(bench.engine.functions[b"f"].queues[1])).id
    for unknown in (queued, 999_999, "x"):
        assert bench.ask(f"ZSCORE {SCHEDULED} {unknown}") == b"$-1\r\n"


def test_others_are_served_while_a_long_list_is_made() -> None:
    with gearmonkey_door.opened(limits=Limits(turn=0.0)) as bench:
        jobs = [bench.engine.submit(b"f", background=True) for _ in range(11_000)]
        lister, other = bench.peer(), bench.peer()
        lister.ask(f"LRANGE {QUEUE} 0 -1")
        assert lister.transport.written == b""
        assert other.ask("PING") == b"+PONG\r\n"
        while not lister.transport.reading:
            bench.turn()
        bench.turn()
        ids = lister.transport.written.split(b"\r\n")[2::2]
        assert ids == [b"%d" % job.id for job in reversed(jobs)]


def test_a_transaction_lists_a_bounded_number_of_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_lists, "_MOST_IN_TRANSACTION", 250)
    with gearmonkey_door.opened() as bench:
        for _ in range(100):
            bench.engine.submit(b"f", background=True)
        peer = bench.peer()
        answer = peer.ask("MULTI", *[f"LRANGE {QUEUE} 0 -1"] * 3, "EXEC")
        assert answer.count(b"*100\r\n") == 2
        assert b"-ERR a transaction lists at most 250 jobs" in answer


def test_a_pop_of_many_jobs_is_bounded() -> None:
    with gearmonkey_door.opened() as bench:
        for _ in range(10_010):
            bench.engine.submit(b"f", background=True)
        assert bench.ask(f"LPOP {QUEUE} 1000000").startswith(b"*10000\r\n")
