"""Grabs, lost workers, jobs that are given back, and what is confirmed."""

from collections.abc import Callable

import pytest

from tests.acceptance.periodic.conftest import Start
from tests.support.peer import until
from tests.support.periodic_peer import WORKER, Command, Dial, Dialect, Peer, text

Hire = Callable[..., Peer]


def test_a_repeated_grab_is_one_grab(client: Peer, worker: Peer, function: bytes) -> None:
    grab = worker.grab()
    for _ in range(3):
        worker.grab(grab)
    client.submit(function, b"one")
    client.submit(function, b"two")
    assert worker.assigned(grab).name == b"one"
    worker.silence()
    worker.grab(grab)
    assert worker.assigned(grab).name == b"two"


def test_a_lost_worker_s_jobs_go_back_at_once(client: Peer, worker: Peer, hire: Hire, function: bytes) -> None:
    client.submit(function, b"one", b"1")
    client.submit(function, b"two", b"2")
    taken = [worker.take(), worker.take()]
    other = hire(function)
    grabs = [other.grab(), other.grab()]
    other.silence()
    worker.close()
    assert sorted(other.assigned(grab).name for grab in grabs) == sorted(job.name for job in taken)


def test_a_lost_worker_is_not_given_jobs(client: Peer, worker: Peer, hire: Hire, function: bytes) -> None:
    worker.grab()
    worker.grab()
    worker.close()
    until(lambda: client.status()[function][0] == 0, "the server noticed")
    client.submit(function, b"name")
    assert hire(function).take().name == b"name"


def test_cant_do_gives_the_jobs_back(client: Peer, worker: Peer, hire: Hire, function: bytes) -> None:
    client.submit(function, b"name")
    given = worker.take()
    worker.confirmed(Command.CANT_DO, text(function))
    other = hire(function)
    again = other.take()
    worker.done(given, b"late")
    worker.silence()
    assert client.status()[function][1:3] == [1, 1]
    other.done(again)
    other.silence()
    assert client.status()[function][1] == 0


def test_each_job_goes_to_one_worker(client: Peer, hire: Hire, function: bytes) -> None:
    workers = [hire(function) for _ in range(3)]
    grabs = [worker.grab() for worker in workers]
    for worker in workers:
        worker.silence()
    for number in range(3):
        client.submit(function, b"%d" % number)
    jobs = [worker.assigned(grab) for worker, grab in zip(workers, grabs, strict=True)]
    assert sorted(job.name for job in jobs) == [b"0", b"1", b"2"]


def test_a_job_that_was_given_back_counts_as_never_given(start: Start) -> None:
    with (
        start("--max-attempts", "1") as server,
        Peer(server.port, Dialect.TODAY, WORKER) as worker,
    ):
        worker.offer(b"f")
        worker.submit(b"f", b"name")
        for _ in range(5):
            worker.send(Command.JOB_UNASSIGNED, message_id=worker.take().message_id)
        worker.done(worker.take())
        assert worker.status()[b"f"][1] == 0


def test_unassigned_goes_to_another_grab(dial: Dial, function: bytes) -> None:
    one, two = (dial(Dialect.TODAY, WORKER).offer(function) for _ in range(2))
    one.submit(function, b"name")
    given = one.take()
    grab = two.grab()
    one.send(Command.JOB_UNASSIGNED, message_id=given.message_id)
    assert two.assigned(grab).name == b"name"


@pytest.mark.parametrize("end", ["done", "fail", "later"])
def test_success_is_not_sent_on_the_id_of_a_grab(dial: Dial, function: bytes, end: str) -> None:
    """Some workers report on the message id of their grab, and would take the answer for a job."""
    worker = dial(Dialect.TODAY, WORKER).offer(function)
    worker.submit(function, b"name")
    given = worker.take()
    arguments = {
        "done": (Command.WORK_DONE, given.handle + b"result"),
        "fail": (Command.WORK_FAIL, given.handle),
        "later": (Command.SCHED_LATER, given.handle + (1000).to_bytes(8, "big") + b"\0\0"),
    }[end]
    worker.send(*arguments, message_id=given.message_id)
    worker.silence()
    assert worker.status()[function][2] == 0
    # The grab is over now, so that a further report on its id is confirmed.
    worker.expect(worker.send(*arguments, message_id=given.message_id), Command.SUCCESS)


def test_success_is_not_sent_on_the_id_of_a_grab_that_waits(dial: Dial, function: bytes) -> None:
    worker = dial(Dialect.TODAY, WORKER).offer(function)
    worker.submit(function, b"name")
    given = worker.take()
    waiting = worker.grab()
    worker.send(Command.WORK_DONE, given.handle, waiting)
    worker.silence()
    worker.submit(function, b"next")
    assert worker.assigned(waiting).name == b"next"


