"""The link for MemoDB, against the real server, and with NNG's own library on the other side."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cbor2
import pytest

from geartrain.address import parse
from geartrain.client.job_events import Completed
from geartrain.client.order import Order
from geartrain.client.protocols.memodb import client, pipe
from geartrain.errors import ClientError
from tests.support import serving
from tests.support.link_parties import ClientParty, WorkerParty, client_of, fresh, stand_in, until, worker_of
from tests.support.memodb_peer import RESULT, Pipe

PLACES = ("tcp", "ipc", "ws")


@pytest.fixture(scope="module")
def server() -> Iterator[serving.ServerProcess]:
    doors = ["memodb+tcp://127.0.0.1:0", "memodb+ipc:///proc/self/cwd/door.sock", "memodb+ws://127.0.0.1:0/memo"]
    listens = [word for door in (*doors, "gearman://127.0.0.1:0") for word in ("--listen", door)]
    times = ["--memodb-queue-timeout", "300ms", "--memodb-heartbeat", "200ms", "--max-attempts", "3"]
    with serving.serve("--store", "memory", *listens, *times) as running:
        yield running


def url_of(server: serving.ServerProcess, place: str) -> str:
    if place == "ipc":
        return f"memodb+ipc://{server.home}/door.sock"
    [url] = [url for url in server.urls if url.startswith(f"memodb+{place}:")]
    return url


def port_of(server: serving.ServerProcess, scheme: str) -> int:
    [url] = [url for url in server.urls if url.startswith(f"{scheme}:")]
    return int(url.rpartition(":")[2])


@pytest.fixture(params=PLACES)
def url(request: pytest.FixtureRequest, server: serving.ServerProcess) -> str:
    return url_of(server, request.param)


@pytest.fixture
def tcp(server: serving.ServerProcess) -> str:
    return url_of(server, "tcp")


def test_a_job(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client, worker_of(url, function) as worker:
            order = client.submit(function, b"abc\0\xff")
            job = await worker.job()
            assert (job.function, job.payload, job.handle, job.unique) == (function, b"abc\0\xff", b"", b"")
            worker.link.complete(job, b"\xffdone")
            assert await order.events() == [Completed(b"\xffdone")]
            empty = client.submit(function)
            worker.link.complete(await worker.job(), b"")
            assert await empty.ending() == Completed(b"")

    asyncio.run(scenario())


def test_eight_megabytes(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        payload = bytes(range(256)) * (8 * 1024 * 4) + b"end"
        async with client_of(url) as client, worker_of(url, function) as worker:
            order = client.submit(function, payload)
            job = await worker.job()
            assert job.payload == payload
            worker.link.complete(job, job.payload[::-1])
            assert await order.ending() == Completed(payload[::-1])

    asyncio.run(scenario())


def test_many_jobs_on_one_pipe(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client, worker_of(url, function, concurrency=10) as worker:
            orders = [client.submit(function, b"%d" % number) for number in range(200)]
            for _ in orders:
                job = await worker.job()
                worker.link.complete(job, job.payload * 2)
            assert [await order.ending() for order in orders] == [Completed(b"%d" % n * 2) for n in range(200)]

    asyncio.run(scenario())


def test_heartbeats_are_answered(server: serving.ServerProcess, tcp: str) -> None:
    """A worker that waits for several heartbeats is still the same worker: the server has not lost it."""

    async def scenario() -> None:
        function = fresh()
        async with client_of(tcp) as client, worker_of(tcp, function) as worker:
            [connection] = worker.link.connections
            beats = 0
            before = connection._id
            while beats < 3:
                await until(lambda: bool(connection._id), "a heartbeat")
                before, connection._id, beats = connection._id, b"", beats + 1
            order = client.submit(function, b"abc")
            worker.link.complete(await worker.job(), b"cba")
            assert await order.ending() == Completed(b"cba")
            assert connection._id == before

    asyncio.run(scenario())


def test_a_request_that_found_no_worker_is_asked_again(tcp: str) -> None:
    """The server drops it after a while, and closes the pipe since nothing else depends on it."""

    async def scenario() -> None:
        function = fresh()
        async with client_of(tcp) as client:
            order = client.submit(function, b"abc")
            first = client.link._pipe
            await until(lambda: client.link._pipe is not first, "the pipe was dialled again")
            meanwhile = client.submit(function, b"def")
            async with worker_of(tcp, function, concurrency=2) as worker:
                for _ in range(2):
                    job = await worker.job()
                    worker.link.complete(job, job.payload[::-1])
                assert await order.ending() == Completed(b"cba")
                assert await meanwhile.ending() == Completed(b"fed")
            assert client.lost.empty()

    asyncio.run(scenario())


def test_a_request_that_is_not_answered_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same id; the server of this test answers only what it has heard twice."""
    monkeypatch.setattr(client, "RESEND_SECONDS", 0.05)
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

    async def scenario() -> None:
        async with stand_in(answer) as port, client_of(f"memodb+tcp://127.0.0.1:{port}") as client:
            order = client.submit(b"f", b"abc")
            assert await order.ending() == Completed(b"at last")
            assert len(set(seen)) == 1
            forgotten = client.submit(b"f", b"def")
            client.link.forget(forgotten)
            other = client.submit(b"f", b"ghi")
            await other.ending()
            assert sum(message.endswith(b"def") for message in seen) <= 1

    asyncio.run(scenario())


