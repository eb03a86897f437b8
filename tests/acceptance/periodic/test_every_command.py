"""Every command of the document and of today's list, over TCP and over a socket file, in both dialects."""

from collections.abc import Callable

import pytest

from tests.support import serving
from tests.support.peer import Location
from tests.support.periodic_peer import WORKER, Command, Dial, Dialect, Peer, config, job, text

TODAYS_OWN = range(26, 35)


@pytest.fixture(params=["tcp", "socket file"])
def place(request: pytest.FixtureRequest, server: serving.ServerProcess, socket_file: str) -> Location:
    return socket_file if request.param == "socket file" else server.port


def test_ping(client: Peer, worker: Peer) -> None:
    for peer in (client, worker):
        peer.expect(peer.send(Command.PING, message_id=b"\0\xff\0\n"), Command.PONG)


def test_submit_and_work(client: Peer, worker: Peer, function: bytes) -> None:
    client.submit(function, b"name", b"payload", 1_534_900_000, count=7)
    given = worker.take()
    assert given[1:6] == (function, b"name", b"payload", 1_534_900_000, 7)
    worker.done(given, b"result nobody waits for")
    worker.silence()
    client.silence()
    assert client.status()[function][:3] == [1, 0, 0]


def test_the_timeout_of_a_job_travels(client: Peer, worker: Peer, function: bytes) -> None:
    client.submit(function, b"name", timeout=9)
    assert worker.take().timeout == 9
    client.submit(function, b"other", count=-3, timeout=2**31 - 1)
    given = worker.take()
    assert (given.count, given.timeout) == (-3, 2**31 - 1)


def test_a_job_without_a_timeout_is_given_the_configured_one(
    client: Peer, worker: Peer, function: bytes, dialect: Dialect
) -> None:
    client.submit(function, b"name")
    assert worker.take().timeout == (600 if dialect is Dialect.TODAY else 0)


def test_submit_in_the_form_from_before_versions(client: Peer, worker: Peer, function: bytes) -> None:
    versioned = job(function, b"old", b"payload", 3)
    client.succeed(Command.SUBMIT_JOB, versioned[:-1] + (12).to_bytes(4, "big"))
    assert worker.take()[1:6] == (function, b"old", b"payload", 3, 12)


def test_run(client: Peer, worker: Peer, function: bytes) -> None:
    grab = worker.grab()
    waiting = client.run(function, b"name", b"hello")
    worker.done(worker.assigned(grab), b"R:hello")
    assert client.data(waiting) == b"R:hello"
    client.silence()


def test_run_with_an_empty_result(client: Peer, worker: Peer, function: bytes) -> None:
    waiting = client.run(function, b"name")
    worker.done(worker.take())
    assert client.data(waiting) == b""


def test_status(client: Peer, worker: Peer, function: bytes, dialect: Dialect) -> None:
    client.submit(function, b"runs")
    worker.take()
    client.submit(function, b"waits", run_at=4_000_000_000)
    client.submit(function, b"waits longer", run_at=4_000_000_001)
    numbers = [1, 3, 1, 0, 4_000_000_000] if dialect is Dialect.TODAY else [1, 3, 1, 4_000_000_000]
    assert client.status()[function] == numbers
    client.submit(function, b"is due", run_at=5)
    assert client.status()[function][-1] == 5


def test_status_has_lines_without_an_end_after_the_last(client: Peer, hire: Callable[..., Peer]) -> None:
    hire(b"a", b"b")
    answer = client.data(client.send(Command.STATUS))
    assert not answer.endswith(b"\n")
    assert {line.split(b",")[0] for line in answer.split(b"\n")} >= {b"a", b"b"}


def test_drop(client: Peer, function: bytes, hire: Callable[..., Peer]) -> None:
    client.submit(function, b"due")
    client.submit(function, b"scheduled", run_at=4_000_000_000)
    with hire(function):
        client.succeed(Command.DROP_FUNC, text(function))
        assert client.status()[function][1] == 2, "it is offered, so it stays"
    while client.status()[function][0]:
        pass
    client.succeed(Command.DROP_FUNC, text(function))
    assert function not in client.status()
    assert not any(job.function == function for job in client.dump())
    client.succeed(Command.DROP_FUNC, text(b"never heard of"))


def test_remove(client: Peer, worker: Peer, function: bytes) -> None:
    client.submit(function, b"scheduled", run_at=4_000_000_000)
    client.submit(function, b"runs")
    given = worker.take()
    for name in (b"scheduled", b"runs", b"never heard of"):
        client.succeed(Command.REMOVE_JOB, text(function) + text(name))
    assert client.status()[function][:3] == [1, 0, 0]
    worker.done(given, b"late")
    worker.silence()


def test_dump(client: Peer, worker: Peer, function: bytes) -> None:
    client.submit(function, b"runs", b"\0\xff", count=2)
    worker.take()
    client.submit(function, b"waits", run_at=4_000_000_000, timeout=3)
    found = {entry.name: entry for entry in client.dump() if entry.function == function}
    assert found[b"runs"][3] == b"\0\xff"
    assert (found[b"runs"].count, found[b"runs"].timeout) == (2, 0)
    assert (found[b"waits"].run_at, found[b"waits"].timeout) == (4_000_000_000, 3)


def test_config(client: Peer) -> None:
    assert client.get(b"revert-interval") == 300
    assert client.get(b"unheard-of") == 0
    client.succeed(Command.CONFIG_SET, config(b"unheard-of", 5))
    assert client.get(b"unheard-of") == 0


