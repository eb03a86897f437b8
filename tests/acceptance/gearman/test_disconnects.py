"""What becomes of a job when its client or its worker leaves."""

import socket
import struct
from collections.abc import Callable

import pytest

from tests.support.gearman_peer import Depart, Dial, Hire, Kind, Peer


def abrupt(peer: Peer) -> Peer:
    """Closing it will look like a crash: a reset instead of an orderly end."""
    peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return peer


def disown(worker: Peer, function: bytes) -> None:
    worker.send(Kind.CANT_DO, function).silence()


def reset(worker: Peer) -> None:
    worker.send(Kind.RESET_ABILITIES).silence()


@pytest.fixture(params=["disconnect", "abort", "CANT_DO", "RESET_ABILITIES"])
def lose(request: pytest.FixtureRequest, depart: Depart, function: bytes) -> Callable[[Peer], None]:
    """The ways in which a worker gives up the jobs it holds."""
    ways: dict[str, Callable[[Peer], None]] = {
        "disconnect": depart,
        "abort": lambda worker: depart(abrupt(worker)),
        "CANT_DO": lambda worker: disown(worker, function),
        "RESET_ABILITIES": reset,
    }
    return ways[request.param]


def test_nobody_runs_a_job_whose_client_left(dial: Dial, worker: Peer, depart: Depart, function: bytes) -> None:
    client = dial()
    client.submit(function, b"", b"abandoned")
    depart(client)
    assert worker.take() is None
    worker.sleep().silence()
    worker.silence()


def test_a_sleeper_is_not_woken_for_a_job_whose_client_left(
    dial: Dial, worker: Peer, depart: Depart, function: bytes
) -> None:
    client = dial()
    client.submit(function, b"", b"abandoned")
    depart(client)
    worker.sleep().silence()
    handle = dial().submit(function, b"", b"wanted", kind=Kind.SUBMIT_JOB_BG)
    worker.expect(Kind.NOOP)
    assert worker.grab().handle == handle


def test_a_background_job_outlives_its_client(dial: Dial, worker: Peer, depart: Depart, function: bytes) -> None:
    client = dial()
    handle = client.submit(function, b"", b"data", kind=Kind.SUBMIT_JOB_BG)
    depart(client)
    assert worker.grab().handle == handle


@pytest.mark.differs_from_gearmand
def test_a_client_that_half_closes_at_once_is_still_answered(dial: Dial, worker: Peer, function: bytes) -> None:
    """gearmand mostly closes without an answer."""
    client = dial()
    client.send(Kind.SUBMIT_JOB_BG, function, b"", b"data").half_close()
    handle = client.body(Kind.JOB_CREATED)
    client.closed()
    assert worker.grab().handle == handle


def test_a_running_job_goes_on_without_its_client(
    dial: Dial, admin: Peer, worker: Peer, depart: Depart, function: bytes
) -> None:
    client = dial()
    handle = client.submit(function, b"", b"data")
    worker.grab()
    depart(client)
    assert admin.status(handle) == (1, 1, 0, 0)
    worker.send(Kind.WORK_DATA, handle, b"part")
    worker.send(Kind.WORK_WARNING, handle, b"part")
    worker.send(Kind.WORK_STATUS, handle, b"1", b"2").silence()
    assert admin.status(handle) == (1, 1, 1, 2)
    worker.send(Kind.WORK_COMPLETE, handle, b"result").silence()
    assert admin.status(handle) == (0, 0, 0, 0)


def test_the_other_clients_of_a_job_still_get_its_result(
    dial: Dial, worker: Peer, depart: Depart, function: bytes
) -> None:
    first, second = dial(), dial()
    handle = first.submit(function, b"key", b"data")
    second.submit(function, b"key", b"data")
    depart(first)
    assert worker.grab().handle == handle
    worker.send(Kind.WORK_COMPLETE, handle, b"result")
    second.expect(Kind.WORK_COMPLETE, handle, b"result")


def test_a_lost_job_goes_to_the_tail_of_its_queue(
    client: Peer, hire: Hire, lose: Callable[[Peer], None], function: bytes
) -> None:
    worker = hire(function)
    handles = [client.submit(function, b"", b"%d" % number) for number in range(3)]
    low = client.submit(function, b"", b"low", kind=Kind.SUBMIT_JOB_LOW)
    assert worker.grab().handle == handles[0]
    lose(worker)
    other = hire(function)
    assert [other.grab().handle for _ in range(4)] == [*handles[1:], handles[0], low]
    client.silence()


def test_a_lost_job_counts_in_show_jobs(
    client: Peer, hire: Hire, admin: Peer, lose: Callable[[Peer], None], function: bytes
) -> None:
    handle = client.submit(function, b"", b"data")
    for losses in range(3):
        assert [handle, b"%d" % losses, b"0", b"0"] in admin.listing("show jobs")
        worker = hire(function)
        assert worker.grab().handle == handle
        lose(worker)


