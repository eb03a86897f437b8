"""The document's "Work flow", message by message, over real sockets."""

from collections.abc import Callable

from tests.support.danga_peer import INCOMPLETE, SYNC, THROW_AWAY, Kind, Peer, creation, packet


def test_every_message_of_the_document(application: Peer, dial: Callable[[], Peer], name: bytes) -> None:
    worker = dial()
    worker.send(Kind.WORKER_CONNECT, name + b"\0other")  # "here's what i can do."
    worker.send(Kind.JOB_ASSIGN_REQ)  # "got a job for me?"
    assert worker.body(Kind.JOB_ASSIGN_RES) == b""  # "no, sorry"
    worker.send(Kind.WORKER_SLEEP)  # "going to sleep"
    worker.silence()
    application.raw(creation(name, args=b"arguments"))  # "create this new job."
    handle = application.body(Kind.JOB_CREATE_RES)  # "okay (here is its handle)."
    assert handle.startswith(b"H:")
    assert application.completion(handle) == INCOMPLETE  # "is this job finished?"
    assert worker.body(Kind.NOOP) == b""  # "wake up."
    worker.send(Kind.JOB_ASSIGN_REQ)
    assert worker.body(Kind.JOB_ASSIGN_RES) == name + b"\0arguments"  # "here's a job to do."
    assert application.status(handle) == (0, 0, 0)
    worker.announce(1, 100, 99)  # "i'm 1/100 complete now."
    worker.silence()
    assert application.status(handle) == (1, 100, 99)  # "how far along is this job?"
    assert application.completion(handle) == INCOMPLETE
    worker.finish(b"result")  # "i've completed my job."
    worker.silence()
    assert application.completion(handle) == (1, 0, b"result")  # "job completed as follows: ..."
    assert application.status(handle) == (1, 100, 99)  # the last one that was announced
    worker.send(Kind.WORKER_DISCONNECT)  # "goodbye."
    worker.closed()


def test_the_best_case_conversation(application: Peer, worker: Peer, name: bytes) -> None:
    handle = application.create(name, args=b"x")
    assert worker.take() == (name, b"x")
    worker.finish(b"here is the result")
    assert application.result(handle) == (1, 0, b"here is the result")


def test_the_worse_case_conversation(application: Peer, worker: Peer, name: bytes) -> None:
    for _ in range(5):
        assert worker.take() is None
    worker.send(Kind.WORKER_SLEEP).silence()
    application.create(name)
    assert worker.body(Kind.NOOP) == b""
    assert worker.take() == (name, b"")


def test_a_worker_that_sleeps_beside_a_job_is_woken_at_once(application: Peer, worker: Peer, name: bytes) -> None:
    application.create(name)
    worker.send(Kind.WORKER_SLEEP)
    assert worker.body(Kind.NOOP) == b""
    worker.silence()


def test_a_sleeper_may_ask_before_it_is_woken(application: Peer, worker: Peer, name: bytes) -> None:
    """The document's "t seconds elapse"."""
    worker.send(Kind.WORKER_SLEEP)
    assert worker.take() is None
    application.create(name)
    worker.silence()  # it no longer sleeps: nobody wakes it


def test_one_sleeper_is_woken_for_one_job(application: Peer, dial: Callable[[], Peer], name: bytes) -> None:
    first, second = dial().connect(name), dial().connect(name)
    for worker in (first, second):
        worker.send(Kind.WORKER_SLEEP).silence()
    application.create(name)
    assert first.body(Kind.NOOP) == b""
    assert first.take() == (name, b"")
    second.silence()


def test_what_a_worker_offers_is_what_it_said_last(application: Peer, worker: Peer, name: bytes) -> None:
    worker.connect(name + b"-b", name + b"-c")
    application.create(name)
    assert worker.take() is None
    handle = application.create(name + b"-c", args=b"c")
    assert worker.take() == (name + b"-c", b"c")
    worker.connect()  # it offers nothing, and what it has goes to others
    worker.finish(b"too late")
    assert worker.take() is None
    assert application.completion(handle) == INCOMPLETE


def test_all_three_types_get_a_handle(application: Peer, name: bytes, worker: Peer) -> None:
    handles = {application.create(name, type=1), application.create(name, type=THROW_AWAY)}
    handles.add(application.create(name, type=SYNC))
    assert len(handles) == 3
    assert b"" not in handles
    for _ in handles:
        worker.grab()
        worker.finish()


def test_a_throw_away_job_runs_and_its_result_is_not_kept(application: Peer, worker: Peer, name: bytes) -> None:
    done = application.create(name, args=b"1", type=THROW_AWAY)
    assert worker.grab() == (name, b"1")
    worker.finish(b"nobody wants this")
    assert application.result(done) == (1, 0, b"")
    failed = application.create(name, args=b"2", type=THROW_AWAY)
    worker.grab()
    worker.finish(b"nor this", code=9)
    assert application.result(failed) == (1, 9, b"")


def test_a_result_can_be_asked_for_again(
    application: Peer, dial: Callable[[], Peer], worker: Peer, name: bytes
) -> None:
    handle = application.create(name)
    worker.grab()
    worker.finish(b"\0\xff" * 1000)
    answers = {application.result(handle) for _ in range(3)} | {dial().completion(handle)}
    assert answers == {(1, 0, b"\0\xff" * 1000)}


def test_error_codes_and_their_words(application: Peer, worker: Peer, name: bytes) -> None:
    for code in (1, 2, 127, 254, 255):
        handle = application.create(name)
        worker.grab()
        worker.finish(b"disk full", code=code)
        assert application.result(handle) == (1, code, b"disk full")


def test_whoever_is_asked_answers_in_the_order_of_the_questions(application: Peer, worker: Peer, name: bytes) -> None:
    """Records are read in a thread; what was asked after them is answered after them."""
    handle = application.create(name)
    worker.grab()
    worker.finish(b"first")
    application.result(handle)
    application.raw(
        packet(Kind.JOB_COMPLETE_REQ, handle)
        + packet(Kind.JOB_STATUS_REQ, handle)
        + packet(Kind.JOB_COMPLETE_REQ, b"unknown")
        + creation(name)
        + packet(Kind.JOB_COMPLETE_REQ, handle + b"\0")
    )
    kinds = [application.packet() for _ in range(5)]
    assert [kind for kind, _ in kinds] == [0x0D, 0x0A, 0x0D, 0x05, 0x0D]
    assert kinds[0][1] == kinds[4][1] == b"\0\0\0\x01\0first"
    assert kinds[2][1] == bytes(5)


def test_one_connection_may_be_application_and_worker(name: bytes, dial: Callable[[], Peer]) -> None:
    both = dial().connect(name)
    both.create(name, args=b"own", type=SYNC)
    assert both.take() == (name, b"own")
    both.announce(1, 2)
    assert both.streamed_status() == (1, 2, 0)
    both.finish(b"done")
    assert both.streamed_completion() == (1, 0, b"done")
