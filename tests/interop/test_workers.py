"""Every library's worker; the client on the other side is the test itself, byte by byte."""

import json
from collections.abc import Callable

import pytest

from tests.interop.libraries import LIBRARIES, PERL, PYTHON3_GEARMAN, Library
from tests.interop.peer import Dial, Hire
from tests.support.gearman_peer import Kind, Peer
from tests.support.peer import until


def offering(function: str) -> pytest.MarkDecorator:
    """For every library whose worker can do that."""
    able = [library for library in LIBRARIES if function in library.offers]
    return pytest.mark.parametrize("library", able, ids=str)


@pytest.fixture
def client(dial: Dial) -> Peer:
    return dial()


@pytest.fixture
def listed(dial: Dial) -> Callable[[str], list[bytes]]:
    """Asks for the columns of a function: total, running, workers."""
    admin = dial()

    def columns(function: str) -> list[bytes]:
        rows = {name: counts for name, *counts in admin.listing("status")}
        return rows.get(function.encode(), [])

    return columns


def submit(client: Peer, function: str, data: bytes = b"go", unique: bytes = b"") -> bytes:
    return client.submit(function.encode(), unique, data)


@offering("reverse")
def test_result(hire: Hire, client: Peer, library: Library, function: str) -> None:
    hire(library, function)
    handle = submit(client, f"{function}-reverse", b"hello")
    client.expect(Kind.WORK_COMPLETE, handle, b"olleh")


@offering("reverse")
def test_jobs_that_wait_for_a_worker_run_in_their_order(
    hire: Hire, client: Peer, library: Library, function: str
) -> None:
    handles = [submit(client, f"{function}-reverse", b"%02d" % number) for number in range(30)]
    hire(library, function)
    for number, handle in enumerate(handles):
        client.expect(Kind.WORK_COMPLETE, handle, (b"%02d" % number)[::-1])


@offering("reverse")
def test_sleeping_worker_is_woken(
    hire: Hire, client: Peer, listed: Callable[[str], list[bytes]], library: Library, function: str
) -> None:
    """Each job is sent when the worker has nothing to do, so it has to be told of every one."""
    hire(library, function)
    until(lambda: listed(f"{function}-reverse") == [b"0", b"0", b"1"], "the worker is there")
    for number in range(5):
        handle = submit(client, f"{function}-reverse", b"1%d" % number)
        client.expect(Kind.WORK_COMPLETE, handle, b"%d1" % number)


@pytest.mark.parametrize("library", [one for one in LIBRARIES if one.binary], ids=str)
@pytest.mark.parametrize("payload", [bytes(range(256)), b"0123456789abcdef" * (1 << 16)], ids=["every-byte", "large"])
def test_payload_and_result_are_any_bytes(
    hire: Hire, client: Peer, library: Library, function: str, payload: bytes
) -> None:
    hire(library, function)
    handle = submit(client, f"{function}-reverse", payload)
    client.expect(Kind.WORK_COMPLETE, handle, payload[::-1])


@offering("empty")
def test_empty_result(hire: Hire, client: Peer, library: Library, function: str) -> None:
    hire(library, function)
    handle = submit(client, f"{function}-empty")
    client.expect(Kind.WORK_COMPLETE, handle, b"")


@offering("unique")
def test_unique_key_reaches_the_worker(hire: Hire, client: Peer, library: Library, function: str) -> None:
    hire(library, function)
    handle = submit(client, f"{function}-unique", unique=b"the-key")
    client.expect(Kind.WORK_COMPLETE, handle, b"the-key")


@offering("report")
def test_progress(hire: Hire, client: Peer, library: Library, function: str) -> None:
    hire(library, function)
    handle = submit(client, f"{function}-report")
    client.expect(Kind.WORK_STATUS, handle, b"1", b"4")
    client.expect(Kind.WORK_DATA, handle, b"part")
    client.expect(Kind.WORK_WARNING, handle, b"careful")
    client.expect(Kind.WORK_STATUS, handle, b"4", b"4")
    client.expect(Kind.WORK_COMPLETE, handle, b"whole")


@offering("fail")
def test_failure_and_the_next_job(hire: Hire, client: Peer, library: Library, function: str) -> None:
    hire(library, function)
    client.expect(Kind.WORK_FAIL, submit(client, f"{function}-fail"))
    handle = submit(client, f"{function}-reverse", b"on")
    client.expect(Kind.WORK_COMPLETE, handle, b"no")


# These say WORK_FAIL after WORK_EXCEPTION. gearmand answers that with an ERROR, at which Perl's worker ends.
TELLS_TWICE = (PERL, PYTHON3_GEARMAN)


