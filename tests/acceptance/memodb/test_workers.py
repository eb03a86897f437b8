"""What a worker may say, in which state, and what it is told."""

from collections.abc import Callable

from tests.support import memodb_peer
from tests.support.memodb_peer import DISCONNECT, HEARTBEAT, JOB, Pipe, Reply


def at_work(client: Pipe, worker: Pipe, service: str, payload: bytes = b"") -> tuple[int, bytes]:
    """A client's request that a worker has, and the worker's id."""
    request = client.job(service, payload)
    return request, worker.assigned(worker.ready(service)).id


def test_ids_are_given_by_the_broker_and_differ(client: Pipe, worker: Pipe, service: str) -> None:
    asked = [worker.ready(service) for _ in range(20)]
    for _ in asked:
        client.job(service)
    ids = [worker.reply(request).id for request in asked]
    assert len(set(ids)) == 20
    assert {len(id) for id in ids} == {16}
    assert len({id[:8] for id in ids}) == len({id[8:] for id in ids}) == 20  # random, not counted


def test_services_in_any_order(client: Pipe, worker: Pipe, service: str) -> None:
    asked = worker.ready(f"{service}-zz", f"{service}-a", f"{service}-m")
    client.job(f"{service}-a")
    assert worker.reply(asked).rest[0] == f"{service}-a"


def test_disconnecting_with_the_last_result(client: Pipe, worker: Pipe, service: str) -> None:
    request, id = at_work(client, worker, service)
    goodbye = worker.result(id, b"the last", True)
    assert worker.reply(goodbye) == Reply(goodbye, DISCONNECT, id, [], b"")
    assert client.reply(request).payload == b"the last"
    again = worker.result(id, b"one more")
    assert worker.reply(again) == Reply(again, DISCONNECT, id, [], b"")


def test_a_flag_that_is_false_goes_on(client: Pipe, worker: Pipe, service: str) -> None:
    request, id = at_work(client, worker, service)
    asked = worker.result(id, b"result", False)
    assert client.reply(request).payload == b"result"
    client.job(service)
    assert worker.reply(asked).kind == JOB


def test_unknown_ids_are_told_to_disconnect(worker: Pipe) -> None:
    for id in (memodb_peer.STRANGER, b"\0", b"longer than an id of ours", bytes(40)):
        result = worker.result(id, b"a result of a broker that died")
        assert worker.reply(result) == Reply(result, DISCONNECT, id, [], b"")
        heartbeat = worker.heartbeat(id)
        assert worker.reply(heartbeat) == Reply(heartbeat, DISCONNECT, id, [], b"")


def test_a_heartbeat_instead_of_a_result(client: Pipe, dial: Callable[[], Pipe], service: str) -> None:
    confused, other = dial(), dial()
    request, id = at_work(client, confused, service, b"payload")
    heartbeat = confused.heartbeat(id)
    assert confused.reply(heartbeat) == Reply(heartbeat, DISCONNECT, id, [], b"")
    assert confused.reply(confused.result(id)).kind == DISCONNECT
    assigned = other.assigned(other.ready(service))
    assert assigned.payload == b"payload"
    other.result(assigned.id, b"from the other")
    assert client.reply(request).payload == b"from the other"


def test_a_second_request_while_one_waits(client: Pipe, worker: Pipe, service: str) -> None:
    request, id = at_work(client, worker, service)
    waiting = worker.result(id, b"result")
    assert client.reply(request).payload == b"result"
    for send in (worker.heartbeat, worker.result):
        second = send(id)
        assert worker.reply(second) == Reply(second, DISCONNECT, id, [], b"")
    assert worker.reply(waiting) == Reply(waiting, DISCONNECT, id, [], b"")
    late = client.job(service)
    worker.silence()  # nobody works here any more
    again = worker.assigned(worker.ready(service))
    assert again.id != id
    worker.result(again.id, b"anew")
    assert client.reply(late).payload == b"anew"


def test_another_pipe_cannot_answer_for_a_worker(client: Pipe, dial: Callable[[], Pipe], service: str) -> None:
    own, foreign = dial(), dial()
    request, id = at_work(client, own, service)
    for send in (foreign.result, foreign.heartbeat):
        sent = send(id)
        assert foreign.reply(sent) == Reply(sent, DISCONNECT, id, [], b"")
    asked = own.result(id, b"its own")
    assert client.reply(request).payload == b"its own"
    sent = foreign.heartbeat(id)  # while the worker waits for a job
    assert foreign.reply(sent) == Reply(sent, DISCONNECT, id, [], b"")
    other = client.job(service)
    assert own.reply(asked).kind == JOB
    own.result(id, b"still there")
    assert client.reply(other).payload == b"still there"


def test_a_worker_without_services_is_one_all_the_same(worker: Pipe) -> None:
    worker.ready()
    worker.silence()


def test_a_closed_pipe_frees_its_workers_at_once(client: Pipe, dial: Callable[[], Pipe], service: str) -> None:
    dying, other = dial(), dial()
    request, _ = at_work(client, dying, service, b"payload")
    asked = other.ready(service)
    dying.close()
    assigned = other.assigned(asked)
    assert assigned.payload == b"payload"
    assert 0 < assigned.rest[1] <= 60_000  # what is left of the client's time
    other.result(assigned.id, b"rescued")
    assert client.reply(request).payload == b"rescued"


def test_disconnect_is_not_for_workers_to_say(client: Pipe, worker: Pipe, service: str) -> None:
    request, id = at_work(client, worker, service)
    worker.request(memodb_peer.header(DISCONNECT, id))
    worker.silence()
    worker.result(id, b"still counted on")
    assert client.reply(request).payload == b"still counted on"


def test_a_heartbeat_that_nobody_asked_for_while_waiting(worker: Pipe, client: Pipe, service: str) -> None:
    request, id = at_work(client, worker, service)
    waiting = worker.result(id)
    client.reply(request)
    worker.request(memodb_peer.header(HEARTBEAT, id) + b"with a payload, which makes no sense")
    later = client.job(service)
    assert worker.reply(waiting).kind == JOB
    worker.result(id, b"fine")
    assert client.reply(later).payload == b"fine"
