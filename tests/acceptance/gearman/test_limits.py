"""How long and how strange names, keys and payloads may be."""

import pytest

from tests.support.gearman_peer import Hire, Kind, Peer, request

FIVE_MEGABYTES = 5 * 1024 * 1024
DIFFERS = pytest.mark.differs_from_gearmand
STRANGE = [
    pytest.param(bytes({*range(0x20, 256)} - {0x7F}), id="every byte that is no control character"),
    pytest.param(b"\xff\xfe\x80", id="no UTF-8"),
    pytest.param("grüße".encode(), id="UTF-8"),
    pytest.param(b"two words", id="space"),
    pytest.param(b"x" * 512, id="512 bytes"),
    pytest.param(b"", id="empty"),
]
UNIQUE = [
    pytest.param(b"\x01\x80\xff\xc3(\n\r\t", id="no UTF-8"),
    pytest.param(bytes(range(192, 255)), id="63 bytes"),
    pytest.param(bytes(range(192, 256)), id="64 bytes", marks=DIFFERS),  # gearmand cuts it and never coalesces it
]


@pytest.mark.parametrize("name", STRANGE)
def test_function_names_are_raw_bytes(name: bytes, client: Peer, hire: Hire) -> None:
    worker = hire(name)
    handle = client.submit(name, b"", b"data")
    job = worker.grab()
    assert (job.handle, job.function, job.data) == (handle, name, b"data")
    worker.send(Kind.WORK_COMPLETE, handle, b"result")
    client.expect(Kind.WORK_COMPLETE, handle, b"result")


@pytest.mark.parametrize("unique", UNIQUE)
def test_uniques_are_raw_bytes(unique: bytes, client: Peer, worker: Peer, function: bytes) -> None:
    handle = client.submit(function, unique, b"data")
    assert client.submit(function, unique, b"other") == handle
    job = worker.grab(Kind.GRAB_JOB_UNIQ)
    assert (job.handle, job.unique, job.data) == (handle, unique, b"data")


def test_a_unique_of_64_bytes_is_accepted(client: Peer, function: bytes) -> None:
    assert client.submit(function, b"x" * 64, b"data")
    client.silence()


@pytest.mark.parametrize(
    "kind",
    [Kind.SUBMIT_JOB, Kind.SUBMIT_JOB_BG, Kind.SUBMIT_JOB_HIGH, Kind.SUBMIT_JOB_LOW_BG],
    ids=lambda k: k.name,
)
def test_a_unique_of_65_bytes_is_refused(kind: Kind, client: Peer, worker: Peer, function: bytes) -> None:
    client.send(kind, function, b"x" * 65, b"data")
    client.expect(Kind.ERROR, b"ARGUMENT_TOO_LARGE", b"Unique value too large")
    client.silence()
    assert worker.take() is None


def test_one_unique_that_is_too_long_does_not_stop_the_jobs_around_it(
    client: Peer, worker: Peer, function: bytes
) -> None:
    """Three submissions in one write, as the libraries of Python send them."""
    uniques = (b"first", b"x" * 65, b"third")
    client.raw(b"".join(request(Kind.SUBMIT_JOB, function, unique, b"data") for unique in uniques))
    first = client.body(Kind.JOB_CREATED)
    client.expect(Kind.ERROR, b"ARGUMENT_TOO_LARGE", b"Unique value too large")
    third = client.body(Kind.JOB_CREATED)
    for handle in (first, third):
        assert worker.grab().handle == handle
        worker.send(Kind.WORK_COMPLETE, handle, b"result")
        client.expect(Kind.WORK_COMPLETE, handle, b"result")


def test_a_client_id_is_cut_at_127_bytes(client: Peer, admin: Peer) -> None:
    client.send(Kind.SET_CLIENT_ID, b"i" * 200).silence()
    admin.text("workers")
    assert [line.split()[2] for line in admin.block() if b"iii" in line] == [b"i" * 127]


