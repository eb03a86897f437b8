"""Which job a worker gets: priority over all its functions, then the functions in turn, then the oldest job."""

import pytest

from tests.support.gearman_peer import Hire, Kind, Peer

HIGH, NORMAL, LOW = Kind.SUBMIT_JOB_HIGH_BG, Kind.SUBMIT_JOB_BG, Kind.SUBMIT_JOB_LOW_BG
FOREGROUND = {HIGH: Kind.SUBMIT_JOB_HIGH, NORMAL: Kind.SUBMIT_JOB, LOW: Kind.SUBMIT_JOB_LOW}


def test_first_in_first_out(client: Peer, worker: Peer, function: bytes) -> None:
    handles = [client.submit(function, b"", b"%d" % number) for number in range(50)]
    assert [worker.grab().handle for _ in handles] == handles


@pytest.mark.parametrize("foreground", [True, False], ids=["foreground", "background"])
def test_high_before_normal_before_low(foreground: bool, client: Peer, worker: Peer, function: bytes) -> None:
    sent = [(LOW, b"l1"), (NORMAL, b"n1"), (HIGH, b"h1"), (LOW, b"l2"), (HIGH, b"h2"), (NORMAL, b"n2")]
    for kind, data in sent:
        client.submit(function, b"", data, kind=FOREGROUND[kind] if foreground else kind)
    assert [worker.grab().data for _ in sent] == [b"h1", b"h2", b"n1", b"n2", b"l1", b"l2"]


def test_foreground_and_background_share_a_queue(client: Peer, worker: Peer, function: bytes) -> None:
    kinds = [Kind.SUBMIT_JOB, Kind.SUBMIT_JOB_BG, Kind.SUBMIT_JOB_EPOCH, Kind.SUBMIT_REDUCE_JOB]
    middle = {Kind.SUBMIT_JOB_EPOCH: [b"0"], Kind.SUBMIT_REDUCE_JOB: [b"reducer", b"0"]}
    handles = []
    for kind in kinds:
        client.send(kind, function, b"", *middle.get(kind, []), b"data")
        handles.append(client.body(Kind.JOB_CREATED))
    assert [worker.grab().handle for _ in handles] == handles


@pytest.mark.differs_from_gearmand
@pytest.mark.parametrize("registered", ["in order", "in reverse"])
def test_priority_is_global_over_a_workers_functions(
    registered: str, client: Peer, hire: Hire, function: bytes
) -> None:
    names = [function + suffix for suffix in (b" a", b" b", b" c")]
    for priority in (LOW, HIGH, NORMAL):
        for name in names:
            client.submit(name, b"", priority.name.encode(), kind=priority)
    worker = hire(*(names if registered == "in order" else reversed(names)))
    got = [worker.grab().data for _ in range(9)]
    assert got == [kind.name.encode() for kind in (HIGH, NORMAL, LOW) for _ in range(3)]


@pytest.mark.differs_from_gearmand
def test_a_low_job_waits_for_the_high_job_of_another_function(client: Peer, hire: Hire, function: bytes) -> None:
    early, late = function + b" early", function + b" late"
    client.submit(late, b"", b"low", kind=LOW)
    client.submit(early, b"", b"high", kind=HIGH)
    worker = hire(early, late)
    assert [worker.grab().data, worker.grab().data] == [b"high", b"low"]


@pytest.mark.differs_from_gearmand
@pytest.mark.parametrize("priority", [HIGH, NORMAL, LOW], ids=["high", "normal", "low"])
def test_functions_take_turns_within_a_priority(priority: Kind, client: Peer, hire: Hire, function: bytes) -> None:
    names = [function + suffix for suffix in (b" a", b" b", b" c")]
    for name in names:
        for number in range(4):
            client.submit(name, b"", b"%d" % number, kind=priority)
    worker = hire(*names)
    jobs = [worker.grab() for _ in range(12)]
    rounds = [jobs[start : start + 3] for start in range(0, 12, 3)]
    assert all([job.function for job in turn] == names[::-1] for turn in rounds), "the last registered one first"
    for name in names:
        assert [job.data for job in jobs if job.function == name] == [b"0", b"1", b"2", b"3"]


@pytest.mark.differs_from_gearmand
def test_a_busy_function_does_not_starve_a_quiet_one(client: Peer, hire: Hire, function: bytes) -> None:
    busy, quiet = function + b" busy", function + b" quiet"
    for _ in range(20):
        client.submit(busy, b"", b"", kind=NORMAL)
    worker = hire(quiet, busy)
    for _ in range(3):
        worker.grab()
    client.submit(quiet, b"", b"", kind=NORMAL)
    assert quiet in {worker.grab().function for _ in range(2)}


def test_two_workers_share_the_jobs_without_overlap(client: Peer, hire: Hire, function: bytes) -> None:
    handles = [client.submit(function) for _ in range(20)]
    workers = [hire(function), hire(function)]
    assert [workers[turn % 2].grab().handle for turn in range(20)] == handles
