"""Opening and closing, lost connections, servers that violate the protocol, cancelled calls."""

import asyncio
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from geartrain import address
from geartrain.client.job_events import Completed
from geartrain.client.order import Acceptance
from geartrain.client.server_pool import CONNECTION_ERRORS
from geartrain.errors import ClientError, ServerGoneError
from tests.contract.protocols import targets
from tests.contract.protocols.targets import Target, Urls, only
from tests.support import certificates
from tests.support.protocol_ends import (
    PATIENCE,
    ClientEnd,
    WorkerEnd,
    async_test,
    connected_client,
    connected_worker,
    fake_server,
    new_name,
)
from tests.support.relay import relayed

on_tcp = only(lambda target: target.scheme in address.TLS_SCHEMES and target.server == "geartrain")


def ends(url: str) -> tuple[ClientEnd, WorkerEnd]:
    return ClientEnd(url), WorkerEnd(url, concurrency=3)


async def opened(end: ClientEnd | WorkerEnd) -> None:
    async with asyncio.timeout(PATIENCE):
        await (end.open(b"f") if isinstance(end, WorkerEnd) else end.open())


def questions(client: ClientEnd, acceptance: Acceptance) -> list[asyncio.Task[object]]:
    """Everything that its protocol lets it ask about a job."""
    names = {"status": "status", "cancel": "cancel", "result_later": "result"}
    asked = [method for capability, method in names.items() if getattr(client.can, capability)]
    return [asyncio.create_task(getattr(client.protocol, method)(acceptance)) for method in asked]


@async_test
async def test_close_is_silent_and_may_be_repeated(url: str) -> None:
    for end in ends(url):
        await opened(end)
        await end.close()
        await end.close()
        assert end.lost.empty()


@async_test
async def test_close_without_open(url: str) -> None:
    for end in ends(url):
        await end.close()
        assert end.lost.empty()


@async_test
async def test_close_with_unfinished_jobs_and_questions(url: str) -> None:
    """Listeners hear nothing, and questions end with an error."""
    function = new_name()
    async with connected_worker(url, function) as worker:
        client = ClientEnd(url)
        await client.open()
        await client.accepted(function)
        await worker.job()
        background = await (await client.queued(function)).acceptance()
        client.submit(function)
        tasks = questions(client, background)
        await client.close()
        async with asyncio.timeout(PATIENCE):
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(outcome, CONNECTION_ERRORS) for outcome in outcomes if isinstance(outcome, Exception)), (
            outcomes
        )
        assert client.lost.empty()


@on_tcp
@async_test
async def test_nobody_listens(target: Target) -> None:
    async with fake_server(_ignore) as port:
        pass
    for end in ends(f"{target.scheme}://127.0.0.1:{port}"):
        with pytest.raises((OSError, ClientError)):
            await opened(end)
        await end.close()
        assert end.lost.empty()


async def _ignore(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)


@on_tcp
@pytest.mark.parametrize(
    "answer",
    [b"220 mail.example.org ESMTP\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\xff" * 99, b""],
    ids=["mail", "web", "binary", "end"],
)
@async_test
async def test_server_of_another_protocol_is_noticed_when_opening(target: Target, answer: bytes) -> None:
    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)

    async with fake_server(reply) as port:
        for end in ends(f"{target.scheme}://127.0.0.1:{port}"):
            with pytest.raises(CONNECTION_ERRORS) as raised:
                await opened(end)
            assert str(raised.value)
            assert end.lost.empty()
            await end.close()


@on_tcp
@async_test
async def test_cancelled_open_leaves_no_connection(target: Target) -> None:
    connected, disconnected = asyncio.Semaphore(0), asyncio.Semaphore(0)

    async def never_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected.release()
        await reader.read()
        disconnected.release()

    async with fake_server(never_answer) as port:
        for end in ends(f"{target.scheme}://127.0.0.1:{port}"):
            opening = asyncio.create_task(opened(end))
            await connected.acquire()
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening
            async with asyncio.timeout(PATIENCE):
                await disconnected.acquire()
            assert end.lost.empty()