def test_a_job_that_fails_is_given_back(server: serving.ServerProcess, tcp: str) -> None:
    """Until the server gives it up; a client of another protocol hears of that."""
    gearman = f"gearman://127.0.0.1:{port_of(server, 'gearman')}"

    async def scenario() -> None:
        function = fresh()
        async with worker_of(tcp, function) as worker, client_of(gearman) as client:
            order = client.submit(function)
            for _ in range(3):
                worker.link.fail(await worker.job(), "no such file")
            [ending] = await order.events()
            assert type(ending).__name__ == "Failed"
            assert worker.lost.empty()

    asyncio.run(scenario())


def test_functions_come_and_go(tcp: str) -> None:
    async def scenario() -> None:
        first, second = fresh(), fresh()
        async with client_of(tcp) as client, worker_of(tcp, first) as worker:
            order = client.submit(first)
            job = await worker.job()
            worker.link.unregister(first)
            worker.link.register(second, 0.0)
            other = client.submit(second)
            worker.link.complete(job, b"done")
            assert await order.ending() == Completed(b"done")
            job = await worker.job()
            assert job.function == second
            worker.link.complete(job, b"also done")
            assert await other.ending() == Completed(b"also done")
            worker.link.register(first, 0.0)  # while it waits
            order = client.submit(first)
            worker.link.complete(await worker.job(), b"again")
            assert await order.ending() == Completed(b"again")

    asyncio.run(scenario())


