"""The link for Periodic, against the real server, and with aio-periodic on the other side."""

import asyncio
import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from geartrain.address import parse
from geartrain.client.job_events import Completed, Data, Failed
from geartrain.client.order import Order
from geartrain.client.protocols import periodic
from geartrain.client.protocols.base import Assignment
from geartrain.client.protocols.periodic import session
from geartrain.errors import ClientError, NoWorkersError, RefusedError, ServerGoneError
from tests.interop import test_periodic as aio
from tests.support import periodic_peer, serving
from tests.support.link_parties import ClientParty, WorkerParty, client_of, fresh, stand_in, worker_of
from tests.support.periodic_peer import Command

VERSION = "1.0.0"
TOKEN = "GEARTRAIN_PERIODIC_TOKEN"


@pytest.fixture(scope="module")
def server() -> Iterator[serving.ServerProcess]:
    doors = ("--listen", "periodic://127.0.0.1:0", "--listen", "periodic+unix:///proc/self/cwd/door.sock")
    with serving.serve("--store", "memory", *doors) as running:
        yield running


@pytest.fixture(scope="module")
def url(server: serving.ServerProcess) -> str:
    return server.url


def knows(server: serving.ServerProcess, function: bytes, column: int, number: int) -> None:
    """The server counts so many workers (0), jobs (1) or running jobs (2) of a function."""
    with periodic_peer.Peer(server.port) as peer:
        periodic_peer.until(lambda: peer.status().get(function, [0] * 5)[column] == number, f"{number} in {column}")


@pytest.mark.parametrize("place", ["tcp", "unix"])
def test_a_job_with_parts(server: serving.ServerProcess, place: str) -> None:
    url = server.url if place == "tcp" else f"periodic+unix://{server.home}/door.sock"

    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client, worker_of(url, function, name="someone") as worker:
            await asyncio.to_thread(knows, server, function, 0, 1)
            order = client.submit(function, b"abc\0\xff")
            job = await worker.job()
            receipt = await order.receipt()
            assert (job.function, job.payload, job.unique) == (function, b"abc\0\xff", receipt.unique)
            for part in (b"one", b"EOF", b"", b"two"):
                worker.link.data(job, part)
            worker.link.progress(job, 1, 2)  # for which there is no word
            worker.link.complete(job, b"done")
            parts = [Data(b"one"), Data(b"EOF"), Data(b""), Data(b"two")]
            assert await order.events() == [*parts, Completed(b"done")]

    asyncio.run(scenario())


