"""GRAB_JOB, GRAB_JOB_UNIQ, GRAB_JOB_ALL and what a connection may hold and be."""

import pytest

from tests.support.gearman_peer import Dial, Hire, Kind, Peer

GRABS = [Kind.GRAB_JOB, Kind.GRAB_JOB_UNIQ, Kind.GRAB_JOB_ALL]
REDUCTIONS = [Kind.SUBMIT_REDUCE_JOB, Kind.SUBMIT_REDUCE_JOB_BG]


@pytest.mark.parametrize("grab", GRABS, ids=lambda kind: kind.name)
def test_no_job(grab: Kind, worker: Peer) -> None:
    worker.send(grab)
    worker.expect(Kind.NO_JOB)
    worker.silence()


@pytest.mark.parametrize("grab", GRABS, ids=lambda kind: kind.name)
def test_a_worker_without_functions_gets_nothing(grab: Kind, client: Peer, dial: Dial, function: bytes) -> None:
    client.submit(function)
    peer = dial()
    peer.send(grab)
    peer.expect(Kind.NO_JOB)


@pytest.mark.parametrize(
    ("grab", "assign", "fields"),
    [
        (Kind.GRAB_JOB, Kind.JOB_ASSIGN, b"%h\0%f\0da\0ta"),
        (Kind.GRAB_JOB_UNIQ, Kind.JOB_ASSIGN_UNIQ, b"%h\0%f\0key\0da\0ta"),
        (Kind.GRAB_JOB_ALL, Kind.JOB_ASSIGN_UNIQ, b"%h\0%f\0key\0da\0ta"),
    ],
    ids=["GRAB_JOB", "GRAB_JOB_UNIQ", "GRAB_JOB_ALL"],
)
def test_assignments_of_an_ordinary_job(
    grab: Kind, assign: Kind, fields: bytes, client: Peer, worker: Peer, function: bytes
) -> None:
    handle = client.submit(function, b"key", b"da\0ta")
    worker.send(grab)
    worker.expect(assign, fields.replace(b"%h", handle).replace(b"%f", function))


@pytest.mark.parametrize(
    ("grab", "assign", "fields"),
    [
        (Kind.GRAB_JOB, Kind.JOB_ASSIGN, b"%h\0%f\0da\0ta"),
        (Kind.GRAB_JOB_UNIQ, Kind.JOB_ASSIGN_UNIQ, b"%h\0%f\0key\0da\0ta"),
        (Kind.GRAB_JOB_ALL, Kind.JOB_ASSIGN_ALL, b"%h\0%f\0key\0sum up\0da\0ta"),
    ],
    ids=["GRAB_JOB", "GRAB_JOB_UNIQ", "GRAB_JOB_ALL"],
)
@pytest.mark.parametrize("submit", REDUCTIONS, ids=lambda kind: kind.name)
def test_assignments_of_a_job_with_a_reducer(
    submit: Kind, grab: Kind, assign: Kind, fields: bytes, client: Peer, worker: Peer, function: bytes
) -> None:
    client.send(submit, function, b"key", b"sum up", b"0", b"da\0ta")
    handle = client.body(Kind.JOB_CREATED)
    worker.send(grab)
    worker.expect(assign, fields.replace(b"%h", handle).replace(b"%f", function))


def test_a_foreground_reduction_reports_to_its_client(client: Peer, worker: Peer, function: bytes) -> None:
    client.send(Kind.SUBMIT_REDUCE_JOB, function, b"key", b"sum up", b"0", b"data")
    handle = client.body(Kind.JOB_CREATED)
    worker.grab(Kind.GRAB_JOB_ALL)
    worker.send(Kind.WORK_COMPLETE, handle, b"result")
    client.expect(Kind.WORK_COMPLETE, handle, b"result")


def test_a_background_reduction_reports_to_nobody(client: Peer, worker: Peer, function: bytes) -> None:
    client.send(Kind.SUBMIT_REDUCE_JOB_BG, function, b"key", b"sum up", b"0", b"data")
    handle = client.body(Kind.JOB_CREATED)
    worker.grab(Kind.GRAB_JOB_ALL)
    worker.send(Kind.WORK_COMPLETE, handle, b"result").silence()
    client.silence()


def test_the_fourth_argument_of_a_reduction_is_ignored(client: Peer, worker: Peer, function: bytes) -> None:
    client.send(Kind.SUBMIT_REDUCE_JOB, function, b"", b"sum up", b"anything", b"data")
    client.body(Kind.JOB_CREATED)
    job = worker.grab(Kind.GRAB_JOB_ALL)
    assert (job.reducer, job.data) == (b"sum up", b"data")


def test_one_connection_holds_many_jobs(client: Peer, worker: Peer, function: bytes) -> None:
    handles = [client.submit(function, b"", b"%d" % number) for number in range(100)]
    jobs = [worker.grab() for _ in handles]
    assert [job.handle for job in jobs] == handles
    for job in reversed(jobs):
        worker.send(Kind.WORK_COMPLETE, job.handle, b"done " + job.data)
    for job in reversed(jobs):
        client.expect(Kind.WORK_COMPLETE, job.handle, b"done " + job.data)


def test_grabs_sent_together_are_answered_one_by_one(client: Peer, worker: Peer, function: bytes) -> None:
    handles = [client.submit(function, b"", b"") for _ in range(3)]
    for _ in range(4):
        worker.send(Kind.GRAB_JOB)
    for handle in handles:
        worker.expect(Kind.JOB_ASSIGN, handle, function, b"")
    worker.expect(Kind.NO_JOB)


def test_client_and_worker_on_one_connection(dial: Dial, function: bytes) -> None:
    peer = dial().register(function)
    handle = peer.submit(function, b"", b"mine")
    peer.send(Kind.GRAB_JOB)
    peer.expect(Kind.JOB_ASSIGN, handle, function, b"mine")
    peer.send(Kind.WORK_DATA, handle, b"part")
    peer.expect(Kind.WORK_DATA, handle, b"part")
    peer.send(Kind.WORK_COMPLETE, handle, b"result")
    peer.expect(Kind.WORK_COMPLETE, handle, b"result")
    peer.silence()


def test_results_reach_the_client_in_the_order_of_completion(client: Peer, hire: Hire, function: bytes) -> None:
    first, second = hire(function), hire(function)
    handles = [client.submit(function), client.submit(function)]
    assert [first.grab().handle, second.grab().handle] == handles
    second.send(Kind.WORK_COMPLETE, handles[1], b"2")
    client.expect(Kind.WORK_COMPLETE, handles[1], b"2")
    first.send(Kind.WORK_COMPLETE, handles[0], b"1")
    client.expect(Kind.WORK_COMPLETE, handles[0], b"1")


@pytest.mark.parametrize("withdraw", ["CANT_DO", "RESET_ABILITIES"])
def test_a_withdrawn_function_is_not_handed_out(withdraw: str, client: Peer, hire: Hire, function: bytes) -> None:
    worker = hire(function)
    if withdraw == "CANT_DO":
        worker.send(Kind.CANT_DO, function)
    else:
        worker.send(Kind.RESET_ABILITIES)
    worker.silence()
    handle = client.submit(function)
    assert worker.take() is None
    worker.send(Kind.CAN_DO, function)
    assert worker.take() == (Kind.JOB_ASSIGN, handle, function, b"", b"", b"")


def test_one_cant_do_takes_back_every_can_do(client: Peer, hire: Hire, function: bytes) -> None:
    worker = hire(function, function, function)
    worker.send(Kind.CANT_DO, function).silence()
    client.submit(function)
    assert worker.take() is None
