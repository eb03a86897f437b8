"""NNG sends a request again when its answer takes long; a copy is not another request."""

from tests.support import memodb_peer
from tests.support.memodb_peer import JOB, Pipe


def test_copies_of_a_job_that_waits_and_runs(client: Pipe, worker: Pipe, service: str) -> None:
    request = client.job(service, b"once")
    for _ in range(3):
        client.job(service, b"once", number=request)
    assigned = worker.reply(worker.ready(service))
    for _ in range(3):
        client.job(service, b"once", number=request)
    client.silence()
    other = worker.ready(service)
    worker.silence()  # the other worker has nothing to do
    worker.result(assigned.id, b"result")
    assert client.reply(request).payload == b"result"
    client.silence()
    worker.silence()
    last = client.job(service, b"another")
    assert worker.reply(other).payload == b"another"
    assert last != request


def test_after_the_answer_the_same_id_is_a_new_request(client: Pipe, worker: Pipe, service: str) -> None:
    asked = worker.ready(service)
    for text in (b"first", b"second"):
        client.job(service, text, number=0x80000077)
        assigned = worker.reply(asked)
        assert assigned.payload == text
        asked = worker.result(assigned.id, text)
        assert client.reply(0x80000077).payload == text


def test_the_same_id_on_another_pipe_is_another_request(client: Pipe, worker: Pipe, service: str) -> None:
    asked = [worker.ready(service), worker.ready(service)]
    client.job(service, b"over the first pipe", number=0x80000077)
    worker.job(service, b"over the second pipe", number=0x80000077)
    assert {worker.reply(request).payload for request in asked} == {
        b"over the first pipe",
        b"over the second pipe",
    }


def test_copies_of_a_ready(client: Pipe, worker: Pipe, service: str) -> None:
    asked = worker.ready(service)
    worker.ready(service, number=asked)
    client.job(service, b"first")
    assigned = worker.reply(asked)
    worker.ready(service, number=asked)  # this one crossed the answer
    client.job(service, b"second")
    client.silence()
    worker.silence()  # no second worker was made of it, who would never be heard of again
    assert worker.reply(worker.result(assigned.id)).payload == b"second"


def test_copies_of_a_result(client: Pipe, worker: Pipe, service: str) -> None:
    requests = [client.job(service, b"first"), client.job(service, b"second")]
    assigned = worker.reply(worker.ready(service))
    result = worker.result(assigned.id, b"result of the first")
    following = worker.reply(result)
    assert (following.kind, following.payload) == (JOB, b"second")
    worker.result(assigned.id, b"result of the first", number=result)  # a copy that crossed the answer
    worker.silence()
    worker.result(assigned.id, b"result of the second")
    assert [client.reply(request).payload for request in requests] == [
        b"result of the first",
        b"result of the second",
    ]


def test_copies_of_a_heartbeat_from_a_stranger_are_answered_each(worker: Pipe) -> None:
    first = worker.heartbeat(memodb_peer.STRANGER)
    worker.reply(first)
    worker.heartbeat(memodb_peer.STRANGER, number=first)
    assert worker.reply(first).kind == memodb_peer.DISCONNECT
