"""The link for GearMonkey, against a real Redis and against our own door."""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import redis

from geartrain import address
from geartrain.client import gearmonkey
from geartrain.client.job_events import Completed, Failed, Progressed
from geartrain.client.order import Acceptance, Order, Status
from geartrain.client.protocols.base import Assignment
from geartrain.client.protocols.gearmonkey import Client, Worker, client, worker
from geartrain.client.slots import Slots
from geartrain.errors import ClientError, ServerGoneError
from geartrain.model import Priority
from tests.support import process, redis_server, serving
from tests.support.link_parties import ClientParty, WorkerParty, client_of, fresh, until, worker_of

REDIS = pytest.param("redis", marks=pytest.mark.peer("redis-server"))
LEASE = 0.6


@pytest.fixture(scope="module", params=[REDIS, "geartrain"])
def place(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """A real Redis, and our door: whatever is asserted holds for both."""
    if request.param == "redis":
        with redis_server.serve() as running:
            yield request.param, running.url
    else:
        with serving.serve("--store", "memory", "--listen", f"gearmonkey://{serving.HOST}:0") as server:
            yield request.param, server.url


@pytest.fixture
def url(place: tuple[str, str]) -> str:
    return place[1]


only_redis = pytest.mark.parametrize("place", [REDIS], indirect=True)


@pytest.fixture
def raw(url: str) -> Iterator[Any]:
    connection = redis.Redis(port=address.parse(url).port, protocol=2)
    yield connection
    connection.close()


def key(kind: str, function: bytes, last: str = "") -> str:
    return ":".join([kind, function.decode(), *([last] if last else [])])


def test_a_job_with_progress(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LOOK_SECONDS", 0.05)

    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client, worker_of(url, function) as worker:
            order = client.submit(function, b"abc\0\xff")
            job = await worker.job()
            assert (job.function, job.payload, job.handle) == (function, b"abc\0\xff", (await order.receipt()).handle)
            for numbers, heard in (((1, 2), (1, 2)), ((0.75, 1), (750, 1000))):
                worker.link.progress(job, *numbers)
                assert await order.heard.next() == Progressed(*heard)
            worker.link.complete(job, b"done\0")
            assert await order.heard.next() == Completed(b"done\0")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("words", "ending"),
    [
        ({"reason": "no such file"}, Failed("no such file", 1, b"no such file")),
        ({"reason": "x", "data": b"\xff", "code": 77}, Failed("�", 1, b"\xff")),
    ],
)
def test_a_failure(url: str, words: dict[str, Any], ending: Failed) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client, worker_of(url, function) as worker:
            order = client.submit(function)
            worker.link.fail(await worker.job(), **words)
            assert await order.ending() == ending

    asyncio.run(scenario())


def test_many_jobs_at_once(url: str, raw: Any) -> None:
    """A thousand are under way on the client's two connections."""

    async def scenario() -> None:
        function, count = fresh(), 1000
        async with client_of(url) as client, worker_of(url, function, concurrency=20) as worker:
            before = raw.info("clients").get("connected_clients", 0)
            orders = [client.submit(function, b"%d" % number) for number in range(count)]
            for _ in range(count):
                job = await worker.job()
                worker.link.complete(job, job.payload * 2)
            assert [await order.ending() for order in orders] == [Completed(b"%d" % n * 2) for n in range(count)]
            assert raw.info("clients").get("connected_clients", 0) <= before + 3

    asyncio.run(scenario())


def test_as_many_run_as_may(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client, worker_of(url, function, concurrency=3) as worker:
            orders = [client.submit(function, b"%d" % number) for number in range(5)]
            jobs = [await worker.job() for _ in range(3)]
            assert worker.jobs.empty()
            worker.link.complete(jobs[1], b"")
            jobs.append(await worker.job())
            worker.link.complete(jobs[0], b"")
            for job in (jobs[2], jobs[3], await worker.job()):
                worker.link.complete(job, b"")
            assert [await order.ending() for order in orders] == [Completed(b"")] * 5
            # At a Geartrain server one is taken with which the next job is waited for.
            await until(lambda: worker.link.slots.free >= 2, "the slots are free again")

    asyncio.run(scenario())


def test_background_job_and_its_result(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client:
            receipt = await client.submit(function, b"abc", background=True).receipt()
            assert await client.link.status(receipt) == Status(True)
            results = [asyncio.create_task(client.link.result(receipt)) for _ in range(2)]
            async with worker_of(url, function) as worker:
                job = await worker.job()
                worker.link.progress(job, 3, 4)
                while (status := await client.link.status(receipt)).denominator == 0:
                    await asyncio.sleep(0.01)
                assert status == Status(True, True, 3, 4)
                worker.link.complete(job, b"cba")
                assert [await result for result in results] == [Completed(b"cba")] * 2
            assert await client.link.status(receipt) == Status(False)
            assert await client.link.result(receipt) == Completed(b"cba")

    asyncio.run(scenario())


def test_priorities_and_times(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client:
            words: dict[bytes, dict[str, Any]] = {
                b"low": {"priority": Priority.LOW},
                b"normal": {},
                b"later": {"run_at": time.time() + 3600},
                b"high": {"priority": Priority.HIGH},
                b"due": {"run_at": 1000.0},
            }
            for payload, order in words.items():
                await client.submit(function, payload, background=True, **order).receipt()
            async with worker_of(url, function) as worker:
                for payload in (b"due", b"high", b"normal", b"low"):
                    job = await worker.job()
                    assert job.payload == payload
                    worker.link.complete(job, b"")
            assert Client.unsupported_reason(Order(function, run_at=5.0, priority=Priority.LOW))
            assert Client.unsupported_reason(Order(b""))
            assert not Client.unsupported_reason(Order(function, run_at=5.0))

    asyncio.run(scenario())


def test_cancelling(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client:
            order = client.submit(function, priority=Priority.LOW)
            later = await client.submit(function, background=True, run_at=4e9).receipt()
            receipt = await order.receipt()
            assert await client.link.cancel(receipt)
            assert isinstance(await order.ending(), Failed)
            assert not await client.link.cancel(receipt)
            assert await client.link.cancel(later)
            assert await client.link.status(later) == Status(False)
            running = client.submit(function)
            async with worker_of(url, function) as worker:
                job = await worker.job()
                assert not await client.link.cancel(await running.receipt())
                worker.link.complete(job, b"done")
            assert await running.ending() == Completed(b"done")
            with pytest.raises(ClientError, match="handles are numbers"):
                await client.link.cancel(Acceptance(b"H:host:1", function))

    asyncio.run(scenario())


def test_functions_come_and_go(place: tuple[str, str]) -> None:
    kind, url = place

    async def scenario() -> None:
        first, second = fresh(), fresh("mail:send")
        async with client_of(url) as client, worker_of(url) as worker:
            orders = [client.submit(first), client.submit(second)]
            worker.link.register(first, 0.0)
            worker.link.complete(await worker.job(), b"1")
            worker.link.register(second, 0.0)
            worker.link.complete(await worker.job(), b"2")
            assert [await order.ending() for order in orders] == [Completed(b"1"), Completed(b"2")]
            worker.link.unregister(first)
            if kind == "redis":  # a pop at our door ends within a second, and has no signal for it
                await client.submit(first, background=True).receipt()
            last = client.submit(second)
            job = await worker.job()
            assert job.function == second
            worker.link.complete(job, b"3")
            assert await last.ending() == Completed(b"3")
            assert worker.jobs.empty()

    asyncio.run(scenario())


def test_name_that_is_no_text(url: str) -> None:
    async def scenario() -> None:
        function = fresh() + b"\xff\xfe"
        async with client_of(url) as client, worker_of(url, function) as worker:
            order = client.submit(function, b"x")
            job = await worker.job()
            assert job.function == function
            worker.link.complete(job, b"y")
            assert await order.ending() == Completed(b"y")

    asyncio.run(scenario())


def test_rest(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client, worker_of(url, function, concurrency=2) as worker:
            order = client.submit(function)
            job = await worker.job()
            worker.link.stop_fetching()
            await worker.link.fetching_stopped()
            waits = client.submit(function)
            await waits.receipt()
            worker.link.complete(job, b"done")
            assert await order.ending() == Completed(b"done")
            assert worker.jobs.empty()
            assert (await client.link.status(await waits.receipt())) == Status(True)

    asyncio.run(scenario())


def test_what_still_runs_goes_back_when_the_link_is_closed(url: str, raw: Any) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client:
            orders = [client.submit(function, b"%d" % n) for n in range(3)]
            async with worker_of(url, function, concurrency=2) as worker:
                left, released = await worker.job(), await worker.job()
                worker.link.release(released)
                assert left.payload != released.payload
            async with worker_of(url, function, concurrency=3) as other:
                jobs = [await other.job() for _ in orders]
                for job in jobs:
                    other.link.complete(job, job.payload)
            assert [await order.ending() for order in orders] == [Completed(b"%d" % n) for n in range(3)]
            count = raw.get(key("count", function))
            assert count in (None, b"0")

    asyncio.run(scenario())


def test_forgotten_order_is_heard_of_no_more(url: str) -> None:
    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client, worker_of(url, function) as worker:
            unheard, heard = client.submit(function, b"1"), client.submit(function, b"2")
            never = client.submit(function, b"3")
            client.link.forget(never)
            await unheard.receipt()
            client.link.forget(unheard)
            for _ in range(3):
                worker.link.complete(await worker.job(), b"")
            await heard.ending()
            assert unheard.heard.empty()
            assert not never._first.done()

    asyncio.run(scenario())


def test_plain_worker_and_plain_client(url: str) -> None:
    """The document's programs at the other end: here the library for GearMonkey alone."""

    async def scenario() -> None:
        function = fresh()
        name = function.decode()
        async with client_of(url) as client, gearmonkey.AsyncWorker(url, bytes.upper) as plain:
            await plain.accept(name)
            order = client.submit(function, b"abc")
            assert await plain.run_one(10)
            assert await order.ending() == Completed(b"ABC")
        async with worker_of(url, function) as worker, gearmonkey.AsyncClient(url) as asker:
            run = asyncio.create_task(asker.run(name, b"xyz", options=gearmonkey.OPT_BLOCKING, timeout=10))
            worker.link.complete(await worker.job(), b"zyx")
            assert (await asker.get(name, await run)).output == b"zyx"

    asyncio.run(scenario())


def test_end_that_was_not_published_is_found(url: str, raw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker wrote the hash and died."""
    monkeypatch.setattr(client, "LOOK_SECONDS", 0.05)

    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client:
            order = client.submit(function)
            number = (await order.receipt()).handle.decode()
            assert raw.rpop(key("queue", function, "normal")) == number.encode()
            raw.hset(key("job", function, number), mapping={"status": "success", "output": "x"})
            assert await order.ending() == Completed(b"x")

    asyncio.run(scenario())


def test_slots_are_shared_with_other_links(url: str) -> None:
    """Two links of a worker of one job at a time: the second waits until the first one's job is over."""

    async def scenario() -> None:
        slots, function = Slots(1), fresh()
        parties = [WorkerParty(url), WorkerParty(url)]
        try:
            for party in parties:
                party.link.slots = slots
                await party.link.open({function: 0.0})
            async with client_of(url) as client:
                orders = [client.submit(function, b"%d" % n) for n in range(6)]
                done = 0
                while done < len(orders):
                    await until(lambda: any(not party.jobs.empty() for party in parties), "a job has come")
                    assert sum(party.jobs.qsize() for party in parties) == 1
                    [party] = [party for party in parties if not party.jobs.empty()]
                    party.link.complete(await party.job(), b"")
                    done += 1
                for order in orders:
                    await order.ending()
        finally:
            for party in parties:
                await party.link.close()
        assert slots.free == 1

    asyncio.run(scenario())


async def opened(party: ClientParty | WorkerParty) -> None:
    await (party.link.open({b"f": 0.0}) if isinstance(party, WorkerParty) else party.link.open())


@pytest.mark.parametrize("make", [ClientParty, WorkerParty])
def test_nobody_there_and_somebody_else_there(make: Callable[[str], ClientParty | WorkerParty]) -> None:
    class Mail(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            transport.write(b"220 mail.example.org ESMTP\r\n")

    async def scenario() -> None:
        server = await asyncio.get_running_loop().create_server(Mail, serving.HOST, 0)
        party = make(f"gearmonkey://{serving.HOST}:{server.sockets[0].getsockname()[1]}")
        with pytest.raises(ClientError, match="is no Redis"):
            await opened(party)
        server.close()
        await server.wait_closed()
        party = make(str(party.link.address))
        with pytest.raises(ConnectionRefusedError):
            await opened(party)
        assert party.lost.empty()

    asyncio.run(scenario())


@pytest.mark.peer("redis-server")
def test_database_that_does_not_exist() -> None:
    async def scenario(url: str) -> None:
        with pytest.raises(ClientError, match="out of range"):
            await ClientParty(url.removesuffix("/0") + "/99").link.open()

    with redis_server.serve() as running:
        asyncio.run(scenario(running.url))


@pytest.mark.parametrize("kind", [REDIS, "geartrain"])
def test_server_that_goes_away(kind: str) -> None:
    """Every sink that waits is told, then the link is lost, once; the slot of the job that ran comes back."""

    @contextlib.contextmanager
    def running() -> Iterator[process.Process]:
        if kind == "redis":
            with redis_server.serve() as server:
                yield server
        else:
            with serving.serve("--store", "memory", "--listen", f"gearmonkey://{serving.HOST}:0") as door:
                yield door

    async def scenario(server: Any) -> None:
        function = fresh()
        async with client_of(server.url) as client, worker_of(server.url, function) as worker:
            order = client.submit(function)
            job = await worker.job()
            receipt = await order.receipt()
            result = asyncio.create_task(client.link.result(receipt))
            await asyncio.sleep(0)
            server.kill()
            assert isinstance(await order.ending(), ServerGoneError)
            with pytest.raises(ServerGoneError):
                await result
            assert isinstance(await client.lost.next(), Exception)
            assert isinstance(await worker.lost.next(), Exception)
            worker.link.release(job)
            assert worker.link.slots.free == 1
            assert client.lost.empty()
            assert worker.lost.empty()

    with running() as server:
        asyncio.run(scenario(server))


class Revocable(WorkerParty):
    """Remembers what was taken back."""

    def revoked(self, job: Assignment) -> None:
        self.gone = job


@contextlib.asynccontextmanager
async def quick_worker(url: str, function: bytes) -> AsyncIterator[Revocable]:
    party = Revocable(url)
    assert isinstance(party.link, Worker)
    await party.link.open({function: 0.0})
    try:
        yield party
    finally:
        await party.link.close()


@only_redis
def test_lease_is_renewed_and_a_lost_one_is_told(url: str, raw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker.Worker, "lease", LEASE)

    async def scenario() -> None:
        function = fresh()
        async with client_of(url) as client, quick_worker(url, function) as worker:
            order = client.submit(function, b"x")
            job = await worker.job()
            taken = key("geartrain:taken", function)
            [(entry, until_then)] = raw.zrange(taken, 0, -1, withscores=True)
            await until(lambda: raw.zscore(taken, entry) > until_then, "the lease is renewed")
            # As another worker does when it was not heard of for long.
            with raw.pipeline() as pipeline:
                pipeline.zrem(taken, entry).rpush(key("queue", function, "normal"), job.handle).execute()
            async with quick_worker(url, function) as other:
                again = await other.job()
                await until(lambda: getattr(worker, "gone", None) is job, "the first worker is told")
                worker.link.complete(job, b"late")
                other.link.complete(again, b"in time")
                assert await order.ending() == Completed(b"in time")

    asyncio.run(scenario())


@only_redis
def test_killed_worker(url: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGKILL of a process with this link; its job is finished by another."""
    monkeypatch.setattr(worker.Worker, "lease", LEASE)
    script = (
        "import asyncio\n"
        "from geartrain.address import parse\n"
        "from geartrain.client.protocols.gearmonkey import Worker\n"
        f"Worker.lease = {LEASE}\n"
        "class Hands:\n"
        "    def assigned(self, job): print('taken', flush=True)\n"
        "async def main():\n"
        f"    link = Worker(parse({url!r}), print, Hands(), b'victim', 2)\n"
        "    await link.open({b'doomed': 0.0})\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    victim = process.Process([sys.executable, "-c", script], tmp_path)

    async def scenario() -> None:
        async with client_of(url) as client:
            order = client.submit(b"doomed", b"x")
            await asyncio.to_thread(victim.wait_for_line, "taken")
            victim.kill()
            async with worker_of(url, b"doomed") as worker:
                worker.link.complete(await worker.job(), b"saved")
                assert await order.ending() == Completed(b"saved")

    try:
        asyncio.run(scenario())
    finally:
        victim.kill()


def test_no_redis_py_is_needed(tmp_path: Any) -> None:
    script = (
        "import sys; sys.modules['redis'] = None\n"
        "from geartrain.client.protocols import gearmonkey\n"
        "print('redis' in dir(gearmonkey), flush=True)\n"
    )
    running = process.Process([sys.executable, "-c", script], tmp_path)
    try:
        assert running.wait() == 0, running.account()
    finally:
        running.kill()