def test_a_failure_is_a_word(server: serving.ServerProcess, url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client, worker_of(url, function) as worker:
            await asyncio.to_thread(knows, server, function, 0, 1)
            order = client.submit(function)
            worker.link.fail(await worker.job(), "no such file", b"data", 7)
            assert await order.ending() == Failed("its worker failed")
            order = client.submit(function)
            worker.link.complete(await worker.job(), b"failed")
            assert await order.ending() == Failed("its worker failed")

    asyncio.run(scenario())


def test_nobody_offers_the_function(url: str) -> None:
    async def scenario() -> None:
        async with client_of(url) as client:
            with pytest.raises(NoWorkersError, match="nobody offers"):
                await client.submit(fresh()).receipt()

    asyncio.run(scenario())


def test_many_jobs_at_once(server: serving.ServerProcess, url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client, worker_of(url, function, concurrency=20) as worker:
            await asyncio.to_thread(knows, server, function, 0, 1)
            orders = [client.submit(function, b"%d" % number) for number in range(500)]
            running: list[Assignment] = []
            for _ in orders:
                running.append(await worker.job())
                assert len(running) <= 20
                if len(running) == 20:
                    for job in running:
                        worker.link.complete(job, job.payload * 2)
                    running.clear()
            for job in running:
                worker.link.complete(job, job.payload * 2)
            assert [await order.ending() for order in orders] == [Completed(b"%d" % n * 2) for n in range(500)]

    asyncio.run(scenario())


def test_a_name_is_replaced_while_it_waits(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client:
            for payload in (b"one", b"two", b"three"):
                receipt = await client.submit(function, payload, background=True, unique=b"key").receipt()
                assert (receipt.handle, receipt.unique) == (b"key", b"key")
            async with worker_of(url, function) as worker:
                job = await worker.job()
                assert (job.payload, job.unique) == (b"three", b"key")
                worker.link.complete(job, b"")

    asyncio.run(scenario())


def test_jobs_without_a_key_are_different_jobs(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client, client_of(url) as other:
            for party in (client, client, other):
                await party.submit(function, background=True).receipt()
            async with worker_of(url, function, concurrency=3) as worker:
                assert len({(await worker.job()).unique for _ in range(3)}) == 3

    asyncio.run(scenario())


def test_a_time_and_a_removal(server: serving.ServerProcess, url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client, worker_of(url, function) as worker:
            receipt = await client.submit(function, background=True, run_at=time.time() + 3600).receipt()
            await asyncio.to_thread(knows, server, function, 1, 1)
            assert await client.link.cancel(receipt)
            await asyncio.to_thread(knows, server, function, 1, 0)
            soon = await client.submit(function, b"soon", background=True, run_at=time.time() + 0.5).receipt()
            assert (await worker.job()).unique == soon.unique

    asyncio.run(scenario())


def test_a_job_that_is_removed_while_somebody_waits(server: serving.ServerProcess, url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client, worker_of(url, function) as worker:
            await asyncio.to_thread(knows, server, function, 0, 1)
            order = client.submit(function)
            job = await worker.job()
            assert await client.link.cancel(await order.receipt())
            assert await order.ending() == Failed("it was removed")
            worker.link.complete(job, b"in vain")
            order = client.submit(function)
            worker.link.complete(await worker.job(), b"not in vain")
            assert await order.ending() == Completed(b"not in vain")

    asyncio.run(scenario())


def test_a_job_that_takes_too_long(server: serving.ServerProcess, url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client, worker_of(url, function) as worker:
            await asyncio.to_thread(knows, server, function, 0, 1)
            order = client.submit(function, timeout=0.5)  # which is a second here
            await worker.job()
            assert await order.ending() == Failed("it was not finished in its time")

    asyncio.run(scenario())


def test_a_job_is_put_off_or_tried_again(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client, worker_of(url, function) as worker:
            await client.submit(function, b"1", background=True).receipt()
            worker.link.reschedule(await worker.job(), 0.0)
            worker.link.fail(await worker.job(), "at first")
            job = await worker.job()
            assert job.payload == b"1"
            worker.link.complete(job, b"")

    asyncio.run(scenario())


def test_functions_come_and_go_while_a_job_runs(server: serving.ServerProcess, url: str) -> None:
    async def scenario() -> None:
        first, second = fresh(), fresh()
        async with client_of(url) as client, worker_of(url, first, concurrency=2) as worker:
            await asyncio.to_thread(knows, server, first, 0, 1)
            order = client.submit(first)
            job = await worker.job()
            worker.link.unregister(first)
            worker.link.register(second, 0.0)
            await client.submit(first, background=True).receipt()
            await client.submit(second, background=True).receipt()
            other = await worker.job()
            assert other.function == second
            worker.link.complete(other, b"")
            worker.link.complete(job, b"done")
            assert await order.ending() == Completed(b"done")
            await asyncio.to_thread(knows, server, first, 0, 0)
            assert worker.jobs.empty()
            async with worker_of(url, first) as another:
                assert (await another.job()).function == first

    asyncio.run(scenario())


def test_a_worker_that_rests_finishes_what_it_has(server: serving.ServerProcess, url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client, worker_of(url, function, concurrency=3) as worker:
            await client.submit(function, b"runs", background=True).receipt()
            job = await worker.job()
            worker.link.stop_fetching()
            await worker.link.fetching_stopped()
            await client.submit(function, b"is left to others", background=True).receipt()
            async with worker_of(url, function) as another:
                assert (await another.job()).payload == b"is left to others"
                worker.link.complete(job, b"done")
                await asyncio.to_thread(knows, server, function, 0, 1)
            assert worker.jobs.empty()

    asyncio.run(scenario())


def test_a_job_that_somebody_else_takes_care_of(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client, worker_of(url, function) as worker:
            receipts = [await client.submit(function, background=True).receipt() for _ in range(2)]
            job = await worker.job()
            assert await client.link.cancel(receipts[0])
            worker.link.release(job)
            assert (await worker.job()).unique == receipts[1].unique

    asyncio.run(scenario())


def test_everybody_hears_that_the_server_is_gone() -> None:
    async def scenario() -> None:
        with serving.serve("--store", "memory", "--listen", "periodic://127.0.0.1:0") as server:
            function = fresh()
            async with client_of(server.url) as client, worker_of(server.url, function, concurrency=2) as worker:
                await asyncio.to_thread(knows, server, function, 0, 1)
                waiting = client.submit(function)
                await worker.job()
                receipt = await waiting.receipt()
                await asyncio.to_thread(server.kill)
                assert isinstance(await waiting.ending(), Exception)
                with pytest.raises(ServerGoneError):
                    await client.link.cancel(receipt)
                await client.lost.next()
                await worker.lost.next()
                assert client.lost.empty()
                assert worker.lost.empty()

    asyncio.run(scenario())


def test_a_server_that_does_not_answer_pings_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "PING_SECONDS", 0.05)
    pings = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal pings
        await reader.readexactly(13)
        writer.write(periodic_peer.frame(periodic_peer.Dialect.TODAY, b"\x1eabcd", b"\0RES"))
        while frame := await reader.read(17):
            assert frame[16] == Command.PING
            pings += 1
            if pings < 3:
                pong = frame[12:16] + bytes([Command.PONG])
                writer.write(periodic_peer.frame(periodic_peer.Dialect.TODAY, pong, b"\0RES"))

    async def scenario() -> None:
        async with stand_in(answer) as port, client_of(f"periodic://127.0.0.1:{port}") as client:
            assert "ping" in str(await client.lost.next())
            assert pings == 3

    asyncio.run(scenario())


def test_a_worker_has_a_name_unless_the_server_knows_none() -> None:
    """Servers before 1.2.9 hang up on a worker that says its name."""
    kinds: list[int] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        header = await reader.readexactly(12)
        kinds.append((await reader.readexactly(int.from_bytes(header[4:8], "big")))[0])
        if kinds[-1] == 2:
            writer.write(periodic_peer.frame(periodic_peer.Dialect.TODAY, b"\x1eabcd", b"\0RES"))
            ping = await reader.readexactly(17)
            pong = ping[12:16] + bytes([Command.PONG])
            writer.write(periodic_peer.frame(periodic_peer.Dialect.TODAY, pong, b"\0RES"))
            await reader.read()

    async def scenario() -> None:
        async with stand_in(answer) as port, worker_of(f"periodic://127.0.0.1:{port}", b"f", name="somebody"):
            assert kinds == [4, 2]

    asyncio.run(scenario())


def test_a_server_that_wants_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(url: str) -> None:
        with pytest.raises(RefusedError, match=TOKEN):
            await ClientParty(url).link.open()
        with pytest.raises(RefusedError, match=TOKEN):
            await WorkerParty(url).link.open({b"f": 0.0})
        monkeypatch.setenv(TOKEN, "open sesame")
        async with client_of(url) as client, worker_of(url, b"f") as worker:
            await client.submit(b"f", background=True).receipt()
            await worker.job()

    with serving.serve(
        "--store", "memory", "--listen", "periodic://127.0.0.1:0", "--periodic-token", "open sesame"
    ) as server:
        asyncio.run(scenario(server.url))


def test_what_is_no_server_is_noticed_at_once() -> None:
    async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async def scenario() -> None:
        async with stand_in(hello) as port:
            place = f"periodic://127.0.0.1:{port}"
            with pytest.raises(Exception, match="MAGIC"):
                await ClientParty(place).link.open()
            with pytest.raises(Exception, match="MAGIC"):
                await WorkerParty(place).link.open({b"f": 0.0})

    asyncio.run(scenario())


def test_names_have_a_length_of_one_byte(url: str) -> None:
    objection = periodic.Client.unsupported_reason
    assert "255" in objection(Order(b"f" * 256))
    assert "255" in objection(Order(b"f", unique=b"k" * 256))
    assert objection(Order(b"f" * 255, unique=b"k" * 255)) == ""

    async def scenario() -> None:
        with pytest.raises(ClientError, match="255"):
            await WorkerParty(url).link.open({b"f" * 256: 0.0})

    asyncio.run(scenario())


# aio-periodic


@pytest.fixture(scope="module")
def entrypoint(server: serving.ServerProcess) -> str:
    return f"tcp://127.0.0.1:{parse(server.url).port}"


@pytest.fixture(scope="module")
def stack() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack


def _home(stack: contextlib.ExitStack) -> Path:
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="geartrain-peer-")))


@pytest.mark.peer(f"aio-periodic-{VERSION}")
def test_our_client_with_a_worker_of_aio_periodic(url: str, entrypoint: str, stack: contextlib.ExitStack) -> None:
    peer = aio.Worker(VERSION, _home(stack), entrypoint, "aio")
    stack.callback(peer.kill)

    async def scenario() -> None:
        async with client_of(url) as client:
            assert await client.submit(b"aio-echo", b"hello").ending() == Completed(b"R:hello")
            await client.submit(b"aio-echo", b"later", background=True, unique=b"named").receipt()
            await asyncio.to_thread(peer.ran, "echo", "named")
            order = client.submit(b"aio-parts", unique=b"streamed")
            for part in (b"one", b"two"):
                peer.let_pass("streamed")
                assert await order.heard.next() == Data(part)
            peer.let_pass("streamed")
            assert await order.ending() == Completed(b"whole")

    asyncio.run(scenario())


@pytest.mark.peer(f"aio-periodic-{VERSION}")
def test_our_worker_with_a_client_of_aio_periodic(
    server: serving.ServerProcess, url: str, entrypoint: str, stack: contextlib.ExitStack
) -> None:
    peer = aio.Client(VERSION, "client.py", _home(stack), entrypoint)
    stack.callback(peer.kill)

    async def scenario() -> None:
        function = fresh("ours")
        async with worker_of(url, function) as worker:
            await asyncio.to_thread(knows, server, function, 0, 1)
            number = peer.begin("run", function.decode(), "name", workload="abc")
            job = await worker.job()
            assert (job.payload, job.unique) == (b"abc", b"name")
            worker.link.data(job, b"a part that was not asked for")
            worker.link.complete(job, b"whole")
            assert await asyncio.to_thread(peer.result, number) == "whole"
            number = peer.begin("run", function.decode(), "another", workload="x")
            worker.link.fail(await worker.job(), "cannot be said")
            assert await asyncio.to_thread(peer.result, number) == "failed"

    asyncio.run(scenario())