def test_a_worker_that_rests_finishes_what_it_has(tcp: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(tcp) as client, worker_of(tcp, function, concurrency=3) as worker:
            order = client.submit(function)
            job = await worker.job()
            worker.link.stop_fetching()
            await worker.link.fetching_stopped()
            left = client.submit(function, b"is left to others")
            worker.link.complete(job, b"done")
            assert await order.ending() == Completed(b"done")
            await until(lambda: not worker.link.connections, "every pipe is closed")
            assert worker.jobs.empty()
            assert worker.lost.empty()
            async with worker_of(tcp, function) as another:
                another.link.complete(await another.job(), b"by another")
                assert await left.ending() == Completed(b"by another")

    asyncio.run(scenario())


def test_a_worker_whose_server_forgot_it_starts_anew(server: serving.ServerProcess, tcp: str) -> None:
    """DISCONNECT answers a worker that is out of step; here a stranger has spoken in its name."""

    async def scenario() -> None:
        function = fresh()
        async with client_of(tcp) as client, worker_of(tcp, function) as worker:
            [connection] = worker.link.connections
            order = client.submit(function)
            worker.link.complete(await worker.job(), b"first")
            assert await order.ending() == Completed(b"first")
            old = connection._id
            with Pipe.tcp(port_of(server, "memodb+tcp")) as stranger:
                stranger.result(old)
            order = client.submit(function)
            worker.link.complete(await worker.job(), b"second")
            assert await order.ending() == Completed(b"second")
            assert connection._id != old

    asyncio.run(scenario())


def test_everybody_hears_that_the_server_is_gone() -> None:
    async def scenario() -> None:
        with serving.serve("--store", "memory", "--listen", "memodb+tcp://127.0.0.1:0") as server:
            function = fresh()
            async with client_of(server.url) as client, worker_of(server.url, function, concurrency=2) as worker:
                waiting = client.submit(function)
                await worker.job()
                await asyncio.to_thread(server.kill)
                assert isinstance(await waiting.ending(), Exception)
                await client.lost.next()
                await worker.lost.next()
                assert client.lost.empty()
                assert worker.lost.empty()

    asyncio.run(scenario())


@pytest.mark.parametrize("place", PLACES)
def test_what_is_no_broker_is_noticed_at_once(place: str, tmp_path: Path) -> None:
    async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 404 Not Found\r\n\r\n")

    async def scenario() -> None:
        path = tmp_path / "door.sock" if place == "ipc" else None
        async with stand_in(hello, path) as port:
            url = f"memodb+ipc://{path}" if path else f"memodb+{place}://127.0.0.1:{port}"
            with pytest.raises(Exception, match=r"PROTOCOL|HTTP"):
                await ClientParty(url).link.open()
            with pytest.raises(Exception, match=r"PROTOCOL|HTTP"):
                await WorkerParty(url, concurrency=3).link.open({b"f": 0.0})

    asyncio.run(scenario())


def test_another_path_than_the_websocket_has(server: serving.ServerProcess) -> None:
    async def scenario() -> None:
        with pytest.raises(Exception, match="404"):
            await ClientParty(f"memodb+ws://127.0.0.1:{parse(url_of(server, 'ws')).port}/other").link.open()

    asyncio.run(scenario())


def test_names_are_text(tcp: str) -> None:
    assert "UTF-8" in client.Client.unsupported_reason(Order(b"\xff"))
    assert client.Client.unsupported_reason(Order("größe".encode())) == ""

    async def scenario() -> None:
        with pytest.raises(ClientError, match="UTF-8"):
            await WorkerParty(tcp).link.open({b"\xff": 0.0})

    asyncio.run(scenario())


# NNG's own library


def _pynng_worker(url: str, service: str, ready: Callable[[], None]) -> None:
    """One job, then it says goodbye."""
    import pynng

    with pynng.Req0(dial=url, recv_timeout=20_000) as socket:
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

    with pynng.Req0(dial=url, recv_timeout=20_000) as socket:
        socket.send(cbor2.dumps(["memo01", 2, b"", service, 40_000]) + payload)
        reply = bytes(socket.recv())
    header = cbor2.dumps(["memo01", RESULT, b""])
    assert reply.startswith(header)
    return reply.removeprefix(header)


@pytest.mark.peer("pynng")
def test_our_client_with_a_worker_of_pynng(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        started = threading.Event()
        arguments: tuple[Any, ...] = (url.removeprefix("memodb+"), function.decode(), started.set)
        working = asyncio.create_task(asyncio.to_thread(_pynng_worker, *arguments))
        await asyncio.to_thread(started.wait, 20)
        async with client_of(url) as client:
            payload = bytes(range(256)) * 8192
            assert await client.submit(function, payload).ending() == Completed(payload[::-1])
        await working

    asyncio.run(scenario())


@pytest.mark.peer("pynng")
def test_our_worker_with_a_client_of_pynng(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        payload = bytes(range(256)) * 8192
        async with worker_of(url, function) as worker:
            asking = asyncio.create_task(
                asyncio.to_thread(_pynng_client, url.removeprefix("memodb+"), function.decode(), payload)
            )
            job = await worker.job()
            assert job.payload == payload
            worker.link.complete(job, payload[::-1])
            assert await asking == payload[::-1]

    asyncio.run(scenario())
