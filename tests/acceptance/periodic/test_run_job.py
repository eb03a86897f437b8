"""RUN_JOB: who waits, for what, and how it ends."""

from collections.abc import Callable

import pytest

from tests.support import gearman_peer
from tests.support.peer import until
from tests.support.periodic_peer import WORKER, Command, Dial, Dialect, Job, Peer, job, text


def test_several_waiters_are_all_answered(client: Peer, dial: Dial, worker: Peer, function: bytes) -> None:
    waiters = [client, dial(Dialect.TODAY), dial(Dialect.DOCUMENT)]
    ids = [waiter.run(function, b"name", b"payload") for waiter in waiters]
    also = client.run(function, b"name", b"payload")
    given = worker.take()
    late = client.run(function, b"name", b"too late for this payload")
    client.silence()
    worker.done(given, b"result")
    for waiter, message_id in zip(waiters, ids, strict=True):
        assert waiter.data(message_id) == b"result"
    assert client.data(also) == b"result"
    assert client.data(late) == b"result"
    worker.grab()
    worker.silence()


def test_attaches_to_a_job_that_was_submitted(client: Peer, worker: Peer, function: bytes) -> None:
    client.submit(function, b"name", b"ONE")
    waiting = client.run(function, b"name", b"TWO")
    given = worker.take()
    assert given.payload == b"TWO", "it had not begun: the later one counts"
    worker.done(given, b"result")
    assert client.data(waiting) == b"result"


def test_attaches_to_a_job_that_runs(client: Peer, worker: Peer, function: bytes) -> None:
    client.submit(function, b"name", b"ONE")
    given = worker.take()
    waiting = client.run(function, b"name", b"TWO")
    client.silence()
    worker.done(given, b"of ONE")
    assert client.data(waiting) == b"of ONE"


def test_nobody_offers_it(dial: Dial, function: bytes, hire: Callable[..., Peer]) -> None:
    """Today's clients are told; those of the document wait until somebody does."""
    client = dial(Dialect.DOCUMENT)
    waiting = client.run(function, b"name")
    client.silence()
    worker = hire(function)
    worker.done(worker.take(), b"result")
    assert client.data(waiting) == b"result"


def test_removed_while_it_waits(dial: Dial, hire: Callable[..., Peer], function: bytes) -> None:
    worker = hire(function)
    for state in ("queued", "running"):
        waiters = [dial(Dialect.TODAY), dial(Dialect.DOCUMENT)]
        ids = [waiter.run(function, b"name") for waiter in waiters]
        for waiter in waiters:
            waiter.silence()
        if state == "running":
            worker.take()
        admin = dial(Dialect.TODAY)
        admin.succeed(Command.REMOVE_JOB, text(function) + text(b"name"))
        assert waiters[0].data(ids[0]) == b"removed"
        assert waiters[1].data(ids[1]) == b""


def test_function_dropped_while_it_waits(dial: Dial, function: bytes) -> None:
    client = dial(Dialect.DOCUMENT)
    waiting = client.run(function, b"name")
    client.silence()
    client.succeed(Command.DROP_FUNC, text(function))
    assert client.data(waiting) == b""


def test_the_document_s_client_waits_for_a_result(dial: Dial, hire: Callable[..., Peer], function: bytes) -> None:
    """Whatever the worker speaks: a failure cannot be said to it."""
    client, worker = dial(Dialect.DOCUMENT), hire(function)
    waiting = client.run(function, b"name")
    worker.fail(worker.take())
    client.silence()
    worker.later(worker.take(), 0)
    worker.done(worker.take(), b"at last")
    assert client.data(waiting) == b"at last"


REPORTS: dict[str, Callable[[Peer, Job], None]] = {
    "fail": lambda worker, job: worker.fail(job),
    "later": lambda worker, job: worker.later(job, 0),
}
each_report = pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS.keys())


@each_report
def test_today_s_client_is_told_that_its_job_did_not_finish(
    dial: Dial, hire: Callable[..., Peer], function: bytes, report: Callable[[Peer, Job], None]
) -> None:
    """Also if the worker wants it later: there is nobody else who wants the job."""
    client, worker = dial(Dialect.TODAY), hire(function)
    waiting = client.run(function, b"name")
    report(worker, worker.take())
    assert client.data(waiting) == b"failed"
    assert client.status()[function][1] == 0
    worker.grab()
    worker.silence()


@each_report
def test_a_submitted_job_runs_again_without_its_waiting_client(
    dial: Dial, hire: Callable[..., Peer], function: bytes, report: Callable[[Peer, Job], None]
) -> None:
    client, worker = dial(Dialect.TODAY), hire(function)
    client.submit(function, b"name")
    waiting = client.run(function, b"name")
    report(worker, worker.take())
    assert client.data(waiting) == b"failed"
    again = client.run(function, b"name")
    worker.done(worker.take(), b"second time")
    assert client.data(again) == b"second time"
    client.silence()


