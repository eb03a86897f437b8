"""What only Periodic does: results that mean failures, names that are replaced, pings, tokens, old servers.

The rules of all protocols are in tests/contract/protocols.
"""

import asyncio
import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from geartrain.address import parse
from geartrain.client.job_events import Completed, Data, Failed
from geartrain.client.order import Order
from geartrain.client.protocols import periodic
from geartrain.client.protocols.periodic import session
from geartrain.errors import NoWorkersError, RefusedError
from tests.interop import test_periodic as aio
from tests.support import periodic_peer, serving
from tests.support.periodic_peer import Command
from tests.support.protocol_ends import (
    ClientEnd,
    WorkerEnd,
    async_test,
    connected_client,
    connected_worker,
    fake_server,
    new_name,
)

VERSION = "1.0.0"
TOKEN = "GEARTRAIN_PERIODIC_TOKEN"


@pytest.fixture(scope="module")
def server() -> Iterator[serving.ServerProcess]:
    with serving.serve("--store", "memory", "--listen", "periodic://127.0.0.1:0") as running:
        yield running


@pytest.fixture(scope="module")
def url(server: serving.ServerProcess) -> str:
    return server.url


@async_test
async def test_some_results_mean_that_there_is_none(url: str) -> None:
    function = new_name()
    async with connected_client(url) as client, connected_worker(url, function) as worker:
        listener = await client.accepted(function)
        worker.fail(await worker.job(), "no such file", b"data", 7)
        assert await listener.ending() == Failed("its worker failed")
        listener = client.submit(function)
        worker.complete(await worker.job(), b"failed")
        assert await listener.ending() == Failed("its worker failed")
        listener = client.submit(function, timeout=0.5)  # which is a second here
        await worker.job()
        assert await listener.ending() == Failed("it did not finish in time")


@async_test
async def test_removed_job(url: str) -> None:
    function = new_name()
    async with connected_client(url) as client, connected_worker(url, function) as worker:
        listener = await client.accepted(function)
        await worker.job()
        assert await client.protocol.cancel(await listener.acceptance())
        assert await listener.ending() == Failed("it was removed")


@async_test
async def test_part_that_looks_like_the_end_of_the_data(url: str) -> None:
    function = new_name()
    async with connected_client(url) as client, connected_worker(url, function) as worker:
        listener = await client.accepted(function)
        job = await worker.job()
        parts = [b"one", b"EOF", b"", b"two", b"EOF"]
        for part in parts:
            worker.protocol.data(job, part)
        worker.complete(job, b"done")
        assert await listener.events() == [*map(Data, parts), Completed(b"done")]


@async_test
async def test_function_without_workers(url: str) -> None:
    async with connected_client(url) as client:
        with pytest.raises(NoWorkersError, match="no worker is registered"):
            await client.submit(new_name()).acceptance()


@async_test
async def test_queued_job_is_replaced_by_one_of_the_same_name(url: str) -> None:
    function = new_name()
    async with connected_client(url) as client:
        for payload in (b"one", b"two", b"three"):
            acceptance = await (await client.queued(function, payload, unique=b"key")).acceptance()
            assert (acceptance.handle, acceptance.unique) == (b"key", b"key")
        async with connected_worker(url, function) as worker:
            job = await worker.job()
            assert (job.payload, job.unique) == (b"three", b"key")
            worker.complete(job)


@async_test
async def test_background_job_that_fails_is_tried_again(url: str) -> None:
    function = new_name()
    async with connected_client(url) as client, connected_worker(url, function) as worker:
        await client.queued(function, b"1")
        worker.fail(await worker.job(), "at first")
        job = await worker.job()
        assert job.payload == b"1"
        worker.complete(job)


def test_unique_keys_have_a_length_of_one_byte() -> None:
    assert "255" in periodic.Client.unsupported_reason(Order(b"f", unique=b"k" * 256))
    assert periodic.Client.unsupported_reason(Order(b"f", unique=b"k" * 255)) == ""


def _response(payload: bytes) -> bytes:
    return periodic_peer.frame(periodic_peer.Dialect.TODAY, payload, b"\0RES")


def _pong(ping: bytes) -> bytes:
    return _response(ping[12:16] + bytes([Command.PONG]))


