"""sync+wait: what an application hears while it waits, and how one connection keeps its jobs apart."""

import contextlib
from collections.abc import Callable

from tests.support.danga_peer import HANDLE, INCOMPLETE, SYNC, Kind, Peer, creation, packet


def test_status_and_result_are_streamed(application: Peer, worker: Peer, name: bytes) -> None:
    handle = application.create(name, args=b"wait", type=SYNC)
    assert worker.grab() == (name, b"wait")
    for step in (1, 2, 3):
        worker.announce(step, 3, 3 - step)
        assert application.streamed_status() == (step, 3, 3 - step)
    worker.finish(b"all three")
    assert application.streamed_completion() == (1, 0, b"all three")
    assert application.completion(handle) == INCOMPLETE  # it was streamed, and is not kept


def test_a_failure_is_streamed_with_its_code(application: Peer, worker: Peer, name: bytes) -> None:
    application.create(name, type=SYNC)
    worker.grab()
    worker.finish(b"no such image", code=44)
    assert application.streamed_completion() == (1, 44, b"no such image")


def test_a_second_sync_job_waits_its_turn(application: Peer, worker: Peer, name: bytes) -> None:
    application.raw(creation(name, args=b"1", type=SYNC) + creation(name, args=b"2", type=SYNC))
    first = application.body(Kind.JOB_CREATE_RES)
    assert worker.grab() == (name, b"1")
    worker.finish(b"one")
    assert application.streamed_completion() == (1, 0, b"one")
    second = application.body(Kind.JOB_CREATE_RES)
    assert worker.grab() == (name, b"2")
    worker.announce(1, 2)
    worker.finish(b"two")
    assert application.streamed_status() == (1, 2, 0)
    assert application.streamed_completion() == (1, 0, b"two")
    assert first != second


def test_questions_wait_for_the_sync_job_before_them(application: Peer, worker: Peer, name: bytes) -> None:
    """Their answers could not be told from what is streamed."""
    application.raw(
        creation(name, args=b"1", type=SYNC)
        + packet(Kind.JOB_STATUS_REQ, b"unknown")
        + packet(Kind.JOB_COMPLETE_REQ, b"unknown")
        + creation(name, args=b"2", type=HANDLE)
    )
    application.body(Kind.JOB_CREATE_RES)
    assert worker.grab() == (name, b"1")
    worker.announce(1, 2, 3)
    worker.finish(b"one")
    assert application.streamed_status() == (1, 2, 3)
    assert application.streamed_completion() == (1, 0, b"one")
    assert application.streamed_status() == (0, 0, 0)
    assert application.streamed_completion() == INCOMPLETE
    assert application.body(Kind.JOB_CREATE_RES)
    assert worker.grab() == (name, b"2")


def test_an_async_job_does_not_wait_for_a_sync_job(application: Peer, worker: Peer, name: bytes) -> None:
    application.create(name, args=b"sync", type=SYNC)
    worker.grab()
    assert application.create(name, args=b"async", type=HANDLE)
    worker.finish(b"done")
    assert application.streamed_completion() == (1, 0, b"done")
    assert worker.grab() == (name, b"async")


def test_a_sync_job_whose_application_left_is_not_run(
    dial: Callable[[], Peer], application: Peer, worker: Peer, name: bytes
) -> None:
    leaver = dial()
    handle = leaver.create(name, args=b"dropped", type=SYNC)
    leaver.send(Kind.WORKER_DISCONNECT).closed()  # so the server has noticed
    kept = application.create(name, args=b"kept")
    assert worker.grab() == (name, b"kept")
    worker.finish()
    assert application.result(kept).over
    assert worker.take() is None
    assert application.completion(handle) == INCOMPLETE


def test_waiting_for_a_job_that_another_has_created(
    dial: Callable[[], Peer], application: Peer, worker: Peer, name: bytes
) -> None:
    """A sync application joins an async job by its duplicate key, while it runs."""
    handle = application.create(name, b"key", b"first")
    assert worker.grab() == (name, b"first")
    waiting = dial()
    assert waiting.create(name, b"key", b"second", type=SYNC) == handle
    worker.announce(3, 4, 5)
    worker.finish(b"shared")
    assert waiting.streamed_status() == (3, 4, 5)
    assert waiting.streamed_completion() == (1, 0, b"shared")
    assert application.result(handle) == (1, 0, b"shared")


def test_many_applications_wait_for_one_job(port: int, worker: Peer, name: bytes) -> None:
    with contextlib.ExitStack() as stack:
        waiting = [stack.enter_context(Peer(port)) for _ in range(20)]
        assert len({peer.create(name, b"key", type=SYNC) for peer in waiting}) == 1
        worker.grab()
        worker.finish(b"for all")
        assert {peer.streamed_completion() for peer in waiting} == {(1, 0, b"for all")}
        assert worker.take() is None
