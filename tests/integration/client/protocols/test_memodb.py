"""What only MemoDB does: heartbeats, requests that are sent again, jobs that are given back instead of failing.

The rules of all protocols are in tests/contract/protocols, for all three transports.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import cbor2
import pytest

from geartrain.address import parse
from geartrain.client.job_events import Completed, Failed
from geartrain.client.protocols.memodb import client as memodb_client
from geartrain.client.protocols.memodb import pipe
from geartrain.wire import memodb_client as wire
from tests.support import serving
from tests.support.memodb_peer import RESULT
from tests.support.protocol_ends import (
    ClientEnd,
    WorkerEnd,
    async_test,
    connected_client,
    connected_worker,
    fake_server,
    new_name,
    until,
)

TRANSPORTS = ("tcp", "ipc", "ws")


@pytest.fixture(scope="module")
def server() -> Iterator[serving.ServerProcess]:
    doors = ["memodb+tcp://127.0.0.1:0", "memodb+ipc:///proc/self/cwd/door.sock", "memodb+ws://127.0.0.1:0/memo"]
    listens = [word for door in (*doors, "gearman://127.0.0.1:0") for word in ("--listen", door)]
    times = ["--memodb-queue-timeout", "300ms", "--memodb-heartbeat", "200ms", "--max-attempts", "3"]
    with serving.serve("--store", "memory", *listens, *times) as running:
        yield running


def url_of(server: serving.ServerProcess, scheme: str) -> str:
    [url] = [url for url in server.urls if url.startswith(f"{scheme}:")]
    return url.replace("/proc/self/cwd", str(server.home))


@pytest.fixture(params=TRANSPORTS)
def url(request: pytest.FixtureRequest, server: serving.ServerProcess) -> str:
    return url_of(server, f"memodb+{request.param}")


@pytest.fixture
def tcp(server: serving.ServerProcess) -> str:
    return url_of(server, "memodb+tcp")


def only_connection(worker: WorkerEnd) -> Any:
    [connection] = worker.protocol.connections  # type: ignore[attr-defined]
    return connection


@async_test
async def test_heartbeats_are_answered(tcp: str) -> None:
    """A worker that waits for several heartbeats is still the same worker: the server has not lost it."""
    function = new_name()
    async with connected_client(tcp) as client, connected_worker(tcp, function) as worker:
        connection = only_connection(worker)
        for _ in range(3):
            await until(lambda: bool(connection._id), "a heartbeat")
            before, connection._id = connection._id, b""
        listener = client.submit(function, b"abc")
        worker.complete(await worker.job(), b"cba")
        assert await listener.ending() == Completed(b"cba")
        assert connection._id == before


@async_test
async def test_request_that_found_no_worker_is_sent_again(tcp: str) -> None:
    """The server drops it after a while, and closes the pipe since nothing else depends on it."""
    function = new_name()
    async with connected_client(tcp) as client:
        protocol: Any = client.protocol
        listener = client.submit(function, b"abc")
        first = protocol._pipe
        await until(lambda: protocol._pipe is not first, "the pipe was dialled again")
        meanwhile = client.submit(function, b"def")
        async with connected_worker(tcp, function, concurrency=2) as worker:
            for _ in range(2):
                job = await worker.job()
                worker.complete(job, job.payload[::-1])
            assert await listener.ending() == Completed(b"cba")
            assert await meanwhile.ending() == Completed(b"fed")
        assert client.lost.empty()


@async_test
async def test_request_that_is_not_answered_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same id; the server of this test answers only what it has heard twice."""
    monkeypatch.setattr(memodb_client, "RESEND_SECONDS", 0.05)
    monkeypatch.setattr(pipe, "_LOOK_SECONDS", 0.05)
    seen: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\0SP\0\0\x31\0\0")
        await reader.readexactly(8)
        while size := await reader.read(8):
            message = await reader.readexactly(int.from_bytes(size, "big"))
            if message in seen:
                reply = message[:4] + cbor2.dumps(["memo01", 3, b""]) + b"at last"
                writer.write(len(reply).to_bytes(8, "big") + reply)
            seen.append(message)

    async with fake_server(answer) as port, connected_client(f"memodb+tcp://127.0.0.1:{port}") as client:
        listener = client.submit(b"f", b"abc")
        assert await listener.ending() == Completed(b"at last")
        assert len(set(seen)) == 1
        client.forget(client.submit(b"f", b"def"))
        await client.submit(b"f", b"ghi").ending()
        assert sum(message.endswith(b"def") for message in seen) <= 1


