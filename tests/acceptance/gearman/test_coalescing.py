"""Jobs with the same function and unique key are one job."""

import pytest

from tests.support.gearman_peer import Dial, Hire, Kind, Peer

EVERY_SUBMISSION = [
    Kind.SUBMIT_JOB,
    Kind.SUBMIT_JOB_BG,
    Kind.SUBMIT_JOB_HIGH,
    Kind.SUBMIT_JOB_HIGH_BG,
    Kind.SUBMIT_JOB_LOW,
    Kind.SUBMIT_JOB_LOW_BG,
]


@pytest.mark.parametrize("kind", EVERY_SUBMISSION, ids=lambda kind: kind.name)
def test_a_second_submission_gets_the_first_ones_handle(kind: Kind, dial: Dial, worker: Peer, function: bytes) -> None:
    first, second = dial(), dial()
    handle = first.submit(function, b"key", b"first")
    assert second.submit(function, b"key", b"second", kind=kind) == handle
    assert worker.grab().data == b"first"
    assert worker.take() is None


def test_the_second_ones_priority_changes_nothing(client: Peer, worker: Peer, function: bytes) -> None:
    client.submit(function, b"one", b"1", kind=Kind.SUBMIT_JOB_BG)
    client.submit(function, b"two", b"2", kind=Kind.SUBMIT_JOB_BG)
    client.submit(function, b"two", b"3", kind=Kind.SUBMIT_JOB_HIGH_BG)
    assert [worker.grab().data, worker.grab().data] == [b"1", b"2"]
    assert worker.take() is None


@pytest.mark.parametrize("when", ["queued", "running"])
def test_all_waiting_clients_hear_everything(when: str, dial: Dial, worker: Peer, function: bytes) -> None:
    clients = [dial(), dial(), dial()]
    handle = clients[0].submit(function, b"key", b"data")
    if when == "running":
        worker.grab()
    for client in clients[1:]:
        assert client.submit(function, b"key", b"data") == handle
    if when == "queued":
        worker.grab()
    said = [
        (Kind.WORK_DATA, b"part"),
        (Kind.WORK_WARNING, b"beware"),
        (Kind.WORK_STATUS, b"1\0002"),
        (Kind.WORK_COMPLETE, b"result"),
    ]
    for kind, data in said:
        worker.send(kind, handle, data)
    for client in clients:
        for kind, data in said:
            client.expect(kind, handle, data)
        client.silence()


def test_a_client_that_joins_late_hears_what_comes_after(dial: Dial, worker: Peer, function: bytes) -> None:
    first, second = dial(), dial()
    handle = first.submit(function, b"key", b"data")
    worker.grab()
    worker.send(Kind.WORK_DATA, handle, b"early").silence()
    second.submit(function, b"key", b"data")
    worker.send(Kind.WORK_COMPLETE, handle, b"result")
    second.expect(Kind.WORK_COMPLETE, handle, b"result")
    second.silence()


def test_twice_on_one_connection_hears_everything_twice(client: Peer, worker: Peer, function: bytes) -> None:
    handle = client.submit(function, b"key", b"data")
    assert client.submit(function, b"key", b"data") == handle
    worker.grab()
    worker.send(Kind.WORK_DATA, handle, b"part")
    worker.send(Kind.WORK_COMPLETE, handle, b"result").silence()
    client.expect(Kind.WORK_DATA, handle, b"part")
    client.expect(Kind.WORK_DATA, handle, b"part")
    client.expect(Kind.WORK_COMPLETE, handle, b"result")
    client.expect(Kind.WORK_COMPLETE, handle, b"result")
    client.silence()


def test_a_background_submission_attaches_nobody(dial: Dial, worker: Peer, function: bytes) -> None:
    waiting, detached = dial(), dial()
    handle = waiting.submit(function, b"key", b"data")
    assert detached.submit(function, b"key", b"data", kind=Kind.SUBMIT_JOB_BG) == handle
    worker.grab()
    worker.send(Kind.WORK_COMPLETE, handle, b"result")
    waiting.expect(Kind.WORK_COMPLETE, handle, b"result")
    detached.silence()


