"""A client's JOB goes to a worker of its service, and the RESULT comes back to that client."""

from collections.abc import Callable

from tests.support.memodb_peer import DISCONNECT, JOB, RESULT, Pipe, Reply

MANY = 3000


def test_a_job_and_its_result(client: Pipe, worker: Pipe, service: str) -> None:
    ready = worker.ready(service)
    request = client.job(service, b"payload", 40_000)
    assigned = worker.reply(ready)
    assert (assigned.kind, assigned.rest, assigned.payload) == (JOB, [service, 40_000], b"payload")
    assert len(assigned.id) == 16
    worker.result(assigned.id, b"result")
    assert client.reply(request) == Reply(request, RESULT, b"", [], b"result")


def test_nothing_is_a_payload_and_a_result(client: Pipe, worker: Pipe, service: str) -> None:
    request = client.job(service)
    assigned = worker.reply(worker.ready(service))
    assert assigned.payload == b""
    worker.result(assigned.id)
    assert client.reply(request).payload == b""


def test_a_payload_that_looks_like_cbor_is_left_alone(client: Pipe, worker: Pipe, service: str) -> None:
    payload = bytes(range(256))
    request = client.job(service, payload)
    assigned = worker.reply(worker.ready(service))
    assert assigned.payload == payload
    worker.result(assigned.id, payload[::-1])
    assert client.reply(request).payload == payload[::-1]


def test_eight_megabytes_each_way(client: Pipe, worker: Pipe, service: str) -> None:
    payload = bytes(range(256)) * (8 * 1024 * 4)
    request = client.job(service, payload)
    assigned = worker.reply(worker.ready(service))
    assert assigned.payload == payload
    worker.result(assigned.id, payload[::-1])
    assert client.reply(request).payload == payload[::-1]


def test_the_result_of_one_job_is_the_request_for_the_next(client: Pipe, worker: Pipe, service: str) -> None:
    requests = [client.job(service, b"%d" % number) for number in range(5)]
    asked = worker.ready(service)
    for number in range(5):
        assigned = worker.reply(asked)
        assert assigned.payload == b"%d" % number
        asked = worker.result(assigned.id, b"done %d" % number)
    assert [client.reply(request).payload for request in requests] == [b"done %d" % n for n in range(5)]


def test_a_worker_gets_only_jobs_of_its_services(client: Pipe, dial: Callable[[], Pipe], service: str) -> None:
    first, second = dial(), dial()
    asked = [first.ready(f"{service}-b", f"{service}-a"), second.ready(f"{service}-c")]
    for name, pipe, request in (("c", second, asked[1]), ("a", first, asked[0])):
        client.job(f"{service}-{name}", name.encode())
        assert pipe.reply(request).rest[0] == f"{service}-{name}"
    client.job(f"{service}-d")
    client.silence()
    second.silence()


def test_clients_and_workers_on_one_pipe(client: Pipe, service: str) -> None:
    asked = [client.ready(service) for _ in range(50)]
    requests = [client.job(service, b"%d" % number) for number in range(50)]
    ids = set()
    for request in asked:
        assigned = client.reply(request)
        ids.add(assigned.id)
        client.result(assigned.id, b"<%b>" % assigned.payload)
    assert len(ids) == 50
    assert [client.reply(request).payload for request in requests] == [b"<%d>" % n for n in range(50)]


def test_thousands_of_requests_wait_on_one_pipe(client: Pipe, worker: Pipe, service: str) -> None:
    requests = [client.job(service, b"%d" % number) for number in range(MANY)]
    asked = worker.ready(service)
    for _ in range(MANY):
        assigned = worker.reply(asked)
        asked = worker.result(assigned.id, assigned.payload)
    assert [client.reply(request).payload for request in requests] == [b"%d" % n for n in range(MANY)]


def test_hundreds_of_pipes(dial: Callable[[], Pipe], service: str) -> None:
    workers = [dial() for _ in range(200)]
    asked = [pipe.ready(service) for pipe in workers]
    clients = [dial() for _ in range(200)]
    requests = [pipe.job(service, b"%d" % number) for number, pipe in enumerate(clients)]
    for pipe, request in zip(workers, asked, strict=True):
        assigned = pipe.reply(request)
        pipe.result(assigned.id, assigned.payload)
    for number, (pipe, request) in enumerate(zip(clients, requests, strict=True)):
        assert pipe.reply(request).payload == b"%d" % number


def test_a_backtrace_of_several_hops_comes_back_whole(client: Pipe, worker: Pipe, service: str) -> None:
    hops = bytes.fromhex("00000001 00000002 80000003")
    job = b"\x85\x66memo01\x02\x40\x69" + service.encode().ljust(9, b"x")[:9] + b"\x19\x9c\x40"
    name = service.ljust(9, "x")[:9]
    client.message(hops + job + b"payload")
    assigned = worker.reply(worker.ready(name))
    worker.result(assigned.id, b"result")
    assert client.receive(8) == (12 + 10 + 6).to_bytes(8, "big")
    assert client.receive(28) == hops + b"\x83\x66memo01\x03\x40" + b"result"


def test_a_client_that_leaves_takes_its_waiting_jobs_along(
    dial: Callable[[], Pipe], worker: Pipe, service: str
) -> None:
    leaver, stayer = dial(), dial()
    leaver.job(service, b"nobody waits for this")
    leaver.silence()
    leaver.close()
    request = stayer.job(service, b"this is wanted")
    stayer.silence()
    asked = worker.ready(service)
    assigned = worker.reply(asked)
    if assigned.payload != b"this is wanted":  # the server had not noticed yet
        assigned = worker.reply(worker.result(assigned.id))
    assert assigned.payload == b"this is wanted"
    goodbye = worker.result(assigned.id, b"done", True)
    assert worker.reply(goodbye).kind == DISCONNECT
    assert stayer.reply(request).payload == b"done"