@async_test
async def test_job_that_fails_is_given_back(server: serving.ServerProcess, tcp: str) -> None:
    """Until the server gives it up; a client of another protocol hears of that."""
    function = new_name()
    async with connected_worker(tcp, function) as worker, connected_client(url_of(server, "gearman")) as client:
        listener = client.submit(function)
        for _ in range(3):
            worker.fail(await worker.job(), "no such file")
        [ending] = await listener.events()
        assert isinstance(ending, Failed)
        assert worker.lost.empty()


@async_test
async def test_worker_whose_server_forgot_it_starts_anew(tcp: str) -> None:
    """DISCONNECT answers a worker that is out of step; here it sends a heartbeat while it waits for a job."""
    function = new_name()
    async with connected_client(tcp) as client, connected_worker(tcp, function) as worker:
        connection = only_connection(worker)
        listener = client.submit(function)
        worker.complete(await worker.job(), b"first")
        assert await listener.ending() == Completed(b"first")
        old = connection._id
        connection._pipe.request(wire.heartbeat(old), b"", lambda *answer: None)
        listener = client.submit(function)
        worker.complete(await worker.job(), b"second")
        assert await listener.ending() == Completed(b"second")
        assert connection._id != old


@async_test
async def test_another_path_than_the_websocket_has(server: serving.ServerProcess) -> None:
    with pytest.raises(Exception, match="404"):
        await ClientEnd(str(parse(url_of(server, "memodb+ws"))._replace(path="/other"))).open()


# NNG's own library


def _pynng_worker(url: str, service: str, ready: Callable[[], None]) -> None:
    """One job, then it says goodbye."""
    import pynng

    with pynng.Req0(dial=url, recv_timeout=60_000) as socket:
        socket.send(cbor2.dumps(["memo01", 1, b"", [service]]))
        ready()
        while True:
            message = socket.recv()
            header = cbor2.loads(message)
            if header[1] == 4:
                socket.send(cbor2.dumps(["memo01", 4, header[2]]))
                continue
            payload = message[len(cbor2.dumps(header)) :]
            socket.send(cbor2.dumps(["memo01", 3, header[2], True]) + payload[::-1])
            socket.recv()
            return


def _pynng_client(url: str, service: str, payload: bytes) -> bytes:
    import pynng

    with pynng.Req0(dial=url, recv_timeout=60_000) as socket:
        socket.send(cbor2.dumps(["memo01", 2, b"", service, 40_000]) + payload)
        reply = bytes(socket.recv())
    header = cbor2.dumps(["memo01", RESULT, b""])
    assert reply.startswith(header)
    return reply.removeprefix(header)


@pytest.mark.peer("pynng")
@async_test
async def test_our_client_with_a_worker_of_pynng(url: str) -> None:
    function, started = new_name(), threading.Event()
    arguments: tuple[Any, ...] = (url.removeprefix("memodb+"), function.decode(), started.set)
    working = asyncio.create_task(asyncio.to_thread(_pynng_worker, *arguments))
    await asyncio.to_thread(started.wait, 20)
    async with connected_client(url) as client:
        payload = bytes(range(256)) * 8192
        assert await client.submit(function, payload).ending() == Completed(payload[::-1])
    await working


@pytest.mark.peer("pynng")
@async_test
async def test_our_worker_with_a_client_of_pynng(url: str) -> None:
    function, payload = new_name(), bytes(range(256)) * 8192
    async with connected_worker(url, function) as worker:
        arguments = (url.removeprefix("memodb+"), function.decode(), payload)
        result = asyncio.create_task(asyncio.to_thread(_pynng_client, *arguments))
        job = await worker.job()
        assert job.payload == payload
        worker.complete(job, payload[::-1])
        assert await result == payload[::-1]