def test_a_foreground_submission_joins_a_background_job(dial: Dial, worker: Peer, function: bytes) -> None:
    detached, waiting = dial(), dial()
    handle = detached.submit(function, b"key", b"data", kind=Kind.SUBMIT_JOB_BG)
    assert waiting.submit(function, b"key", b"data") == handle
    worker.grab()
    worker.send(Kind.WORK_COMPLETE, handle, b"result")
    waiting.expect(Kind.WORK_COMPLETE, handle, b"result")
    detached.silence()


def test_the_key_belongs_to_the_function(client: Peer, hire: Hire, function: bytes) -> None:
    other = function + b" other"
    worker = hire(function, other)
    assert client.submit(function, b"key", b"1") != client.submit(other, b"key", b"2")
    assert {worker.grab().data, worker.grab().data} == {b"1", b"2"}


@pytest.mark.parametrize("final", [Kind.WORK_COMPLETE, Kind.WORK_FAIL, Kind.WORK_EXCEPTION], ids=lambda k: k.name)
def test_a_finished_job_frees_its_key(final: Kind, client: Peer, worker: Peer, function: bytes) -> None:
    handle = client.submit(function, b"key", b"first", kind=Kind.SUBMIT_JOB_BG)
    worker.grab()
    worker.send(final, *([handle] if final == Kind.WORK_FAIL else [handle, b"end"])).silence()
    assert client.submit(function, b"key", b"second", kind=Kind.SUBMIT_JOB_BG) != handle
    assert worker.grab().data == b"second"


def test_an_empty_unique_never_coalesces(client: Peer, worker: Peer, function: bytes) -> None:
    handles = {client.submit(function, b"", b"same") for _ in range(3)}
    assert len(handles) == 3
    assert {worker.grab().handle for _ in range(3)} == handles


def test_a_dash_coalesces_on_the_data(client: Peer, hire: Hire, function: bytes) -> None:
    other = function + b" other"
    worker = hire(function, other)
    handle = client.submit(function, b"-", b"same")
    assert client.submit(function, b"-", b"same") == handle
    different = client.submit(function, b"-", b"different")
    elsewhere = client.submit(other, b"-", b"same")
    assert len({handle, different, elsewhere}) == 3
    jobs = [worker.grab(Kind.GRAB_JOB_UNIQ) for _ in range(3)]
    assert {job.handle for job in jobs} == {handle, different, elsewhere}
    assert {job.unique for job in jobs} == {b"-"}


def test_a_dash_without_data_never_coalesces(client: Peer, worker: Peer, function: bytes) -> None:
    assert client.submit(function, b"-", b"") != client.submit(function, b"-", b"")
    assert [worker.grab(Kind.GRAB_JOB_UNIQ).unique for _ in range(2)] == [b"-", b"-"]


def test_a_dash_is_listed_as_a_dash(client: Peer, admin: Peer, function: bytes) -> None:
    before = admin.listing("show unique jobs").count([b"-"])
    client.submit(function, b"-", b"")
    client.submit(function, b"-", b"data")
    assert admin.listing("show unique jobs").count([b"-"]) == before + 2


def test_a_dash_does_not_meet_a_unique_that_spells_the_data(client: Peer, function: bytes) -> None:
    assert client.submit(function, b"-", b"same") != client.submit(function, b"same", b"same")


@pytest.mark.parametrize("unique", [b"#", b"--", b"0"])
def test_other_marks_are_ordinary_uniques(unique: bytes, client: Peer, function: bytes) -> None:
    assert client.submit(function, unique, b"1") == client.submit(function, unique, b"2")


def test_duplicates_are_exempt_from_maxqueue(client: Peer, admin: Peer, function: bytes) -> None:
    admin.text(b"create function " + function, ending=b"\r\n").line()
    admin.text(b"maxqueue " + function + b" 1").line()
    handle = client.submit(function, b"key", b"data")
    assert client.submit(function, b"key", b"data") == handle
    client.send(Kind.SUBMIT_JOB, function, b"other", b"data")
    client.expect(Kind.ERROR, b"QUEUE_ERROR", b"Job queue is full")
