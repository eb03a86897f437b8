"""What a name means, and in which order jobs run."""

import time
from collections.abc import Callable

from tests.support import gearman_peer
from tests.support.periodic_peer import Command, Dialect, Peer, job, jobs

FAR = 4_000_000_000


def test_a_pending_name_is_replaced(client: Peer, hire: Callable[..., Peer], function: bytes) -> None:
    client.submit(function, b"name", b"ONE", FAR, count=1)
    client.submit(function, b"name", b"TWO", 5, timeout=7)
    assert client.status()[function][1] == 1
    given = hire(function).take()
    assert given[2:6] == (b"name", b"TWO", 5, 0)
    assert given.timeout == 7


def test_a_due_job_can_be_put_off_by_submitting_it_again(client: Peer, worker: Peer, function: bytes) -> None:
    client.submit(function, b"name")
    client.submit(function, b"name", b"later", FAR)
    worker.grab()
    worker.silence()
    assert [entry.run_at for entry in client.dump() if entry.function == function] == [FAR]


def test_a_running_name_is_left_alone(client: Peer, worker: Peer, function: bytes) -> None:
    client.submit(function, b"name", b"ONE")
    given = worker.take()
    client.submit(function, b"name", b"TWO")
    worker.grab()
    worker.silence()
    worker.done(given)
    worker.silence()
    assert client.status()[function][1:3] == [0, 0]


def test_the_same_name_in_two_functions_is_two_jobs(client: Peer, hire: Callable[..., Peer], function: bytes) -> None:
    functions = [function + b"-a", function + b"-b"]
    for name in functions:
        client.submit(name, b"name")
    worker = hire(*functions)
    assert sorted(worker.take().function for _ in functions) == functions


def test_an_empty_name_is_nobody_s(client: Peer, worker: Peer, function: bytes) -> None:
    client.submit(function, b"", b"ONE")
    client.submit(function, b"", b"TWO")
    given = [worker.take(), worker.take()]
    assert [each.payload for each in given] == [b"ONE", b"TWO"]
    for each in given:
        worker.done(each)
    worker.silence()
    assert client.status()[function][1] == 0


def test_names_of_every_length_and_byte(client: Peer, worker: Peer, function: bytes) -> None:
    for name in (b"x" * 255, bytes(range(256))[1:], b"\0", b"a,b\n"):
        client.submit(function, name, name)
        given = worker.take()
        assert (given.name, given.payload) == (name, name)
        worker.done(given)


def test_strictly_by_time(client: Peer, hire: Callable[..., Peer], function: bytes) -> None:
    times = {b"mid": 2000, b"late": 3000, b"early": 1000, b"now": 0, b"mid too": 2000, b"first": -5}
    for name, run_at in times.items():
        client.submit(function, name, run_at=run_at)
    worker = hire(function)
    names = [worker.take().name for _ in times]
    # Before 1970 is as good as now.
    assert names == [b"early", b"mid", b"mid too", b"late", b"now", b"first"]


def test_a_job_waits_for_its_time(client: Peer, worker: Peer, function: bytes) -> None:
    soon = int(time.time()) + 2
    client.submit(function, b"later", run_at=soon + 1)
    client.submit(function, b"sooner", run_at=soon)
    grabs = [worker.grab(), worker.grab()]
    for grab, name, run_at in ((grabs[0], b"sooner", soon), (grabs[1], b"later", soon + 1)):
        given = worker.assigned(grab)
        assert (given.name, given.run_at) == (name, run_at)
        assert time.time() >= run_at - 0.001


def test_times_beyond_all_time(client: Peer, worker: Peer, function: bytes) -> None:
    client.submit(function, b"never", run_at=2**63 - 1)
    client.submit(function, b"long ago", run_at=-(2**63))
    given = worker.take()
    assert given.name == b"long ago"
    worker.later(given, 2**63 - 1)
    worker.grab()
    worker.silence()
    assert client.status()[function][1:3] == [2, 0]
    assert client.status()[function][-1] > 2**62
    assert len([entry for entry in client.dump() if entry.function == function]) == 2


def test_later_in_the_past_is_now(client: Peer, worker: Peer, function: bytes) -> None:
    client.submit(function, b"name")
    worker.later(worker.take(), -(2**63), 1)
    assert worker.take().count == 1


def test_counts_stop_where_they_cannot_be_said(client: Peer, worker: Peer, function: bytes) -> None:
    client.submit(function, b"up", count=2**31 - 1)
    worker.later(worker.take(), 0, 32767)
    assert worker.take().count == 2**31 - 1
    client.submit(function, b"down", count=-(2**31))
    worker.later(worker.take(), 0, -32768)
    assert worker.take().count == -(2**31)
    worker.silence()


def test_a_new_job_is_in_the_status_at_once(client: Peer, function: bytes) -> None:
    for run_at in (FAR + 2, FAR + 1, FAR):
        client.submit(function, b"%d" % run_at, run_at=run_at)
        assert client.status()[function][-1] == run_at


def test_large_payloads(client: Peer, worker: Peer, function: bytes) -> None:
    payload = bytes(range(256)) * 40_000
    waiting = client.run(function, b"large", payload)
    given = worker.take()
    assert given.payload == payload
    worker.done(given, payload[::-1])
    assert client.data(waiting) == payload[::-1]


def test_a_queue_that_is_full_refuses(
    client: Peer,
    function: bytes,
    gearman: Callable[[], gearman_peer.Peer],
    hire: Callable[..., Peer],
    dialect: Dialect,
) -> None:
    client.submit(function, b"one", run_at=FAR)
    admin = gearman().text(b"maxqueue " + function + b" 1")
    assert admin.line() == b"OK\r\n"
    client.expect(client.send(Command.SUBMIT_JOB, job(function, b"two")), Command.UNKNOWN)
    client.expect(client.send(Command.LOAD, jobs(job(function, b"two"))), Command.UNKNOWN)
    hire(function)
    running = client.run(function, b"two")
    assert client.answer(running) == (bytes([Command.NO_WORKER]) if dialect is Dialect.TODAY else b"")
    client.submit(function, b"one", b"replaced", FAR)
    assert client.status()[function][1] == 1
