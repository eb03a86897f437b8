"""The link for the 2005 draft, against the real server."""

import asyncio
from collections.abc import Iterator

import pytest

from geartrain.address import parse
from geartrain.client.job_events import Completed, Failed, Progressed
from geartrain.client.order import Acceptance, Order, Status
from geartrain.client.protocols import danga
from geartrain.errors import RefusedError, ServerGoneError
from tests.support import danga_peer, serving
from tests.support.link_parties import ClientParty, OrderSink, WorkerParty, client_of, fresh, stand_in, until, worker_of


@pytest.fixture(scope="module")
def server() -> Iterator[serving.ServerProcess]:
    with serving.serve("--store", "memory", "--listen", "danga://127.0.0.1:0", "--max-attempts", "2") as running:
        yield running


@pytest.fixture(scope="module")
def url(server: serving.ServerProcess) -> str:
    return server.url


async def working(worker: WorkerParty) -> None:
    """Its lanes are asleep, or busy: the server knows what it offers."""
    await until(
        lambda: not any(connection.asking for connection in worker.link.connections), "its lanes have been answered"
    )


def test_a_job_with_progress(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client, worker_of(url, function) as worker:
            order = client.submit(function, b"abc\0\xff")
            job = await worker.job()
            assert (job.function, job.payload) == (function, b"abc\0\xff")
            worker.link.progress(job, 1, 2)
            worker.link.progress(job, 0.75, 1)
            worker.link.complete(job, b"done")
            assert await order.events() == [Progressed(1, 2), Progressed(750, 1000), Completed(b"done")]
            assert (await order.receipt()).handle.startswith(b"H:")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("words", "ending"),
    [
        ({"reason": "no such file"}, Failed("no such file", 1, b"no such file")),
        ({"reason": "x", "data": b"\xff", "code": 77}, Failed("�", 77, b"\xff")),
        ({"reason": "", "code": 900}, Failed("it failed with code 255", 255, b"")),
        ({"reason": "", "code": 0}, Failed("it failed with code 1", 1, b"")),
    ],
)
def test_a_failure_has_a_code_and_words(url: str, words: dict[str, object], ending: Failed) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client, worker_of(url, function) as worker:
            order = client.submit(function)
            worker.link.fail(await worker.job(), **words)  # type: ignore[arg-type]
            assert await order.ending() == ending

    asyncio.run(scenario())


def test_many_jobs_are_waited_for_at_once(url: str) -> None:
    """Each has a lane, and more than there are lanes wait for one."""

    async def scenario() -> None:
        function = fresh()
        count = 300
        async with client_of(url) as client, worker_of(url, function, concurrency=20) as worker:
            orders = [client.submit(function, b"%d" % number) for number in range(count)]
            for _ in range(count):
                job = await worker.job()
                worker.link.complete(job, job.payload * 2)
            endings = [await order.ending() for order in orders]
            assert endings == [Completed(b"%d" % number * 2) for number in range(count)]

    asyncio.run(scenario())