@each_report
def test_both_dialects_wait_for_a_job_that_runs_again(
    dial: Dial, hire: Callable[..., Peer], function: bytes, report: Callable[[Peer, Job], None]
) -> None:
    today, document, worker = dial(Dialect.TODAY), dial(Dialect.DOCUMENT), hire(function)
    ids = [client.run(function, b"name") for client in (today, document)]
    for client in (today, document):
        client.silence()
    report(worker, worker.take())
    assert today.data(ids[0]) == b"failed"
    document.silence()
    worker.done(worker.take(), b"second time")
    assert document.data(ids[1]) == b"second time"
    today.silence()


def test_a_gearman_client_waits_for_a_job_that_is_put_off(
    dial: Dial, gearman: Callable[[], gearman_peer.Peer], hire: Callable[..., Peer], function: bytes
) -> None:
    client, other, worker = dial(Dialect.TODAY), gearman(), hire(function)
    handle = other.submit(function, b"name")
    waiting = client.run(function, b"name")
    client.silence()
    worker.later(worker.take(), 0)
    assert client.data(waiting) == b"failed"
    worker.done(worker.take(), b"second time")
    other.expect(gearman_peer.Kind.WORK_COMPLETE, handle, b"second time")


def test_a_broadcast_copy_that_is_put_off_leaves_the_client_waiting(dial: Dial, function: bytes) -> None:
    client = dial(Dialect.TODAY)
    workers = [dial(Dialect.TODAY, WORKER).offer(function, command=Command.BROADCAST) for _ in range(2)]
    grabs = [worker.grab() for worker in workers]
    for worker in workers:
        worker.silence()
    waiting = client.run(function, b"name")
    copies = [worker.assigned(grab) for worker, grab in zip(workers, grabs, strict=True)]
    workers[0].later(copies[0], 0)
    client.silence()
    workers[1].done(copies[1], b"result")
    assert client.data(waiting) == b"result"


@each_report
def test_a_subscriber_stays_with_a_job_that_runs_again(
    dial: Dial, function: bytes, report: Callable[[Peer, Job], None]
) -> None:
    client, worker = dial(Dialect.TODAY), dial(Dialect.TODAY, WORKER).offer(function)
    client.submit(function, b"name")
    parts = client.send(Command.RECV_DATA, job(function, b"name"))
    client.expect(parts, Command.SUCCESS)
    waiting = client.run(function, b"name")
    report(worker, worker.take())
    assert client.data(waiting) == b"failed"
    client.silence()
    given = worker.take()
    worker.part(given, b"part")
    worker.done(given)
    assert [client.data(parts), client.data(parts)] == [b"part", b"EOF"]


def test_a_wait_that_is_over(dial: Dial, hire: Callable[..., Peer], function: bytes) -> None:
    """The timeout of the job is also how long its client waits."""
    worker = hire(function)
    today, document = dial(Dialect.TODAY), dial(Dialect.DOCUMENT)
    ids = today.run(function, b"one", timeout=1), document.run(function, b"two", timeout=1)
    assert today.data(ids[0]) == b"expired"
    assert document.data(ids[1]) == b""
    assert today.status()[function][1] == 0, "nobody wants them any more"
    worker.grab()
    worker.silence()
    today.silence()


def test_a_client_that_leaves_takes_its_waiting_job_along(dial: Dial, function: bytes) -> None:
    leaver, watch = dial(Dialect.DOCUMENT), dial(Dialect.TODAY)
    leaver.run(function, b"name")
    leaver.silence()
    assert watch.status()[function][1] == 1
    leaver.close()
    until(lambda: watch.status()[function][1] == 0, "the job is gone")


def test_one_message_id_for_two_waits(dial: Dial, function: bytes, hire: Callable[..., Peer]) -> None:
    """A client's mistake: it gets two answers, and nothing of it stays behind when it leaves."""
    client, watch, worker = dial(Dialect.DOCUMENT), dial(Dialect.TODAY), hire(function)
    for name in (b"one", b"two", b"three"):
        client.send(Command.RUN_JOB, job(function, name), b"same")
    client.silence()
    worker.done(worker.take(), b"result")
    assert client.data(b"same") == b"result"
    client.close()
    until(lambda: watch.status()[function][1] == 0, "the jobs are gone")


def test_workers_may_wait_too(dial: Dial, dialect: Dialect, function: bytes) -> None:
    worker = dial(dialect, WORKER).offer(function)
    waiting = worker.run(function, b"name")
    worker.done(worker.take(), b"its own")
    assert worker.data(waiting) == b"its own"
