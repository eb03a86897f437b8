"""The link for the HTTP API, against the real server."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

from geartrain.client.job_events import Completed, Data, Failed, Progressed, Warned
from geartrain.client.order import Order, Status
from geartrain.client.protocols import http
from geartrain.client.protocols.base import Assignment
from geartrain.client.protocols.http import exchange
from geartrain.errors import ClientError, RefusedError, ServerGoneError
from geartrain.model import Priority
from tests.support import serving
from tests.support.link_parties import ClientParty, Heard, WorkerParty, client_of, fresh, stand_in, worker_of

TOKEN = "GEARTRAIN_HTTP_TOKEN"


@pytest.fixture(scope="module")
def server() -> Iterator[serving.ServerProcess]:
    doors = ("--listen", "http://127.0.0.1:0", "--listen", "gearman://127.0.0.1:0")
    with serving.serve("--store", "memory", "--max-attempts", "2", *doors) as running:
        yield running


@pytest.fixture(scope="module")
def url(server: serving.ServerProcess) -> str:
    return server.urls[0]


@pytest.fixture(scope="module")
def gearman(server: serving.ServerProcess) -> str:
    return server.urls[1]


def test_a_job(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client, worker_of(url, function, name="someone") as worker:
            for payload in (b"plain", b"\0\xff", b""):
                order = client.submit(function, payload, unique=b"key")
                job = await worker.job()
                assert (job.function, job.payload, job.unique) == (function, payload, b"key")
                worker.link.complete(job, payload[::-1])
                assert await order.events() == [Completed(payload[::-1])]

    asyncio.run(scenario())


def test_what_a_worker_says_arrives_in_order(url: str, gearman: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(gearman) as client, worker_of(url, function) as worker:
            order = client.submit(function)
            job = await worker.job()
            worker.link.data(job, b"one")
            worker.link.warn(job, b"careful")
            worker.link.progress(job, 0.5, 1)
            worker.link.data(job, b"two")
            worker.link.complete(job, b"whole")
            said = [Data(b"one"), Warned(b"careful"), Progressed(500, 1000), Data(b"two"), Completed(b"whole")]
            assert await order.events() == said

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("words", "ending"),
    [
        ({"reason": "no such file"}, Failed("no such file", 1, b"no such file")),
        ({"reason": "x", "data": b"\xff", "code": 77}, Failed("\ufffd", 77, b"\xff")),
        ({"reason": "", "code": 900}, Failed("", 255, b"")),
    ],
)
def test_a_failure_has_a_code_and_words(url: str, words: dict[str, object], ending: Failed) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client, worker_of(url, function) as worker:
            order = client.submit(function)
            worker.link.fail(await worker.job(), **words)  # type: ignore[arg-type]
            heard = await order.ending()
            assert (heard.code, heard.data) == (ending.code, ending.data)
            assert heard.reason == ending.reason

    asyncio.run(scenario())


def test_many_jobs_at_once(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client, worker_of(url, function, concurrency=10) as worker:
            orders = [client.submit(function, b"%d" % number) for number in range(100)]
            for _ in orders:
                job = await worker.job()
                worker.link.complete(job, job.payload * 2)
            assert [await order.ending() for order in orders] == [Completed(b"%d" % n * 2) for n in range(100)]

    asyncio.run(scenario())


def test_a_background_job_its_status_and_its_result(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client:
            words = {"background": True, "unique": b"key", "priority": Priority.HIGH, "timeout": 60.0}
            receipt = await client.submit(function, b"abc", **words).receipt()
            assert receipt.handle.startswith(b"H:")
            assert await client.link.status(receipt) == Status(True)
            waiting = asyncio.create_task(client.link.result(receipt))
            async with worker_of(url, function) as worker:
                job = await worker.job()
                worker.link.progress(job, 3, 4)
                while (status := await client.link.status(receipt)).denominator == 0:
                    await asyncio.sleep(0)
                assert status == Status(True, True, 3, 4)
                worker.link.complete(job, b"\xffcba")
                assert await waiting == Completed(b"\xffcba")
            assert await client.link.status(receipt) == Status(False)
            assert await client.link.result(receipt) == Completed(b"\xffcba")
            assert not await client.link.cancel(receipt)

    asyncio.run(scenario())


def test_a_job_is_cancelled(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client:
            receipt = await client.submit(function, background=True, run_at=time.time() + 3600).receipt()
            assert await client.link.cancel(receipt)
            assert isinstance(await client.link.result(receipt), Failed)

    asyncio.run(scenario())


def test_a_job_that_nobody_waits_for_any_more_is_dropped(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client:
            forgotten = client.submit(function, b"forgotten")
            first = await client.submit(function, b"first", background=True).receipt()
            client.link.forget(forgotten)
            async with worker_of(url, function) as worker:
                ran = []
                while b"last" not in ran:
                    if ran:
                        await client.submit(function, b"last", background=True).receipt()
                    job = await worker.job()
                    ran.append(job.payload)
                    worker.link.complete(job, b"")
                assert await client.link.result(first) == Completed(b"")
                assert forgotten.heard.empty()

    asyncio.run(scenario())


def test_a_job_is_put_off(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client, worker_of(url, function) as worker:
            receipt = await client.submit(function, background=True).receipt()
            worker.link.reschedule(await worker.job(), 0.01)
            worker.link.complete(await worker.job(), b"at the second time")
            assert await client.link.result(receipt) == Completed(b"at the second time")

    asyncio.run(scenario())


def test_functions_come_and_go_while_a_job_runs(url: str) -> None:
    async def scenario() -> None:
        first, second = fresh(), fresh()
        async with client_of(url) as client, worker_of(url, first, concurrency=2) as worker:
            order = client.submit(first)
            job = await worker.job()
            worker.link.unregister(first)
            worker.link.register(second, 0.0)
            other = client.submit(second)
            another = await worker.job()
            assert another.function == second
            worker.link.complete(another, b"also done")
            worker.link.complete(job, b"done")
            assert await order.ending() == Completed(b"done")
            assert await other.ending() == Completed(b"also done")
            unwanted = client.submit(first)
            worker.link.unregister(second)
            async with worker_of(url, first) as somebody:
                somebody.link.complete(await somebody.job(), b"by another")
                assert await unwanted.ending() == Completed(b"by another")
            assert worker.jobs.empty()
            assert worker.lost.empty()

    asyncio.run(scenario())


def test_a_worker_that_rests_finishes_what_it_has(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client, worker_of(url, function, concurrency=3) as worker:
            order = client.submit(function)
            job = await worker.job()
            worker.link.stop_fetching()
            await worker.link.fetching_stopped()
            left = client.submit(function)
            async with worker_of(url, function) as another:
                another.link.complete(await another.job(), b"by another")
                assert await left.ending() == Completed(b"by another")
            worker.link.complete(job, b"done")
            assert await order.ending() == Completed(b"done")
            assert worker.jobs.empty()
            assert worker.lost.empty()

    asyncio.run(scenario())


def test_an_idle_worker_rests_at_once(url: str) -> None:
    async def scenario() -> None:
        async with worker_of(url, fresh(), concurrency=3) as worker:
            worker.link.stop_fetching()
            await worker.link.fetching_stopped()
            assert worker.lost.empty()

    asyncio.run(scenario())


def test_a_job_that_was_taken_back(url: str, gearman: str) -> None:
    """A worker hears of it when it reports next."""

    class Revocable(WorkerParty):
        def revoked(self, job: Assignment) -> None:
            self.jobs.put_nowait(job)

    async def scenario() -> None:
        function = fresh()
        async with client_of(gearman) as client:
            worker = Revocable(url)
            await worker.link.open({function: 0.0})
            order = client.submit(function)
            job = await worker.job()
            assert await client.link.cancel(await order.receipt())
            worker.link.progress(job, 1, 2)
            assert await worker.job() is job
            worker.link.release(job)
            order = client.submit(function)
            worker.link.complete(await worker.job(), b"the next")
            assert await order.ending() == Completed(b"the next")
            await worker.link.close()

    asyncio.run(scenario())


def test_what_runs_when_a_worker_is_closed_goes_back(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client:
            order = client.submit(function)
            async with worker_of(url, function) as worker:
                await worker.job()
            async with worker_of(url, function) as worker:
                worker.link.complete(await worker.job(), b"by another")
                assert await order.ending() == Completed(b"by another")

    asyncio.run(scenario())


def test_a_worker_is_heard_of_while_its_job_takes_long() -> None:
    """The lease is a second, and a third of it passes between two signs of life."""

    async def scenario(url: str) -> None:
        function = fresh()
        heard = Heard()
        async with client_of(url) as client, worker_of(url, function) as worker:
            ask = worker.link._exchange.ask

            async def noted(method: str, path: str, *more: Any) -> Any:
                answer = await ask(method, path, *more)
                if path.endswith("/renew"):
                    heard.put_nowait(answer.checked())
                return answer

            worker.link._exchange.ask = noted
            order = client.submit(function)
            job = await worker.job()
            for _ in range(5):
                await heard.next()
            worker.link.complete(job, b"done")
            assert await order.ending() == Completed(b"done")

    with serving.serve("--store", "memory", "--listen", "http://127.0.0.1:0", "--http-worker-lease", "1s") as server:
        asyncio.run(scenario(server.url))


def test_everybody_hears_that_the_server_is_gone() -> None:
    async def scenario() -> None:
        with serving.serve("--store", "memory", "--listen", "http://127.0.0.1:0") as server:
            function = fresh()
            # Two jobs run, and a third claim waits: without one the loss is noticed when the lease is renewed.
            async with client_of(server.url) as client, worker_of(server.url, function, concurrency=3) as worker:
                waiting = client.submit(function)
                await worker.job()
                receipt = await client.submit(function, background=True).receipt()
                later = asyncio.create_task(client.link.result(receipt))
                await asyncio.to_thread(server.kill)
                assert isinstance(await waiting.ending(), Exception)
                with pytest.raises(ServerGoneError):
                    await later
                await client.lost.next()
                await worker.lost.next()
                assert client.lost.empty()
                assert worker.lost.empty()

    asyncio.run(scenario())


def test_a_server_that_wants_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(url: str) -> None:
        async with client_of(url) as client:
            with pytest.raises(RefusedError, match="token"):
                await client.submit(b"f", background=True).receipt()
        with pytest.raises(RefusedError, match="token"):
            await WorkerParty(url).link.open({b"f": 0.0})
        monkeypatch.setenv(TOKEN, "sesame-sesame-sesame")
        async with client_of(url) as client, worker_of(url, b"f") as worker:
            await client.submit(b"f", background=True).receipt()
            await worker.job()

    listen = ("--listen", "http://127.0.0.1:0")
    with serving.serve("--store", "memory", *listen, "--http-tokens", "submit+work:sesame-sesame-sesame") as server:
        asyncio.run(scenario(server.url))


def test_what_is_no_server_is_noticed_at_once() -> None:
    async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"220 mail.example.org ready\r\n")

    async def another(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")

    async def scenario() -> None:
        for answer, complaint in ((hello, "HTTP"), (another, "Geartrain")):
            async with stand_in(answer) as port:
                with pytest.raises(Exception, match=complaint):
                    await ClientParty(f"http://127.0.0.1:{port}").link.open()
                with pytest.raises(Exception, match=complaint):
                    await WorkerParty(f"http://127.0.0.1:{port}").link.open({b"f": 0.0})

    asyncio.run(scenario())


def test_a_connection_that_was_closed_while_idle_is_not_missed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "_IDLE_SECONDS", 0.0)

    async def scenario() -> None:
        async with client_of(url) as client:
            for _ in range(3):
                await client.submit(fresh(), background=True).receipt()
            assert client.lost.empty()

    asyncio.run(scenario())


def test_a_job_that_is_waited_for_has_no_handle(url: str) -> None:
    assert http.Client.unsupported_reason(Order(b"")) != ""
    assert http.Client.unsupported_reason(Order(b"\xff\0")) == ""

    async def scenario() -> None:
        async with client_of(url) as client:
            receipt = await client.submit(fresh()).receipt()
            with pytest.raises(ClientError, match="background"):
                await client.link.status(receipt)

    asyncio.run(scenario())
