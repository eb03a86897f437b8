"""What happens when nobody takes a job, or nobody finishes it: silence, and a closed pipe if that hurts nobody."""

from collections.abc import Callable

import pytest

from tests.support import gearman_peer
from tests.support.gearman_peer import Kind
from tests.support.memodb_peer import DISCONNECT, Pipe


@pytest.fixture(scope="module")
def flags() -> list[str]:
    return ["--memodb-queue-timeout", "150ms"]


def test_a_job_that_no_worker_takes(client: Pipe, service: str) -> None:
    client.job(service)
    client.closed()


def test_a_neighbour_on_the_pipe_is_not_hurt(client: Pipe, dial: Callable[[], Pipe], service: str) -> None:
    waiting = client.ready(f"{service}-other")
    dropped = client.job(service, b"dropped")
    alone = dial()
    alone.job(service)
    alone.closed()  # and the request above, which is older, was dropped before
    client.silence()
    client.job(f"{service}-other", b"for the neighbour")
    assert client.reply(waiting).payload == b"for the neighbour"
    worker = dial()
    asked = worker.ready(service)
    client.job(service, b"sent again", number=dropped)  # the same id: its first copy is forgotten
    assigned = worker.assigned(asked)
    assert assigned.payload == b"sent again"
    worker.result(assigned.id, b"result")
    assert client.reply(dropped).payload == b"result"


def test_a_busy_worker_on_the_pipe_is_not_hurt(client: Pipe, dial: Callable[[], Pipe], service: str) -> None:
    other = dial()
    request = other.job(f"{service}-other")
    assigned = client.assigned(client.ready(f"{service}-other"))
    client.job(service, b"dropped")
    alone = dial()
    alone.job(service)
    alone.closed()
    client.silence()
    client.result(assigned.id, b"result")
    assert other.reply(request).payload == b"result"


def test_a_running_job_may_take_longer_than_a_waiting_one(
    client: Pipe, worker: Pipe, dial: Callable[[], Pipe], service: str
) -> None:
    asked = worker.ready(service)
    request = client.job(service)
    assigned = worker.assigned(asked)
    for _ in range(3):  # the time in which three requests in a row are dropped
        clock = dial()
        clock.job(f"{service}-nobody")
        clock.closed()
    worker.result(assigned.id, b"slow but fine")
    assert client.reply(request).payload == b"slow but fine"


@pytest.mark.parametrize("timeout", [50, 1, 0, -1, -(2**63)])
def test_a_worker_that_takes_too_long(client: Pipe, worker: Pipe, service: str, timeout: int) -> None:
    asked = worker.ready(service)
    client.job(service, b"", timeout)
    assigned = worker.assigned(asked)
    assert assigned.rest == [service, timeout]
    client.closed()
    late = worker.result(assigned.id, b"too late")
    assert worker.reply(late).kind == DISCONNECT


def test_a_job_that_took_too_long_is_not_given_to_another(
    client: Pipe, worker: Pipe, dial: Callable[[], Pipe], service: str
) -> None:
    slow = worker.ready(service)
    other = dial()
    client.job(service, b"slow", 50)
    worker.assigned(slow)
    asked = other.ready(service)
    client.closed()
    client = dial()
    request = client.job(service, b"next")
    assigned = other.assigned(asked)
    assert assigned.payload == b"next"
    other.result(assigned.id, b"done")
    assert client.reply(request).payload == b"done"


def test_a_lost_job_waits_for_another_worker_as_long_as_the_client_has_time(
    client: Pipe, dial: Callable[[], Pipe], service: str
) -> None:
    dying = dial()
    asked = dying.ready(service)
    client.job(service, b"", 300)
    dying.assigned(asked)
    dying.close()
    client.closed()


def test_milliseconds_beside_minutes(client: Pipe, worker: Pipe, service: str) -> None:
    asked = [worker.ready(service), worker.ready(service)]
    slow = client.job(service, b"slow", 600_000)
    client.job(service, b"fast", 20)
    jobs = {assigned.payload: assigned for assigned in map(worker.assigned, asked)}
    while worker.reply(worker.heartbeat(jobs[b"fast"].id)).kind != DISCONNECT:
        pass
    worker.result(jobs[b"slow"].id, b"took its time")
    assert client.reply(slow).payload == b"took its time"


def test_a_gearman_worker_that_takes_too_long(
    client: Pipe, gearman: Callable[[], gearman_peer.Peer], service: str
) -> None:
    first, second = gearman().register(service.encode()), gearman().register(service.encode())
    client.job(service, b"payload", 500)
    assert first.grab().data == b"payload"
    second.sleep()
    client.closed()
    assert second.take() is None  # nobody waits for it any more
    first.silence()


def test_a_full_queue(client: Pipe, gearman: Callable[[], gearman_peer.Peer], dial: Callable[[], Pipe]) -> None:
    admin = gearman()
    admin.text("create function full").line()
    admin.text("maxqueue full 1").line()
    admin.submit(b"full", kind=Kind.SUBMIT_JOB_BG)
    client.job("full")
    client.closed()