@async_test
async def test_server_that_does_not_answer_pings_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "PING_SECONDS", 0.05)
    pings = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal pings
        await reader.readexactly(13)
        writer.write(_response(b"\x1eabcd"))
        while frame := await reader.read(17):
            assert frame[16] == Command.PING
            pings += 1
            if pings < 3:
                writer.write(_pong(frame))

    async with fake_server(answer) as port, connected_client(f"periodic://127.0.0.1:{port}") as client:
        assert "ping" in str(await client.lost.next())
        assert pings == 3


@async_test
async def test_worker_has_a_name_unless_the_server_knows_none() -> None:
    """Servers before 1.2.9 hang up on a worker that says its name."""
    kinds: list[int] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        header = await reader.readexactly(12)
        kinds.append((await reader.readexactly(int.from_bytes(header[4:8], "big")))[0])
        if kinds[-1] == periodic_peer.WORKER:
            writer.write(_response(b"\x1eabcd"))
            writer.write(_pong(await reader.readexactly(17)))
            await reader.read()

    async with fake_server(answer) as port, connected_worker(f"periodic://127.0.0.1:{port}", b"f", name="somebody"):
        assert kinds == [periodic_peer.NAMED_WORKER, periodic_peer.WORKER]


def test_server_that_wants_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    @async_test
    async def scenario(url: str) -> None:
        with pytest.raises(RefusedError, match="requires a token"):
            await ClientEnd(url).open()
        with pytest.raises(RefusedError, match="requires a token"):
            await WorkerEnd(url).open(b"f")
        monkeypatch.setenv(TOKEN, "open sesame")
        async with connected_client(url) as client, connected_worker(url, b"f") as worker:
            await client.queued(b"f")
            await worker.job()

    with serving.serve(
        "--store", "memory", "--listen", "periodic://127.0.0.1:0", "--periodic-token", "open sesame"
    ) as server:
        scenario(server.url)


# aio-periodic


@pytest.fixture(scope="module")
def entrypoint(server: serving.ServerProcess) -> str:
    return f"tcp://127.0.0.1:{parse(server.url).port}"


@pytest.fixture(scope="module")
def stack() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack


def _folder(stack: contextlib.ExitStack) -> Path:
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="geartrain-peer-")))


@pytest.mark.peer(f"aio-periodic-{VERSION}")
@async_test
async def test_our_client_with_a_worker_of_aio_periodic(url: str, entrypoint: str, stack: contextlib.ExitStack) -> None:
    peer = aio.Worker(VERSION, _folder(stack), entrypoint, "aio")
    stack.callback(peer.kill)
    async with connected_client(url) as client:
        assert await client.submit(b"aio-echo", b"hello").ending() == Completed(b"R:hello")
        await client.queued(b"aio-echo", b"later", unique=b"named")
        await asyncio.to_thread(peer.ran, "echo", "named")
        listener = client.submit(b"aio-parts", unique=b"streamed")
        for part in (b"one", b"two"):
            peer.let_pass("streamed")
            assert await listener.heard.next() == Data(part)
        peer.let_pass("streamed")
        assert await listener.ending() == Completed(b"whole")


@pytest.mark.peer(f"aio-periodic-{VERSION}")
@async_test
async def test_our_worker_with_a_client_of_aio_periodic(url: str, entrypoint: str, stack: contextlib.ExitStack) -> None:
    peer = aio.Client(VERSION, "client.py", _folder(stack), entrypoint)
    stack.callback(peer.kill)
    function = new_name("ours")
    async with connected_client(url) as client, connected_worker(url, function) as worker:
        await client.accepted(function)  # the server knows the worker
        worker.complete(await worker.job())
        number = peer.begin("run", function.decode(), "name", workload="abc")
        job = await worker.job()
        assert (job.payload, job.unique) == (b"abc", b"name")
        worker.protocol.data(job, b"a part that was not asked for")
        worker.complete(job, b"whole")
        assert await asyncio.to_thread(peer.result, number) == "whole"
        number = peer.begin("run", function.decode(), "another", workload="x")
        worker.fail(await worker.job(), "cannot be said")
        assert await asyncio.to_thread(peer.result, number) == "failed"