@pytest.mark.differs_from_gearmand
@pytest.mark.parametrize("size", [513, 12_000])
def test_names_that_are_too_long_are_refused(size: int, client: Peer) -> None:
    """gearmand closes the connection at 8192 bytes: arguments must fit its buffer."""
    for kind, rest in ((Kind.SUBMIT_JOB, (b"", b"data")), (Kind.CAN_DO, ())):
        client.send(kind, b"x" * size, *rest)
        assert client.error()[0] == "INVALID_NAME"
    client.silence()


def test_five_megabytes_there_and_back(client: Peer, worker: Peer, function: bytes) -> None:
    data = bytes(range(256)) * (FIVE_MEGABYTES // 256)
    handle = client.submit(function, b"", data)
    assert worker.grab().data == data
    worker.send(Kind.WORK_DATA, handle, data[::-1])
    client.expect(Kind.WORK_DATA, handle, data[::-1])
    worker.send(Kind.WORK_COMPLETE, handle, data)
    client.expect(Kind.WORK_COMPLETE, handle, data)


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 8191, 8192, 8193, 65535, 65536, 262144, 1 << 20])
def test_payload_sizes_around_buffer_sizes(size: int, client: Peer, worker: Peer, function: bytes) -> None:
    data = (b"0123456789\0" * (size // 11 + 1))[:size]
    handle = client.submit(function, b"", data)
    assert worker.grab().data == data
    worker.send(Kind.WORK_COMPLETE, handle, data)
    client.expect(Kind.WORK_COMPLETE, handle, data)
    client.send(Kind.ECHO_REQ, data)
    client.expect(Kind.ECHO_RES, data)


def test_nuls_belong_to_the_data(client: Peer, worker: Peer, function: bytes) -> None:
    handle = client.submit(function, b"key", b"\0a\0\0b\0")
    job = worker.grab(Kind.GRAB_JOB_UNIQ)
    assert (job.unique, job.data) == (b"key", b"\0a\0\0b\0")
    for kind in (Kind.WORK_DATA, Kind.WORK_WARNING, Kind.WORK_COMPLETE):
        worker.send(kind, handle, b"\0\0x\0")
        client.expect(kind, handle, b"\0\0x\0")


def test_a_handle_may_have_63_bytes(client: Peer) -> None:
    assert client.status(b"h" * 63) == (0, 0, 0, 0)
    client.send(Kind.WORK_FAIL, b"h" * 63)
    client.expect(Kind.ERROR, b"JOB_NOT_FOUND", b"Job given in work result not found")
    client.silence()


@pytest.mark.parametrize(
    ("kind", "rest", "code"),
    [
        (Kind.WORK_FAIL, (), "ARGUMENT_TOO_LARGE"),
        (Kind.WORK_COMPLETE, (b"data",), "JOB_NOT_FOUND"),
        (Kind.WORK_STATUS, (b"1", b"2"), "JOB_NOT_FOUND"),
        (Kind.WORK_DATA, (b"data",), "JOB_NOT_FOUND"),
    ],
    ids=["fail", "complete", "status", "data"],
)
def test_a_handle_of_64_bytes_is_nobodys(kind: Kind, rest: tuple[bytes, ...], code: str, client: Peer) -> None:
    client.send(kind, b"h" * 64, *rest)
    assert client.error()[0] == code
    client.silence()


def test_a_worker_that_sends_a_handle_too_long_keeps_its_job(client: Peer, worker: Peer, function: bytes) -> None:
    handle = client.submit(function)
    worker.grab()
    worker.send(Kind.WORK_FAIL, b"h" * 64)
    assert worker.error()[0] == "ARGUMENT_TOO_LARGE"
    worker.send(Kind.WORK_COMPLETE, handle, b"result")
    client.expect(Kind.WORK_COMPLETE, handle, b"result")


@pytest.mark.differs_from_gearmand
@pytest.mark.parametrize("kind", [Kind.GET_STATUS, Kind.GET_STATUS_UNIQUE], ids=lambda kind: kind.name)
def test_a_status_request_with_a_name_too_long_is_answered(kind: Kind, client: Peer) -> None:
    """gearmand says nothing, and its client waits for ever."""
    client.send(kind, b"h" * 65)
    code, text = client.error()
    assert code == "ARGUMENT_TOO_LARGE"
    assert text
    client.silence()