def test_the_configured_timeout_governs(start: Start, dialect: Dialect) -> None:
    """A job that runs for longer goes back, and its worker's late answer is passed over."""
    with (
        start() as server,
        Peer(server.port, dialect, WORKER) as slow,
        Peer(server.port, dialect, WORKER) as fast,
        Peer(server.port, dialect) as client,
    ):
        client.set(b"timeout", 1)
        slow.offer(b"f")
        fast.offer(b"f")
        client.submit(b"f", b"name")
        given = slow.take()
        client.set(b"timeout", 600)
        again = fast.take()
        assert again.name == b"name"
        slow.done(given, b"late")
        slow.silence()
        assert client.status()[b"f"][1:3] == [1, 1]
        fast.done(again)
        fast.silence()
        assert client.status()[b"f"][1:3] == [0, 0]


def test_a_timeout_of_none_and_one_too_large_to_be_said(start: Start, dialect: Dialect) -> None:
    with start() as server, Peer(server.port, dialect, WORKER) as worker:
        worker.offer(b"f")
        for value, said in ((0, 0), (2**32 - 1, 2**31 - 1)):
            worker.set(b"timeout", value)
            worker.submit(b"f", b"name")
            given = worker.take()
            assert given.timeout == (said if dialect is Dialect.TODAY else 0)
            worker.done(given)


def test_a_job_s_own_timeout_governs(client: Peer, worker: Peer, hire: Hire, function: bytes) -> None:
    client.submit(function, b"name", timeout=1)
    worker.take()
    assert hire(function).take().name == b"name"


# What a worker of aio-periodic 0.2.1 sends: its registration, CAN_DO `reverse`, and a grab, on which it reports too.
AIO_0_2_1 = bytes.fromhex(
    "00524551 00000001 3c0c8ea1 02"
    "00524551 0000000d 8f4b68d7 65326637 07 07 72657665727365"
    "00524551 00000005 6b244693 39313365 01"
)
AIO_CAN_DO, AIO_GRAB = b"e2f7", b"913e"


def test_the_worker_of_aio_periodic_0_2_1(dial: Dial) -> None:
    """It takes any answer to its grab for a job, and ignores answers to other messages."""
    client, worker = dial(Dialect.TODAY), dial(Dialect.TODAY, None).raw(AIO_0_2_1)
    worker.payload()
    worker.expect(AIO_CAN_DO, Command.SUCCESS)
    worker.silence()
    for number in range(3):
        waiting = client.run(b"reverse", b"%d" % number)
        given = worker.assigned(AIO_GRAB)
        worker.send(Command.WORK_DONE, given.handle + b"result", AIO_GRAB)
        assert client.data(waiting) == b"result"
        worker.send(Command.GRAB_JOB, message_id=AIO_GRAB)
        worker.silence()
    worker.close()


# go-periodic 1.1.1 registers its workers as clients.
GO_REGISTRATION = bytes.fromhex("00524551 00000001 a505df1b 01")
GO_UNREAD_ANSWERS = 10  # to a grab; with one more the worker stops reading


def test_the_worker_of_go_periodic(dial: Dial, function: bytes) -> None:
    """It grabs again on the same message id before it reports, and never reads another answer to a grab than a job."""
    client, worker = dial(Dialect.TODAY), dial(Dialect.TODAY, None).raw(GO_REGISTRATION)
    worker.payload()
    worker.succeed(Command.CAN_DO, text(function))
    grab = worker.send(Command.GRAB_JOB)
    worker.silence()
    for number in range(2 * GO_UNREAD_ANSWERS):
        waiting = client.run(function, b"%d" % number)
        given = worker.assigned(grab)
        worker.send(Command.GRAB_JOB, message_id=grab)
        worker.succeed(Command.WORK_DONE, given.handle + b"result")
        worker.send(Command.GRAB_JOB, message_id=grab)  # as it does every second
        worker.silence()
        assert client.data(waiting) == b"result"


def test_workers_that_registered_as_clients(dial: Dial, dialect: Dialect, function: bytes) -> None:
    worker = dial(dialect).offer(function)
    grab = worker.send(Command.GRAB_JOB)
    worker.silence()
    worker.submit(function, b"name")
    given = worker.assigned(grab)
    worker.later(given, 0, 1)
    worker.send(Command.GRAB_JOB, message_id=grab)
    given = worker.assigned(grab)
    assert given.count == 1
    worker.done(given)
    worker.silence()
    assert worker.status()[function][:3] == [1, 0, 0]