@pytest.mark.parametrize(
    "library",
    [
        pytest.param(one, marks=[pytest.mark.differs_from_gearmand] if one in TELLS_TWICE else [], id=str(one))
        for one in LIBRARIES
        if "die" in one.offers
    ],
)
def test_exception_and_the_next_job(hire: Hire, client: Peer, library: Library, function: str) -> None:
    worker = hire(library, function)
    client.send(Kind.OPTION_REQ, b"exceptions")
    client.expect(Kind.OPTION_RES, b"exceptions")
    for word in (b"one", b"two"):
        handle = submit(client, f"{function}-die")
        told, _, text = client.body(Kind.WORK_EXCEPTION).partition(b"\0")
        assert told == handle
        assert b"it broke" in text  # Perl freezes it in a format of its own
        handle = submit(client, f"{function}-reverse", word)
        client.expect(Kind.WORK_COMPLETE, handle, word[::-1])
    assert worker.process.poll() is None


@offering("gate")
def test_running_job_is_counted_and_known(
    hire: Hire, client: Peer, listed: Callable[[str], list[bytes]], library: Library, function: str
) -> None:
    worker = hire(library, function)
    gate = f"{function}-gate"
    running, waiting = submit(client, gate, b"first"), submit(client, gate, b"second")
    worker.wait_for_gate(b"first")
    assert listed(gate) == [b"2", b"1", b"1"]
    assert client.status(running) == (1, 1, 0, 0)
    assert client.status(waiting) == (1, 0, 0, 0)
    worker.open_gate()
    client.expect(Kind.WORK_COMPLETE, running, b"first")
    worker.wait_for_gate(b"second")
    worker.open_gate()
    client.expect(Kind.WORK_COMPLETE, waiting, b"second")
    until(lambda: listed(gate) == [b"0", b"0", b"1"], "the queue is empty")


@offering("gate")
def test_job_of_a_killed_worker_goes_to_the_next_one(hire: Hire, client: Peer, library: Library, function: str) -> None:
    first = hire(library, function)
    handle = submit(client, f"{function}-gate", b"passed on")
    first.wait_for_gate(b"passed on")
    second = hire(library, function)
    first.kill()
    second.wait_for_gate(b"passed on")
    second.open_gate()
    client.expect(Kind.WORK_COMPLETE, handle, b"passed on")


@pytest.mark.differs_from_gearmand
@offering("gate")
def test_cancelled_job_and_the_next_one(hire: Hire, client: Peer, dial: Dial, library: Library, function: str) -> None:
    """The worker answers for a job that is over. It gets no error, at which some of them would end, and goes on."""
    worker = hire(library, function)
    handle = submit(client, f"{function}-gate", b"cancelled")
    worker.wait_for_gate(b"cancelled")
    assert dial().text(f"cancel job {handle.decode()}").line() == b"OK\r\n"
    client.expect(Kind.WORK_FAIL, handle)
    worker.open_gate()
    handle = submit(client, f"{function}-reverse", b"next")
    client.expect(Kind.WORK_COMPLETE, handle, b"txen")
    assert worker.process.poll() is None


@pytest.mark.differs_from_gearmand
@offering("gate")
def test_job_that_exceeds_max_run_and_the_next_one(hire: Hire, client: Peer, library: Library, function: str) -> None:
    """A limit that needs nothing from the worker."""
    order = {"do": "configure", "function": f"{function}-gate", "max_run": 0.5}
    submit(client, "geartrain.control", json.dumps(order).encode())
    assert b"answer" in client.body(Kind.WORK_COMPLETE)
    worker = hire(library, function)
    handle = submit(client, f"{function}-gate", b"too slow")
    worker.wait_for_gate(b"too slow")
    client.expect(Kind.WORK_FAIL, handle)
    worker.open_gate()
    handle = submit(client, f"{function}-reverse", b"next")
    client.expect(Kind.WORK_COMPLETE, handle, b"txen")
    assert worker.process.poll() is None


@offering("gate")
def test_two_workers_share_the_work(hire: Hire, client: Peer, library: Library, function: str) -> None:
    workers = [hire(library, function), hire(library, function)]
    gate = f"{function}-gate"
    first = submit(client, gate, b"shared")
    second = submit(client, gate, b"shared")
    for worker in workers:
        worker.wait_for_gate(b"shared")
    for worker in workers:
        worker.open_gate()
    answers = [client.body(Kind.WORK_COMPLETE), client.body(Kind.WORK_COMPLETE)]
    assert sorted(answers) == sorted([first + b"\0shared", second + b"\0shared"])


@offering("reverse")
def test_worker_that_is_killed_is_counted_no_more(
    hire: Hire, listed: Callable[[str], list[bytes]], library: Library, function: str
) -> None:
    worker = hire(library, function)
    until(lambda: listed(f"{function}-reverse") == [b"0", b"0", b"1"], "the worker is there")
    worker.kill()
    until(lambda: listed(f"{function}-reverse") == [b"0", b"0", b"0"], "the worker is gone")