@pytest.mark.parametrize("how", ["dropped", "nonsense"])
@async_test
async def test_lost_connection_is_reported_to_every_listener(
    target: Target, url: str, how: str, tmp_path: Path
) -> None:
    """Listeners hear `gone`, then `lost` is called. Questions end, also those that are asked later."""
    function = new_name()
    async with relayed(url, tmp_path) as relay:
        client, worker = ClientEnd(relay.url), WorkerEnd(relay.url, concurrency=3)
        await client.open()
        await worker.open(function)
        listeners = [await client.accepted(function) for _ in range(2)]
        job, _ = await worker.job(), await worker.job()
        background = await client.queued(new_name())
        tasks = questions(client, await background.acceptance())
        if how == "dropped":
            await relay.cut()
        else:
            relay.inject(target.nonsense)
        for listener in listeners:
            assert isinstance(await listener.ending(), CONNECTION_ERRORS)
        assert str(await client.lost.next())
        assert str(await worker.lost.next())
        assert client.calls.count("gone") == (2 if client.can.background else 3)
        assert client.calls[-1] == "lost"
        tasks += questions(client, await background.acceptance())
        async with asyncio.timeout(PATIENCE):
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(outcome, CONNECTION_ERRORS) for outcome in outcomes if isinstance(outcome, Exception)), (
            outcomes
        )
        worker.release(job)  # the one call that may come after `lost`: nobody has to close what was lost


@async_test
async def test_lost_connection_of_an_idle_client(url: str, tmp_path: Path) -> None:
    """It hears of it when it submits the next job, at the latest."""
    async with relayed(url, tmp_path) as relay:
        client = ClientEnd(relay.url)
        await client.open()
        await relay.cut()
        if client.lost.empty():
            client.submit(new_name())
        assert str(await client.lost.next())


@only(lambda target: target.scheme == "danga")
@async_test
async def test_submission_after_the_connection_is_lost(url: str, tmp_path: Path) -> None:
    """Nobody else tells its listener."""
    async with relayed(url, tmp_path) as relay:
        client = ClientEnd(relay.url)
        await client.open()
        await relay.cut()
        await client.lost.next()
        for background in (False, True):
            with pytest.raises(ServerGoneError):
                await client.submit(new_name(), background=background).acceptance()


@only(lambda target: target.can.status or target.can.cancel or target.can.result_later)
@async_test
async def test_cancelled_question_leaves_nothing_behind(target: Target, url: str) -> None:
    """The answers to those that follow are still their own."""
    function, other = new_name(), new_name()
    async with connected_client(url) as client:
        abandoned = await (await client.queued(other)).acceptance()
        waiting = await (await client.queued(function)).acceptance()
        for turns in range(3):
            tasks = questions(client, abandoned)
            for _ in range(turns):
                await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if target.can.status:
            assert (await client.protocol.status(waiting)).known
        async with connected_worker(url, function) as worker:
            listener = await client.accepted(function)
            for _ in range(2):
                worker.complete(await worker.job(), b"done")
            assert await listener.ending() == Completed(b"done")


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificates.self_signed(tmp_path_factory.mktemp("tls")).both


@pytest.fixture(scope="session")
def tls_urls(certificate: Path) -> Iterator[Urls]:
    doors = [
        address.parse(door)._replace(tls=True)
        for door in targets.DOORS
        if address.parse(door).scheme in address.TLS_SCHEMES
    ]
    with targets.geartrain("--tls-certificate", str(certificate), doors=map(str, doors)) as urls:
        yield urls


@on_tcp
@async_test
async def test_tls(target: Target, tls_urls: Urls, certificate: Path) -> None:
    url, function = tls_urls[address.TLS_SCHEMES[target.scheme]], new_name()
    trusted = ssl.create_default_context(cafile=str(certificate))
    async with connected_client(url, trusted) as client, connected_worker(url, function, tls=trusted) as worker:
        listener = await client.accepted(function, b"x" * 1_000_000)
        job = await worker.job()
        worker.complete(job, job.payload)
        assert await listener.ending() == Completed(b"x" * 1_000_000)
    for end in (ClientEnd(url, ssl.create_default_context()), WorkerEnd(url, tls=ssl.create_default_context())):
        with pytest.raises(CONNECTION_ERRORS, match="certificate"):
            await opened(end)
        await end.close()
