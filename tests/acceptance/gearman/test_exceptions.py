"""WORK_EXCEPTION reaches the clients that asked for it; the others get WORK_FAIL. Either way the job is over."""

import pytest

from tests.support.gearman_peer import Dial, Hire, Kind, Peer


def with_exceptions(peer: Peer) -> Peer:
    peer.send(Kind.OPTION_REQ, b"exceptions")
    peer.expect(Kind.OPTION_RES, b"exceptions")
    return peer


def test_with_the_option(client: Peer, worker: Peer, function: bytes) -> None:
    with_exceptions(client)
    handle = client.submit(function, b"", b"data")
    worker.grab()
    worker.send(Kind.WORK_EXCEPTION, handle, b"it\0broke")
    client.expect(Kind.WORK_EXCEPTION, handle, b"it\0broke")
    client.silence()
    assert client.status(handle) == (0, 0, 0, 0)


@pytest.mark.differs_from_gearmand
def test_without_the_option_it_is_a_failure_like_any_other(client: Peer, worker: Peer, function: bytes) -> None:
    """gearmand puts a NUL after the handle, and clients that look for the handle wait for ever."""
    handle = client.submit(function, b"", b"data")
    worker.grab()
    worker.send(Kind.WORK_EXCEPTION, handle, b"it broke")
    client.expect(Kind.WORK_FAIL, handle)
    client.silence()
    assert client.status(handle) == (0, 0, 0, 0)


def test_a_plain_failure_has_no_trailing_nul(client: Peer, worker: Peer, function: bytes) -> None:
    with_exceptions(client)
    handle = client.submit(function, b"", b"data")
    worker.grab()
    worker.send(Kind.WORK_FAIL, handle)
    client.expect(Kind.WORK_FAIL, handle)


@pytest.mark.differs_from_gearmand
def test_each_client_hears_it_its_own_way(dial: Dial, worker: Peer, function: bytes) -> None:
    asked, plain = with_exceptions(dial()), dial()
    handle = asked.submit(function, b"key", b"data")
    plain.submit(function, b"key", b"data")
    worker.grab()
    worker.send(Kind.WORK_EXCEPTION, handle, b"it broke")
    asked.expect(Kind.WORK_EXCEPTION, handle, b"it broke")
    plain.expect(Kind.WORK_FAIL, handle)
    asked.silence()
    plain.silence()


def test_the_option_counts_from_the_moment_it_is_set(client: Peer, worker: Peer, function: bytes) -> None:
    handle = client.submit(function, b"", b"data")
    worker.grab()
    with_exceptions(client)
    worker.send(Kind.WORK_EXCEPTION, handle, b"it broke")
    client.expect(Kind.WORK_EXCEPTION, handle, b"it broke")


def test_warnings_need_no_option(client: Peer, worker: Peer, function: bytes) -> None:
    handle = client.submit(function, b"", b"data")
    worker.grab()
    worker.send(Kind.WORK_WARNING, handle, b"beware")
    client.expect(Kind.WORK_WARNING, handle, b"beware")


def test_an_exception_is_final(client: Peer, worker: Peer, hire: Hire, function: bytes) -> None:
    handle = client.submit(function, b"key", b"data", kind=Kind.SUBMIT_JOB_BG)
    worker.grab()
    worker.send(Kind.WORK_EXCEPTION, handle, b"it broke").silence()
    assert hire(function).take() is None
    assert client.status(handle) == (0, 0, 0, 0)


@pytest.mark.differs_from_gearmand
@pytest.mark.parametrize("after", [Kind.WORK_FAIL, Kind.WORK_COMPLETE], ids=lambda kind: kind.name)
@pytest.mark.parametrize("option", [True, False], ids=["with the option", "without"])
def test_what_the_worker_says_after_its_exception_is_swallowed(
    after: Kind, option: bool, client: Peer, worker: Peer, function: bytes
) -> None:
    """A Perl worker that dies sends both, and gives up for good when the second is answered with ERROR."""
    if option:
        with_exceptions(client)
    handle = client.submit(function, b"", b"data")
    worker.grab()
    worker.send(Kind.WORK_EXCEPTION, handle, b"it broke")
    worker.send(after, *([handle] if after == Kind.WORK_FAIL else [handle, b"result"]))
    worker.silence()
    client.body(Kind.WORK_EXCEPTION if option else Kind.WORK_FAIL)
    client.silence()


def test_another_workers_answer_after_the_exception_is_refused(
    client: Peer, worker: Peer, hire: Hire, function: bytes
) -> None:
    stranger = hire(function)
    handle = client.submit(function, b"", b"data")
    worker.grab()
    worker.send(Kind.WORK_EXCEPTION, handle, b"it broke").silence()
    stranger.send(Kind.WORK_FAIL, handle)
    stranger.expect(Kind.ERROR, b"JOB_NOT_FOUND", b"Job given in work result not found")


@pytest.mark.differs_from_gearmand
def test_a_worker_goes_on_after_an_exception(client: Peer, worker: Peer, function: bytes) -> None:
    for _ in range(3):
        handle = client.submit(function, b"", b"data")
        worker.grab()
        worker.send(Kind.WORK_EXCEPTION, handle, b"it broke")
        worker.send(Kind.WORK_FAIL, handle)
        client.expect(Kind.WORK_FAIL, handle)
    client.silence()
