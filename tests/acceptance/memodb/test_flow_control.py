"""A pipe with as many waiting requests as it may have is not read until one is answered; nothing is lost by that."""

from collections.abc import Callable

import pytest

from tests.support import gearman_peer
from tests.support.memodb_peer import JOB, RESULT, Pipe
from tests.support.peer import until

LIMIT = 3
GearmanPeer = Callable[[], gearman_peer.Peer]


@pytest.fixture(scope="module")
def flags() -> list[str]:
    return ["--memodb-requests-per-pipe", str(LIMIT), "--memodb-queue-timeout", "1s"]


def jobs_of(admin: gearman_peer.Peer, service: str) -> int:
    """How many jobs the server knows of."""
    counts = {row[0].decode(): int(row[1]) for row in admin.listing("status")}
    return counts.get(service, 0)


def work_off(worker: Pipe, service: str, count: int, seen: Callable[[], None] = lambda: None) -> list[bytes]:
    """Do so many jobs; their payloads."""
    request, done = worker.ready(service), []
    for _ in range(count):
        assigned = worker.assigned(request)
        seen()
        done.append(assigned.payload)
        request = worker.result(assigned.id, assigned.payload[:10].upper())
    return done


@pytest.mark.parametrize("size", [1, 100_000])
def test_more_requests_than_may_wait(
    client: Pipe, worker: Pipe, dial: Callable[[], Pipe], gearman: GearmanPeer, service: str, size: int
) -> None:
    """Those that were read together with the others, and those that wait in the socket."""
    admin, known = gearman(), []
    requests = [client.job(service, b"%05d" % n + b"x" * size) for n in range(20)]
    until(lambda: jobs_of(admin, service) == LIMIT, "the server knows as many as may wait")
    dial().silence()  # another pipe is read as ever
    done = work_off(worker, service, len(requests), lambda: known.append(jobs_of(admin, service)))
    assert [payload[:5] for payload in done] == [b"%05d" % n for n in range(20)]
    assert max(known) <= LIMIT
    for n, request in enumerate(requests):
        reply = client.reply(request)
        assert (reply.kind, reply.payload) == (RESULT, (b"%05dXXXXX" % n)[: 5 + size])


def test_waiting_workers_count(client: Pipe, worker: Pipe, dial: Callable[[], Pipe], service: str) -> None:
    asked = [worker.ready(service) for _ in range(2 * LIMIT)]
    for _ in asked:
        dial().job(service)
    assert [worker.assigned(request).kind for request in asked] == [JOB] * len(asked)


def test_requests_that_are_dropped_make_room(client: Pipe, worker: Pipe, service: str) -> None:
    """Nobody takes the first ones. The pipe stays open, since others are still to be read."""
    for _ in range(2 * LIMIT):
        client.job(f"{service}-nobody")
    last = client.job(service, b"last")
    assert work_off(worker, service, 1) == [b"last"]
    assert client.reply(last).payload == b"LAST"


def test_peer_that_leaves_while_it_is_not_read(
    client: Pipe, worker: Pipe, dial: Callable[[], Pipe], gearman: GearmanPeer, service: str
) -> None:
    admin = gearman()
    for n in range(2 * LIMIT):
        client.job(service, b"%d" % n)
    until(lambda: jobs_of(admin, service) == LIMIT, "the server knows as many as may wait")
    client.close()
    # That it is gone shows when there is room: its jobs are dropped, and a newcomer's is done.
    other = dial()
    request = other.job(service, b"other")
    asked = worker.ready(service)
    while (assigned := worker.assigned(asked)).payload != b"other":
        asked = worker.result(assigned.id, b"nobody hears it")
    worker.result(assigned.id, b"heard")
    assert other.reply(request).payload == b"heard"
    until(lambda: jobs_of(admin, service) == 0, "nothing is left")
