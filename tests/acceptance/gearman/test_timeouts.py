"""CAN_DO_TIMEOUT: a job that runs too long fails, its clients are told, and a late answer is ignored.

gearmand counts milliseconds too, from one second up, but puts the job back into its queue and tells nobody. It refuses
the late answer with an ERROR, at which Perl's workers exit.
"""

import contextlib

import pytest

from tests.support.gearman_peer import Dial, Kind, Peer, Start

pytestmark = pytest.mark.differs_from_gearmand
TWICE = (Kind.ERROR, b"JOB_NOT_FOUND", b"Job given in work result not found")


def timed(peer: Peer, function: bytes, milliseconds: bytes) -> Peer:
    peer.send(Kind.CAN_DO_TIMEOUT, function, milliseconds).silence()
    return peer


@pytest.mark.parametrize(
    ("final", "rest"),
    [(Kind.WORK_COMPLETE, (b"late",)), (Kind.WORK_FAIL, ())],
    ids=["complete", "fail"],
)
def test_the_job_fails_and_one_late_answer_is_ignored(
    final: Kind, rest: tuple[bytes, ...], client: Peer, dial: Dial, function: bytes
) -> None:
    worker = timed(dial(), function, b"1000")
    handle = client.submit(function, b"key", b"data")
    assert worker.grab().handle == handle
    client.expect(Kind.WORK_FAIL, handle)
    worker.silence()
    assert client.status(handle) == (0, 0, 0, 0)
    worker.send(Kind.WORK_STATUS, handle, b"1", b"2").send(Kind.WORK_DATA, handle, b"late").silence()
    worker.send(final, handle, *rest).silence()
    client.silence()
    assert worker.take() is None
    worker.send(final, handle, *rest)
    worker.expect(*TWICE)


def test_the_late_exception_of_perl_and_the_fail_after_it_are_ignored(
    client: Peer, dial: Dial, function: bytes
) -> None:
    worker = timed(dial(), function, b"1000")
    handle = client.submit(function)
    worker.grab()
    client.expect(Kind.WORK_FAIL, handle)
    worker.send(Kind.WORK_EXCEPTION, handle, b"late").send(Kind.WORK_FAIL, handle).silence()


def test_the_late_answer_for_a_requeued_job_is_ignored(start: Start, function: bytes) -> None:
    """And another worker gets the job, whose answer counts."""
    with start("--job-timeout-action", "requeue") as server, contextlib.ExitStack() as stack:
        client, slow, other = (stack.enter_context(Peer(server.port)) for _ in range(3))
        timed(slow, function, b"1000")
        handle = client.submit(function)
        assert slow.grab().handle == handle
        other.register(function).sleep()
        other.expect(Kind.NOOP)
        assert other.grab().handle == handle
        slow.send(Kind.WORK_COMPLETE, handle, b"late").silence()
        client.silence()
        other.send(Kind.WORK_COMPLETE, handle, b"result")
        client.expect(Kind.WORK_COMPLETE, handle, b"result")


def test_all_its_clients_are_told(dial: Dial, function: bytes) -> None:
    worker = timed(dial(), function, b"1000")
    clients = [dial() for _ in range(3)]
    handle = {client.submit(function, b"key", b"data") for client in clients}.pop()
    worker.grab()
    for client in clients:
        client.expect(Kind.WORK_FAIL, handle)


def test_a_job_that_ends_in_time_is_left_alone(client: Peer, dial: Dial, function: bytes) -> None:
    worker = timed(dial(), function, b"1000")
    first = client.submit(function, b"", b"in time")
    worker.grab()
    worker.send(Kind.WORK_COMPLETE, first, b"result")
    client.expect(Kind.WORK_COMPLETE, first, b"result")
    second = client.submit(function, b"", b"too late")
    worker.grab()
    client.expect(Kind.WORK_FAIL, second)
    client.silence()