def test_the_result_of_a_background_job(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client:
            order = client.submit(function, b"abc", background=True, unique=b"key")
            receipt = await order.receipt()
            assert (receipt.function, receipt.unique) == (function, b"key")
            assert await client.link.status(receipt) == Status(True)
            waiting = asyncio.create_task(client.link.result(receipt))
            async with worker_of(url, function) as worker:
                job = await worker.job()
                worker.link.progress(job, 3, 4)
                while not (status := await client.link.status(receipt)).running:
                    await asyncio.sleep(0)
                assert status == Status(True, True, 3, 4)
                worker.link.complete(job, b"cba")
                assert await waiting == Completed(b"cba")
            assert await client.link.status(receipt) == Status(False)

    asyncio.run(scenario())


def test_a_job_that_is_given_up_has_failed(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client:
            receipt = await client.submit(function, background=True).receipt()
            for _ in range(2):
                async with worker_of(url, function) as worker:
                    await worker.job()
            assert await client.link.result(receipt) == Failed("it failed with code 255", 255, b"")

    asyncio.run(scenario())


def test_equal_keys_share_a_job(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client:
            orders = [client.submit(function, b"%d" % number, unique=b"one") for number in range(3)]
            receipts = [await order.receipt() for order in orders]
            assert len({receipt.handle for receipt in receipts}) == 1
            async with worker_of(url, function) as worker:
                worker.link.complete(await worker.job(), b"once")
                assert [await order.ending() for order in orders] == [Completed(b"once")] * 3
                assert worker.jobs.empty()

    asyncio.run(scenario())


def test_a_job_that_nobody_waits_for_any_more_is_dropped(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client:
            forgotten = client.submit(function, b"forgotten")
            await forgotten.receipt()
            wanted = client.submit(function, b"wanted", background=True)
            await wanted.receipt()
            client.link.forget(forgotten)
            early = client.submit(function, b"never said")
            client.link.forget(early)  # while its lane is being opened
            with danga_peer.Peer(int(url.rpartition(":")[2])) as probe:  # it has heard of the end of the lane by then
                assert await asyncio.to_thread(probe.status, b"") == (0, 0, 0)
            async with worker_of(url, function) as worker:
                assert (await worker.job()).payload == b"wanted"

    asyncio.run(scenario())


def test_a_queue_that_is_full_refuses(url: str) -> None:
    """An empty handle, which the peer of this test says in the server's place."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while header := await reader.read(9):
            body = await reader.readexactly(int.from_bytes(header[5:], "big"))
            if header[4] == danga_peer.Kind.JOB_STATUS_REQ:
                writer.write(danga_peer.packet(danga_peer.Kind.JOB_STATUS_RES, bytes(12), danga_peer.RESPONSE))
            else:
                assert body.startswith(b"full\0")
                writer.write(danga_peer.packet(danga_peer.Kind.JOB_CREATE_RES, b"", danga_peer.RESPONSE))

    async def scenario() -> None:
        async with stand_in(refuse) as port, client_of(f"danga://127.0.0.1:{port}") as client:
            for background in (False, True):
                with pytest.raises(RefusedError, match="queue is full"):
                    await client.submit(b"full", background=background).receipt()

    asyncio.run(scenario())


def test_functions_come_and_go_while_a_job_runs(url: str) -> None:
    async def scenario() -> None:
        first, second = fresh(), fresh()
        async with client_of(url) as client, worker_of(url, first) as worker:
            order = client.submit(first, b"1")
            job = await worker.job()
            worker.link.unregister(first)
            worker.link.register(second, 0.0)
            other = client.submit(second, b"2")
            unwanted = client.submit(first, b"3")
            worker.link.complete(job, b"done")
            assert await order.ending() == Completed(b"done")
            job = await worker.job()
            assert job.function == second
            worker.link.complete(job, b"also done")
            assert await other.ending() == Completed(b"also done")
            await working(worker)
            worker.link.unregister(second)  # while it is asleep
            worker.link.register(first, 0.0)
            worker.link.complete(await worker.job(), b"in the end")
            assert await unwanted.ending() == Completed(b"in the end")

    asyncio.run(scenario())


def test_a_worker_that_rests_finishes_what_it_has(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client, worker_of(url, function, concurrency=3) as worker:
            order = client.submit(function, b"runs")
            job = await worker.job()
            await working(worker)
            worker.link.stop_fetching()
            await worker.link.fetching_stopped()
            left = client.submit(function, b"is left to others")
            await left.receipt()
            worker.link.complete(job, b"done")
            assert await order.ending() == Completed(b"done")
            await until(lambda: not worker.link.connections, "every lane has left")
            assert worker.jobs.empty()
            assert worker.lost.empty()

    asyncio.run(scenario())


def test_a_job_that_is_released_goes_back(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client, worker_of(url, function) as worker:
            order = client.submit(function)
            worker.link.release(await worker.job())
            worker.link.complete(await worker.job(), b"at the second time")
            assert await order.ending() == Completed(b"at the second time")
            assert worker.link.slots.free + len(worker.link.connections) >= worker.link.slots.total

    asyncio.run(scenario())


def test_slots_are_shared_with_other_links(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client:
            worker = WorkerParty(url)
            assert worker.link.slots.take()  # by another link of the same worker
            await worker.link.open({function: 0.0})
            order = client.submit(function)
            await order.receipt()
            assert worker.jobs.empty()
            worker.link.slots.give()
            worker.link.complete(await worker.job(), b"then")
            assert await order.ending() == Completed(b"then")
            await working(worker)
            assert worker.link.slots.free == 1
            await worker.link.close()

    asyncio.run(scenario())


def test_everybody_hears_that_the_server_is_gone() -> None:
    async def scenario() -> None:
        with serving.serve("--store", "memory", "--listen", "danga://127.0.0.1:0") as server:
            function = fresh()
            async with client_of(server.url) as client, worker_of(server.url, function, concurrency=2) as worker:
                waiting = client.submit(function)
                await worker.job()
                receipt = await client.submit(function, background=True).receipt()
                later = asyncio.create_task(client.link.result(receipt))
                await client.link.status(receipt)
                await asyncio.to_thread(server.kill)
                assert isinstance(await waiting.ending(), Exception)
                with pytest.raises(ServerGoneError):
                    await later
                with pytest.raises(ServerGoneError):  # also who asks afterwards
                    await client.link.result(receipt)
                await client.lost.next()
                await worker.lost.next()
                assert client.lost.empty()
                assert worker.lost.empty()

    asyncio.run(scenario())


def test_what_is_no_server_is_noticed_at_once(url: str) -> None:
    async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async def scenario() -> None:
        async with stand_in(hello) as port:
            place = f"danga://127.0.0.1:{port}"
            with pytest.raises(Exception, match="INVALID_MAGIC"):
                await ClientParty(place).link.open()
            with pytest.raises(Exception, match="INVALID_MAGIC"):
                await WorkerParty(place, concurrency=3).link.open({b"f": 0.0})
        with pytest.raises(OSError, match=r"refused|Connect"):
            await ClientParty(place).link.open()

    asyncio.run(scenario())


def test_with_a_plain_peer_on_the_other_side(url: str) -> None:
    port = int(url.rpartition(":")[2])

    async def scenario() -> None:
        function = fresh()
        with danga_peer.Peer(port) as peer:
            async with worker_of(url, function) as worker:
                peer.raw(danga_peer.creation(function, b"", b"abc", danga_peer.SYNC))
                worker.link.complete(await worker.job(), b"cba")
                answers = [await asyncio.to_thread(peer.packet) for _ in range(2)]
                assert answers[1] == (danga_peer.Kind.JOB_COMPLETE_RES, bytes([0, 0, 0, 1, 0]) + b"cba")
            async with client_of(url) as client:
                peer.send(danga_peer.Kind.WORKER_CONNECT, function)
                order = client.submit(function, b"xyz")
                await order.receipt()
                peer.send(danga_peer.Kind.JOB_ASSIGN_REQ)
                answer = await asyncio.to_thread(peer.packet)
                assert answer == (danga_peer.Kind.JOB_ASSIGN_RES, function + b"\0xyz")
                peer.send(danga_peer.Kind.JOB_COMPLETE_ANNOUNCE, b"\0zyx")
                assert await order.ending() == Completed(b"zyx")

    asyncio.run(scenario())


def test_what_the_draft_cannot_say() -> None:
    objection = danga.Client.unsupported_reason
    assert "NUL" in objection(Order(b"a\0b"))
    assert "NUL" in objection(Order(b"f", unique=b"a\0b"))
    assert "name" in objection(Order(b""))
    assert objection(Order(b"f", unique=b"k")) == ""
    assert not danga.Client.capabilities.priority
    assert not danga.Client.capabilities.data
    assert not danga.Worker.capabilities.reschedule


def test_a_link_that_was_closed_says_nothing(url: str) -> None:
    async def scenario() -> None:
        client = ClientParty(url)
        await client.link.open()
        waiting = client.submit(fresh())
        await waiting.receipt()
        asking = asyncio.create_task(client.link.result(Acceptance(b"H:nobody:1", b"f")))
        opening = client.submit(fresh())  # whose lane is not open yet
        await asyncio.sleep(0)
        await client.link.close()
        with pytest.raises(Exception, match="broke"):
            await asking
        assert client.lost.empty()
        assert isinstance(opening, OrderSink)
        assert waiting.heard.empty()
        assert parse(url) == client.link.address

    asyncio.run(scenario())