def test_can_do_and_cant_do(client: Peer, worker: Peer, function: bytes) -> None:
    assert client.status()[function][0] == 1
    worker.confirmed(Command.CANT_DO, text(function))
    worker.silence()
    assert client.status()[function][0] == 0
    worker.confirmed(Command.CANT_DO, text(b"never offered"))
    client.submit(function, b"name")
    grab = worker.grab()
    worker.silence()
    worker.confirmed(Command.CAN_DO, text(function))
    assert worker.assigned(grab).name == b"name"


def test_sleep(worker: Peer) -> None:
    worker.expect(worker.send(Command.SLEEP), Command.NOOP)


def test_grab_is_answered_when_there_is_a_job(client: Peer, worker: Peer, function: bytes) -> None:
    grabs = [worker.grab(), worker.grab()]
    worker.silence()
    client.submit(function, b"first")
    assert worker.assigned(grabs[0]).name == b"first"
    worker.silence()
    client.submit(function, b"second")
    assert worker.assigned(grabs[1]).name == b"second"


def test_fail_is_confirmed_as_the_dialect_wants_it(client: Peer, worker: Peer, function: bytes) -> None:
    client.submit(function, b"name")
    worker.fail(worker.take())
    worker.silence()
    assert client.status()[function][:3] == [1, 1, 0]


def test_later(client: Peer, worker: Peer, function: bytes) -> None:
    client.submit(function, b"name", b"payload", count=2)
    worker.later(worker.take(), 1000, -5)
    worker.silence()
    [entry] = [entry for entry in client.dump() if entry.function == function]
    assert (entry.payload, entry.count) == (b"payload", -3)
    assert client.status()[function][:3] == [1, 1, 0]


def test_what_a_worker_says_of_jobs_that_it_does_not_have_is_passed_over(
    worker: Peer, hire: Callable[..., Peer], client: Peer, function: bytes
) -> None:
    client.submit(function, b"name")
    other = hire(function)
    given = other.take()
    worker.done(given)
    worker.fail(given)
    worker.later(given, 5)
    worker.silence()
    assert client.status()[function][1:3] == [1, 1]
    other.done(given)
    other.silence()
    assert client.status()[function][1:3] == [0, 0]


def test_workers_may_be_clients(worker: Peer, function: bytes) -> None:
    worker.submit(function, b"its own")
    assert worker.take().name == b"its own"
    assert worker.status()[function][2] == 1


@pytest.mark.parametrize("number", [*TODAYS_OWN, 35, 99, 255])
def test_what_the_document_does_not_know_is_unknown_in_it(dial: Dial, number: int) -> None:
    for kind in (1, WORKER):
        peer = dial(Dialect.DOCUMENT, kind)
        peer.expect(peer.send(number, b"\0" * 30), Command.UNKNOWN)


@pytest.mark.parametrize("number", [0, 5, 6, 10, 12, 16, 24, 26, 29, 30, 35, 255])
def test_what_only_servers_say_is_unknown_from_peers(dial: Dial, number: int) -> None:
    peer = dial(Dialect.TODAY, WORKER)
    peer.expect(peer.send(number, b"\0" * 30), Command.UNKNOWN)
    peer.silence()


def test_acquire_and_release(dial: Dial, function: bytes) -> None:
    worker = dial(Dialect.TODAY, WORKER).offer(function)
    worker.submit(function, b"name")
    given = worker.take()
    assert worker.acquire(given, b"lock")
    assert worker.acquire(given, b"lock"), "it has it already"
    worker.release(given, b"lock")
    worker.release(given, b"never acquired")
    worker.silence()


def test_acquire_for_a_job_that_does_not_run_is_granted(dial: Dial, function: bytes) -> None:
    worker = dial(Dialect.TODAY, WORKER).offer(function)
    worker.submit(function, b"name")
    given = worker.take()
    worker.done(given)
    assert worker.acquire(given, b"lock")


def test_no_worker(dial: Dial, function: bytes) -> None:
    client = dial(Dialect.TODAY)
    client.expect(client.run(function, b"name"), Command.NO_WORKER)
    client.expect(client.send(Command.RECV_DATA, job(function, b"name")), Command.NO_WORKER)
    assert function not in client.status()


def test_data(dial: Dial, function: bytes) -> None:
    worker = dial(Dialect.TODAY, WORKER).offer(function)
    client = dial(Dialect.TODAY)
    receiving = client.send(Command.RECV_DATA, job(function, b"name"))
    client.expect(receiving, Command.SUCCESS)
    client.submit(function, b"name")
    given = worker.take()
    for part in (b"one", b"", b"three"):
        worker.part(given, part)
        assert client.data(receiving) == part
    worker.done(given, b"result")
    assert client.data(receiving) == b"EOF"
    client.silence()


def test_assigned_and_unassigned(dial: Dial, function: bytes) -> None:
    worker = dial(Dialect.TODAY, WORKER).offer(function)
    worker.submit(function, b"name")
    given = worker.take()
    worker.send(Command.JOB_ASSIGNED, message_id=given.message_id)
    worker.silence()
    worker.send(Command.JOB_UNASSIGNED, message_id=given.message_id)
    worker.send(Command.JOB_UNASSIGNED, message_id=given.message_id)
    worker.silence()
    again = worker.take()
    assert again.name == b"name"
    worker.done(again)
    worker.silence()
    assert worker.status()[function][1] == 0