def test_every_job_on_a_connection_has_a_timer_of_its_own(client: Peer, dial: Dial, function: bytes) -> None:
    """gearmand has one per connection, and forgets all jobs but the first."""
    worker = timed(dial(), function, b"1000")
    handles = [client.submit(function, b"", b"%d" % number) for number in range(4)]
    for handle in handles:
        assert worker.grab().handle == handle
    worker.send(Kind.WORK_COMPLETE, handles[2], b"result")
    client.expect(Kind.WORK_COMPLETE, handles[2], b"result")
    late = [handles[0], handles[1], handles[3]]
    assert sorted(client.body(Kind.WORK_FAIL) for _ in late) == sorted(late)
    for handle in late:
        worker.send(Kind.WORK_COMPLETE, handle, b"late").silence()


def test_sleeping_does_not_stop_the_timer(client: Peer, dial: Dial, function: bytes) -> None:
    worker = timed(dial(), function, b"1000")
    handle = client.submit(function, b"", b"data")
    worker.grab()
    worker.sleep()
    client.expect(Kind.WORK_FAIL, handle)


def first_to_expire(client: Peer, dial: Dial, function: bytes, timeouts: tuple[bytes, bytes]) -> list[int]:
    """The order in which two jobs expire that were taken one after the other."""
    handles = []
    for number, timeout in enumerate(timeouts):
        name = function + b" %d" % number
        worker = timed(dial(), name, timeout)
        handles.append(client.submit(name, b"", b"data"))
        assert worker.grab().handle == handles[-1]
    return [handles.index(client.body(Kind.WORK_FAIL)) for _ in handles]


@pytest.mark.parametrize("short", [b"1", b"2", b"999", b"1000"])
def test_less_than_a_second_means_a_second(short: bytes, client: Peer, dial: Dial, function: bytes) -> None:
    """If a millisecond meant a millisecond, the job taken second would expire first."""
    assert first_to_expire(client, dial, function, (b"1000", short)) == [0, 1]


def test_more_than_a_second_is_counted_in_milliseconds(client: Peer, dial: Dial, function: bytes) -> None:
    assert first_to_expire(client, dial, function, (b"2500", b"1000")) == [1, 0]


@pytest.mark.parametrize("never", [b"0", b"-1", b"abc", b""])
def test_no_timeout(never: bytes, client: Peer, dial: Dial, function: bytes) -> None:
    """A second job with a timeout shows that time has passed."""
    endless, limited = timed(dial(), function, never), timed(dial(), function + b" limited", b"1000")
    handle = client.submit(function, b"", b"data")
    endless.grab()
    other = client.submit(function + b" limited", b"", b"data")
    limited.grab()
    client.expect(Kind.WORK_FAIL, other)
    assert client.status(handle) == (1, 1, 0, 0)
    endless.send(Kind.WORK_COMPLETE, handle, b"result")
    client.expect(Kind.WORK_COMPLETE, handle, b"result")


def test_a_background_job_that_expires_frees_its_key(client: Peer, dial: Dial, function: bytes) -> None:
    worker = timed(dial(), function, b"1000")
    handle = client.submit(function, b"key", b"data", kind=Kind.SUBMIT_JOB_BG)
    worker.grab()
    assert client.submit(function, b"key", b"data") == handle
    client.expect(Kind.WORK_FAIL, handle)
    assert client.submit(function, b"key", b"data", kind=Kind.SUBMIT_JOB_BG) != handle


@pytest.mark.parametrize("absurd", [b"9" * 21, b"1" + b"0" * 40])
def test_a_timeout_that_is_no_number_of_milliseconds(absurd: bytes, client: Peer, function: bytes) -> None:
    """gearmand closes the connection without a word."""
    client.send(Kind.CAN_DO_TIMEOUT, function, absurd)
    code, text = client.error()
    assert code == "ARGUMENT_TOO_LARGE"
    assert text
    client.silence()
