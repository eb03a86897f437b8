"""What only the 2005 draft does: a connection per foreground job, codes of failures, refusals without a reason.

The rules of all protocols are in tests/contract/protocols.
"""

import asyncio
from collections.abc import Iterator

import pytest

from geartrain.client.job_events import Completed, Failed
from geartrain.client.order import Order
from geartrain.client.protocols import danga
from geartrain.client.protocols.danga import client as danga_client
from geartrain.errors import RefusedError
from tests.support import danga_peer, serving
from tests.support.protocol_ends import async_test, connected_client, connected_worker, fake_server, new_name, until


@pytest.fixture(scope="module")
def server() -> Iterator[serving.ServerProcess]:
    with serving.serve("--store", "memory", "--listen", "danga://127.0.0.1:0", "--max-attempts", "2") as running:
        yield running


@pytest.fixture(scope="module")
def url(server: serving.ServerProcess) -> str:
    return server.url


@async_test
async def test_failure_without_words_says_its_code(url: str) -> None:
    function = new_name()
    async with connected_client(url) as client, connected_worker(url, function) as worker:
        for code, heard in ((900, 255), (0, 1)):
            listener = client.submit(function)
            worker.fail(await worker.job(), "", code=code)
            assert await listener.ending() == Failed(f"error code {heard}", heard, b"")


@async_test
async def test_more_jobs_than_connections(url: str) -> None:
    function, count = new_name(), danga_client.MOST_CONNECTIONS + 44
    async with connected_client(url) as client, connected_worker(url, function, concurrency=20) as worker:
        listeners = [client.submit(function, b"%d" % number) for number in range(count)]
        for _ in range(count):
            job = await worker.job()
            worker.complete(job, job.payload)
        assert [await listener.ending() for listener in listeners] == [Completed(b"%d" % n) for n in range(count)]


@async_test
async def test_job_that_is_given_up_has_failed(url: str) -> None:
    function = new_name()
    async with connected_client(url) as client:
        acceptance = await (await client.queued(function)).acceptance()
        for _ in range(2):
            async with connected_worker(url, function) as worker:
                await worker.job()
        assert await client.protocol.result(acceptance) == Failed("error code 255", 255, b"")


@async_test
async def test_queued_job_that_is_forgotten_is_dropped(server: serving.ServerProcess, url: str) -> None:
    function = new_name()
    async with connected_client(url) as client:
        forgotten = await client.accepted(function, b"forgotten")
        await client.queued(function, b"queued")
        client.forget(forgotten)
        client.forget(client.submit(function, b"never sent"))  # while its connection is being opened
        with danga_peer.Peer(server.port) as probe:  # the server has read the end of the connection by then
            assert await asyncio.to_thread(probe.status, b"") == (0, 0, 0)
        async with connected_worker(url, function) as worker:
            assert (await worker.job()).payload == b"queued"


@async_test
async def test_idle_connections_leave_when_the_worker_stops_fetching(url: str) -> None:
    function = new_name()
    async with connected_client(url) as client, connected_worker(url, function, concurrency=3) as worker:
        listener = await client.accepted(function)
        job = await worker.job()
        await worker.stop_fetching()
        worker.complete(job)
        await listener.ending()
        connections = worker.protocol.connections  # type: ignore[attr-defined]
        await until(lambda: not connections, "every connection has left")
        assert worker.lost.empty()


@async_test
async def test_empty_handle_is_a_refusal() -> None:
    """The server of this test says that its queue is full."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while header := await reader.read(9):
            await reader.readexactly(int.from_bytes(header[5:], "big"))
            if header[4] == danga_peer.Kind.JOB_STATUS_REQ:
                writer.write(danga_peer.packet(danga_peer.Kind.JOB_STATUS_RES, bytes(12), danga_peer.RESPONSE))
            else:
                writer.write(danga_peer.packet(danga_peer.Kind.JOB_CREATE_RES, b"", danga_peer.RESPONSE))

    async with fake_server(refuse) as port, connected_client(f"danga://127.0.0.1:{port}") as client:
        for background in (False, True):
            with pytest.raises(RefusedError, match="queue is full"):
                await client.submit(b"full", background=background).acceptance()


@async_test
async def test_with_a_raw_peer_on_the_other_side(server: serving.ServerProcess, url: str) -> None:
    function = new_name()
    with danga_peer.Peer(server.port) as peer:
        async with connected_worker(url, function) as worker:
            peer.raw(danga_peer.creation(function, b"", b"abc", danga_peer.SYNC))
            worker.complete(await worker.job(), b"cba")
            answers = [await asyncio.to_thread(peer.packet) for _ in range(2)]
            assert answers[1] == (danga_peer.Kind.JOB_COMPLETE_RES, bytes([0, 0, 0, 1, 0]) + b"cba")
        async with connected_client(url) as client:
            await asyncio.to_thread(peer.connect, function)
            listener = await client.accepted(function, b"xyz")
            assert await asyncio.to_thread(peer.take) == danga_peer.Job(function, b"xyz")
            peer.finish(b"zyx")
            assert await listener.ending() == Completed(b"zyx")


def test_unique_key_with_nul() -> None:
    assert "NUL" in danga.Client.unsupported_reason(Order(b"f", unique=b"a\0b"))
