"""maxqueue: how many jobs a function may have, running ones included, by the priority of the next one."""

import pytest

from tests.support.gearman_peer import Kind, Peer

HIGH, NORMAL, LOW = Kind.SUBMIT_JOB_HIGH_BG, Kind.SUBMIT_JOB_BG, Kind.SUBMIT_JOB_LOW_BG
UNLIMITED = 5  # as many as the tests try

# Of five submissions to an empty queue, how many are accepted for each priority.
SIZES = [
    ("2", (2, 2, 2)),
    ("1 2", (1, 2, UNLIMITED)),
    ("3 2 1", (3, 2, 1)),
    ("0 2 1", (UNLIMITED, 2, 1)),
    ("1 -1 1", (1, UNLIMITED, 1)),
    ("", (UNLIMITED, UNLIMITED, UNLIMITED)),
    ("0", (UNLIMITED, UNLIMITED, UNLIMITED)),
    ("-1", (UNLIMITED, UNLIMITED, UNLIMITED)),
    ("many", (UNLIMITED, UNLIMITED, UNLIMITED)),
]


def limit(admin: Peer, function: bytes, sizes: str) -> None:
    """The function must be known first: for an unknown one the command does nothing."""
    assert admin.text(b"create function " + function, b"\r\n").line() == b"OK\r\n"
    assert admin.text(b"maxqueue " + function + b" " + sizes.encode()).line() == b"OK\r\n"


def accepted(client: Peer, function: bytes, priority: Kind, tries: int = UNLIMITED) -> int:
    count = 0
    for _ in range(tries):
        client.send(priority, function, b"", b"data")
        kind, body = client.packet()
        if kind == Kind.JOB_CREATED:
            count += 1
        else:
            assert (kind, body) == (Kind.ERROR, b"QUEUE_ERROR\0Job queue is full")
    return count


@pytest.mark.parametrize("column", [0, 1, 2], ids=["high", "normal", "low"])
@pytest.mark.parametrize(("sizes", "counts"), SIZES, ids=[sizes or "none" for sizes, _ in SIZES])
def test_sizes(sizes: str, counts: tuple[int, ...], column: int, client: Peer, admin: Peer, function: bytes) -> None:
    limit(admin, function, sizes)
    assert accepted(client, function, (HIGH, NORMAL, LOW)[column]) == counts[column]


def test_all_priorities_count_together(client: Peer, admin: Peer, function: bytes) -> None:
    limit(admin, function, "4 3 2")
    assert accepted(client, function, LOW) == 2
    assert accepted(client, function, NORMAL) == 1
    assert accepted(client, function, HIGH) == 1


def test_a_running_job_counts_until_it_ends(client: Peer, admin: Peer, worker: Peer, function: bytes) -> None:
    limit(admin, function, "1")
    assert accepted(client, function, NORMAL) == 1
    handle = worker.grab().handle
    assert accepted(client, function, NORMAL) == 0
    worker.send(Kind.WORK_COMPLETE, handle, b"").silence()
    assert accepted(client, function, NORMAL) == 1


def test_a_limit_may_be_lifted(client: Peer, admin: Peer, function: bytes) -> None:
    limit(admin, function, "1")
    assert accepted(client, function, NORMAL) == 1
    assert admin.text(b"maxqueue " + function).line() == b"OK\r\n"
    assert accepted(client, function, NORMAL) == UNLIMITED


def test_a_limit_throws_nothing_away(client: Peer, admin: Peer, worker: Peer, function: bytes) -> None:
    assert accepted(client, function, NORMAL) == UNLIMITED
    limit(admin, function, "2")
    assert accepted(client, function, NORMAL) == 0
    assert len([worker.grab() for _ in range(UNLIMITED)]) == UNLIMITED


def test_other_functions_are_not_limited(client: Peer, admin: Peer, function: bytes) -> None:
    limit(admin, function, "1")
    assert accepted(client, function + b" other", NORMAL) == UNLIMITED


@pytest.mark.parametrize("kind", [Kind.SUBMIT_JOB_EPOCH, Kind.SUBMIT_REDUCE_JOB_BG], ids=lambda kind: kind.name)
def test_every_kind_of_submission_is_limited(kind: Kind, client: Peer, admin: Peer, function: bytes) -> None:
    limit(admin, function, "1")
    middle = [b"0"] if kind == Kind.SUBMIT_JOB_EPOCH else [b"reducer", b"0"]
    client.send(kind, function, b"", *middle, b"data")
    client.body(Kind.JOB_CREATED)
    client.send(kind, function, b"", *middle, b"data")
    client.expect(Kind.ERROR, b"QUEUE_ERROR", b"Job queue is full")
