"""After CLIENT INPUT ON a blocking pop also replies with the input of the job."""

from collections.abc import Iterator

import pytest

from geartrain.doors.gearmonkey import blocked_pops
from geartrain.wire import resp
from tests.support import gearmonkey_door
from tests.support.gearmonkey_door import Bench

POP = "BRPOP queue:f:high queue:f:normal 1"
OK = b"+OK\r\n"
QUEUE = b"queue:f:normal"


@pytest.fixture
def door() -> Iterator[Bench]:
    with gearmonkey_door.opened() as bench:
        yield bench


def test_input_of_a_job_that_waits_and_of_one_that_is_waited_for(door: Bench) -> None:
    worker = door.peer()
    assert worker.ask("CLIENT INPUT on") == OK
    number = door.submit(payload="first")
    assert worker.ask(POP) == resp.encode([QUEUE, b"%d" % number, b"first"], 2)
    assert worker.ask(POP) == b""
    before = len(worker.transport.written)
    number = door.submit(payload="second")
    assert worker.transport.written[before:] == resp.encode([QUEUE, b"%d" % number, b"second"], 2)


@pytest.mark.parametrize("command", [None, "CLIENT INPUT OFF", "RESET"])
def test_only_on_demand(door: Bench, command: str | None) -> None:
    worker = door.peer()
    if command is not None:
        worker.ask("CLIENT INPUT ON", command)
    number = door.submit()
    assert worker.ask(POP) == resp.encode([QUEUE, b"%d" % number], 2)


def test_large_input_is_read_from_the_hash(door: Bench) -> None:
    worker = door.peer()
    worker.ask("CLIENT INPUT ON")
    sizes = (blocked_pops.LONGEST_INPUT, blocked_pops.LONGEST_INPUT + 1)
    numbers = [door.submit(payload="x" * size) for size in sizes]
    assert worker.ask(POP) == resp.encode([QUEUE, b"%d" % numbers[0], b"x" * sizes[0]], 2)
    assert worker.ask(POP) == resp.encode([QUEUE, b"%d" % numbers[1]], 2)


def test_other_pops_are_as_before(door: Bench) -> None:
    worker = door.peer()
    worker.ask("CLIENT INPUT ON")
    number = door.submit()
    assert worker.ask("RPOP queue:f:normal") == resp.encode(b"%d" % number, 2)
    worker.ask(f"HMSET job:f:{number} status success output y")
    assert worker.ask(f"BRPOP lock:f:{number} 1") == resp.encode([b"lock:f:%d" % number, b"OK"], 2)


@pytest.mark.parametrize("words", ["CLIENT INPUT", "CLIENT INPUT YES", "CLIENT INPUT ON OFF"])
def test_invalid_option(door: Bench, words: str) -> None:
    assert door.ask(words).startswith(b"-ERR")
