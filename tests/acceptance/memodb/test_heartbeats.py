"""Heartbeats show who is still there, with times that a test can wait for."""

import pytest

from tests.support.memodb_peer import DISCONNECT, HEARTBEAT, Pipe, Reply


@pytest.fixture(scope="module")
def flags() -> list[str]:
    return ["--memodb-heartbeat", "20ms", "--memodb-worker-timeout", "300ms"]


def test_a_waiting_worker_hears_a_heartbeat_each_time(worker: Pipe, service: str) -> None:
    request = worker.ready(service)
    ids = set()
    for _ in range(5):
        heartbeat = worker.reply(request)
        assert heartbeat == Reply(request, HEARTBEAT, heartbeat.id, [], b"")
        ids.add(heartbeat.id)
        request = worker.heartbeat(heartbeat.id)
    assert len(ids) == 1


def test_jobs_come_between_heartbeats(client: Pipe, worker: Pipe, service: str) -> None:
    heartbeat = worker.reply(worker.ready(service))
    request = client.job(service, b"payload")
    assigned = worker.assigned(worker.heartbeat(heartbeat.id))
    assert assigned.id == heartbeat.id
    worker.result(assigned.id, b"result")
    assert client.reply(request).payload == b"result"


def test_a_worker_that_owes_a_heartbeat_gets_no_job(client: Pipe, worker: Pipe, service: str) -> None:
    heartbeat = worker.reply(worker.ready(service))
    client.job(service)
    client.silence()
    worker.silence()
    assert worker.assigned(worker.heartbeat(heartbeat.id)).rest[0] == service


def test_a_result_instead_of_a_heartbeat(worker: Pipe, service: str) -> None:
    heartbeat = worker.reply(worker.ready(service))
    result = worker.result(heartbeat.id, b"of what?")
    assert worker.reply(result) == Reply(result, DISCONNECT, heartbeat.id, [], b"")


def test_an_unanswered_heartbeat_ends_a_worker(worker: Pipe, service: str) -> None:
    silent = worker.reply(worker.ready(service))
    # A second worker on the same pipe, whose timeout would come after the first one's, keeps the time.
    request = worker.ready(service)
    for _ in range(60):
        reply = worker.reply(request)
        request = worker.heartbeat(reply.id)
    late = worker.heartbeat(silent.id)
    assert worker.reply(late) == Reply(late, DISCONNECT, silent.id, [], b"")
    assert worker.reply(request).kind == HEARTBEAT


def test_a_busy_worker_hears_no_heartbeat(client: Pipe, worker: Pipe, service: str) -> None:
    request = client.job(service)
    assigned = worker.assigned(worker.ready(service))
    clock = worker.ready(f"{service}-clock")
    for _ in range(30):  # more than a worker may leave a heartbeat unanswered
        clock = worker.heartbeat(worker.reply(clock).id)
    worker.result(assigned.id, b"took long")
    assert client.reply(request).payload == b"took long"
