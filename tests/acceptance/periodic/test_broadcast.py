"""BROADCAST: a job goes to every worker that waits."""

from collections.abc import Callable

from tests.support.peer import until
from tests.support.periodic_peer import WORKER, Command, Dial, Dialect, Peer


def broadcasters(dial: Dial, function: bytes, *dialects: Dialect) -> list[Peer]:
    return [dial(dialect, WORKER).offer(function, command=Command.BROADCAST) for dialect in dialects]


def ready(workers: list[Peer]) -> list[bytes]:
    """The grabs of workers that the server knows to wait."""
    grabs = [worker.grab() for worker in workers]
    for worker in workers:
        worker.silence()
    return grabs


def test_every_waiting_worker_gets_it(dial: Dial, client: Peer, function: bytes) -> None:
    workers = broadcasters(dial, function, Dialect.DOCUMENT, Dialect.TODAY, Dialect.TODAY)
    [busy] = broadcasters(dial, function, Dialect.TODAY)
    grabs = ready(workers)
    client.submit(function, b"name", b"payload")
    jobs = [worker.assigned(grab) for worker, grab in zip(workers, grabs, strict=True)]
    assert {job.payload for job in jobs} == {b"payload"}
    for worker, job in zip(workers, jobs, strict=True):
        worker.done(job)
        worker.silence()
    busy.grab()
    busy.silence()
    assert client.status()[function][:3] == [4, 0, 0]


def test_the_first_result_is_the_result(dial: Dial, client: Peer, function: bytes, dialect: Dialect) -> None:
    workers = broadcasters(dial, function, dialect, dialect, dialect)
    grabs = ready(workers)
    waiting = client.run(function, b"name")
    jobs = [worker.assigned(grab) for worker, grab in zip(workers, grabs, strict=True)]
    workers[1].fail(jobs[1])
    workers[2].done(jobs[2], b"first")
    assert client.data(waiting) == b"first"
    workers[0].done(jobs[0], b"second")
    for worker in workers:
        worker.silence()
    client.silence()
    # The late one can go on.
    [grab, *_] = ready(workers)
    client.submit(function, b"next")
    assert workers[0].assigned(grab).name == b"next"


def test_a_lost_worker_s_copy_is_lost_with_it(
    dial: Dial, client: Peer, function: bytes, dialect: Dialect, hire: Callable[..., Peer]
) -> None:
    workers = broadcasters(dial, function, dialect, dialect)
    grabs = ready(workers)
    client.submit(function, b"name")
    jobs = [worker.assigned(grab) for worker, grab in zip(workers, grabs, strict=True)]
    workers[0].close()
    until(lambda: client.status()[function][0] == 1, "the server noticed")
    assert client.status()[function][1:3] == [1, 1]
    workers[1].done(jobs[1])
    workers[1].silence()
    assert client.status()[function][1:3] == [0, 0]


def test_the_last_registration_counts(dial: Dial, client: Peer, function: bytes, dialect: Dialect) -> None:
    workers = broadcasters(dial, function, dialect, dialect)
    workers[1].offer(function)
    workers[1].silence()  # the offer has been heard
    grab = workers[0].grab()
    workers[0].silence()  # and so has the first grab, before the second is sent
    workers[1].grab()
    workers[1].silence()
    client.submit(function, b"one")
    assert workers[0].assigned(grab).name == b"one"
    workers[1].silence()


def test_a_copy_that_is_given_back_or_put_off_is_given_up(dial: Dial, client: Peer, function: bytes) -> None:
    workers = broadcasters(dial, function, *[Dialect.TODAY] * 3)
    grabs = ready(workers)
    client.submit(function, b"name")
    jobs = [worker.assigned(grab) for worker, grab in zip(workers, grabs, strict=True)]
    workers[0].send(Command.JOB_UNASSIGNED, message_id=grabs[0])
    workers[1].later(jobs[1], 5)
    ready(workers[:2])
    assert client.status()[function][1:3] == [1, 1]
    workers[2].done(jobs[2])
    assert client.status()[function][1:3] == [0, 0]