def test_a_lost_job_wakes_a_sleeper(client: Peer, hire: Hire, lose: Callable[[Peer], None], function: bytes) -> None:
    worker = hire(function)
    handle = client.submit(function, b"", b"data")
    assert worker.grab().handle == handle
    other = hire(function)
    assert other.take() is None
    other.sleep().silence()
    lose(worker)
    other.expect(Kind.NOOP)
    assert other.grab().handle == handle
    other.send(Kind.WORK_COMPLETE, handle, b"result")
    client.expect(Kind.WORK_COMPLETE, handle, b"result")


def test_a_lost_background_job_runs_again(
    client: Peer, hire: Hire, lose: Callable[[Peer], None], function: bytes
) -> None:
    handle = client.submit(function, b"key", b"data", kind=Kind.SUBMIT_JOB_BG)
    worker = hire(function)
    worker.grab()
    lose(worker)
    assert client.submit(function, b"key", b"data", kind=Kind.SUBMIT_JOB_BG) == handle
    assert hire(function).grab().handle == handle


def test_all_the_jobs_of_a_lost_worker_come_back(client: Peer, hire: Hire, depart: Depart, function: bytes) -> None:
    worker = hire(function)
    handles = {client.submit(function, b"", b"data") for _ in range(5)}
    assert {worker.grab().handle for _ in range(5)} == handles
    depart(worker)
    other = hire(function)
    assert {other.grab().handle for _ in range(5)} == handles


def test_a_late_answer_is_refused(client: Peer, hire: Hire, function: bytes) -> None:
    worker = hire(function)
    handle = client.submit(function, b"", b"data")
    worker.grab()
    disown(worker, function)
    worker.send(Kind.WORK_COMPLETE, handle, b"late")
    worker.expect(Kind.ERROR, b"JOB_NOT_FOUND", b"Job given in work result not found")
    other = hire(function)
    assert other.grab().handle == handle
    worker.send(Kind.WORK_DATA, handle, b"late")
    worker.expect(Kind.ERROR, b"JOB_NOT_FOUND", b"Job does not exist on server")
    other.send(Kind.WORK_COMPLETE, handle, b"good")
    client.expect(Kind.WORK_COMPLETE, handle, b"good")


def test_a_worker_that_gives_up_one_function_keeps_the_jobs_of_another(
    client: Peer, hire: Hire, function: bytes
) -> None:
    other = function + b" other"
    worker = hire(function, other)
    given_up, kept = client.submit(function), client.submit(other)
    assert {worker.grab().handle, worker.grab().handle} == {given_up, kept}
    disown(worker, function)
    assert client.status(given_up) == (1, 0, 0, 0)
    assert client.status(kept) == (1, 1, 0, 0)
    worker.send(Kind.WORK_COMPLETE, kept, b"result")
    client.expect(Kind.WORK_COMPLETE, kept, b"result")


@pytest.mark.differs_from_gearmand
class TestWhereGearmandLosesJobs:
    def test_a_background_job_survives_a_client_that_joined_and_left(
        self, dial: Dial, worker: Peer, depart: Depart, function: bytes
    ) -> None:
        handle = dial().submit(function, b"key", b"data", kind=Kind.SUBMIT_JOB_BG)
        joined = dial()
        assert joined.submit(function, b"key", b"data") == handle
        depart(joined)
        assert worker.grab().handle == handle

    def test_a_client_that_submits_an_abandoned_job_again_gets_its_result(
        self, dial: Dial, worker: Peer, depart: Depart, function: bytes
    ) -> None:
        first, second = dial(), dial()
        first.submit(function, b"key", b"data")
        depart(first)
        handle = second.submit(function, b"key", b"data")
        assert worker.grab().handle == handle
        worker.send(Kind.WORK_COMPLETE, handle, b"result")
        second.expect(Kind.WORK_COMPLETE, handle, b"result")

    def test_an_abandoned_job_submitted_again_in_the_background_runs(
        self, dial: Dial, worker: Peer, depart: Depart, function: bytes
    ) -> None:
        first, second = dial(), dial()
        first.submit(function, b"key", b"data")
        depart(first)
        handle = second.submit(function, b"key", b"data", kind=Kind.SUBMIT_JOB_BG)
        assert worker.grab().handle == handle

    def test_a_foreground_job_joined_by_a_background_submission_outlives_its_client(
        self, dial: Dial, worker: Peer, depart: Depart, function: bytes
    ) -> None:
        first, second = dial(), dial()
        handle = first.submit(function, b"key", b"data")
        assert second.submit(function, b"key", b"data", kind=Kind.SUBMIT_JOB_BG) == handle
        depart(first)
        assert worker.grab().handle == handle

    def test_a_running_job_whose_client_left_can_be_joined_again(
        self, dial: Dial, worker: Peer, depart: Depart, function: bytes
    ) -> None:
        first, second = dial(), dial()
        handle = first.submit(function, b"key", b"data")
        worker.grab()
        depart(first)
        assert second.submit(function, b"key", b"data") == handle
        worker.send(Kind.WORK_COMPLETE, handle, b"result")
        second.expect(Kind.WORK_COMPLETE, handle, b"result")
