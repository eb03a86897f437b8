"""What only the HTTP API does: leases, tokens, idle connections, foreground jobs without a handle.

The rules of all protocols are in tests/contract/protocols.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from geartrain.client.job_events import Completed, Data, Progressed, Warned
from geartrain.client.protocols.http import connections
from geartrain.errors import ClientError, RefusedError
from tests.support import serving
from tests.support.protocol_ends import (
    ClientEnd,
    Received,
    WorkerEnd,
    async_test,
    connected_client,
    connected_worker,
    fake_server,
    new_name,
)

TOKEN = "GEARTRAIN_HTTP_TOKEN"


@pytest.fixture(scope="module")
def server() -> Iterator[serving.ServerProcess]:
    doors = ("--listen", "http://127.0.0.1:0", "--listen", "gearman://127.0.0.1:0")
    with serving.serve("--store", "memory", "--http-worker-lease", "1s", *doors) as running:
        yield running


@pytest.fixture(scope="module")
def url(server: serving.ServerProcess) -> str:
    return server.urls[0]


@async_test
async def test_reports_of_a_worker_arrive_in_order(server: serving.ServerProcess, url: str) -> None:
    """An HTTP client hears only the end; a Gearman client hears everything."""
    function = new_name()
    async with connected_client(server.urls[1]) as client, connected_worker(url, function) as worker:
        listener = client.submit(function)
        job = await worker.job()
        worker.protocol.data(job, b"one")
        worker.protocol.warn(job, b"careful")
        worker.protocol.progress(job, 0.5, 1)
        worker.protocol.data(job, b"two")
        worker.complete(job, b"whole")
        expected = [Data(b"one"), Warned(b"careful"), Progressed(500, 1000), Data(b"two"), Completed(b"whole")]
        assert await listener.events() == expected


@async_test
async def test_lease_is_renewed_while_a_job_runs(url: str) -> None:
    """The lease is a second; three renewals are sent in that time."""
    function, renewals = new_name(), Received()
    async with connected_client(url) as client, connected_worker(url, function) as worker:
        requests: Any = worker.protocol._http  # type: ignore[attr-defined]
        ask = requests.ask

        async def noted(method: str, path: str, *more: Any) -> Any:
            answer = await ask(method, path, *more)
            if path.partition("?")[0].endswith("/renew"):
                renewals.put_nowait(answer.checked())
            return answer

        requests.ask = noted
        listener = client.submit(function)
        job = await worker.job()
        for _ in range(5):
            await renewals.next()
        worker.complete(job, b"done")
        assert await listener.ending() == Completed(b"done")


@async_test
async def test_connection_that_the_server_closed_while_idle(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_IDLE_SECONDS", 0.0)
    async with connected_client(url) as client:
        for _ in range(3):
            await client.queued(new_name())
        assert client.lost.empty()


@async_test
async def test_foreground_job_has_no_handle(url: str) -> None:
    async with connected_client(url) as client:
        acceptance = await client.submit(new_name()).acceptance()
        with pytest.raises(ClientError, match="background"):
            await client.protocol.status(acceptance)


@async_test
async def test_web_server_that_is_not_geartrain() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")

    async with fake_server(answer) as port:
        url = f"http://127.0.0.1:{port}"
        with pytest.raises(ClientError, match="Geartrain"):
            await ClientEnd(url).open()
        with pytest.raises(ClientError, match="Geartrain"):
            await WorkerEnd(url).open(b"f")


def test_server_that_wants_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    @async_test
    async def scenario(url: str) -> None:
        async with connected_client(url) as client:
            with pytest.raises(RefusedError, match="token"):
                await client.queued(b"f")
        with pytest.raises(RefusedError, match="token"):
            await WorkerEnd(url).open(b"f")
        monkeypatch.setenv(TOKEN, "sesame-sesame-sesame")
        async with connected_client(url) as client, connected_worker(url, b"f") as worker:
            await client.queued(b"f")
            await worker.job()

    listen = ("--listen", "http://127.0.0.1:0")
    with serving.serve("--store", "memory", *listen, "--http-tokens", "submit+work:sesame-sesame-sesame") as server:
        scenario(server.url)
