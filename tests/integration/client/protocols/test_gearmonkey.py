"""What only GearMonkey does: keys that others read and write, leases on a real Redis, few connections.

The rules of all protocols are in tests/contract/protocols, on a real Redis and at our door.
"""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from geartrain import address
from geartrain.client import gearmonkey
from geartrain.client.job_events import Completed
from geartrain.client.order import Acceptance, Order
from geartrain.client.protocols.gearmonkey import Client, client, worker
from geartrain.errors import ClientError
from geartrain.model import Priority
from tests.support import process, redis_server, serving
from tests.support.protocol_ends import ClientEnd, async_test, connected_client, connected_worker, new_name, until

REDIS = pytest.param("redis", marks=pytest.mark.peer("redis-server"))
LEASE = 0.6


@pytest.fixture(scope="module", params=[REDIS, "geartrain"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A real Redis, and our door: whatever is asserted holds for both."""
    if request.param == "redis":
        with redis_server.serve() as running:
            yield running.url
    else:
        with serving.serve("--store", "memory", "--listen", f"gearmonkey://{serving.HOST}:0") as server:
            yield server.url


only_redis = pytest.mark.parametrize("url", [REDIS], indirect=True)


@pytest.fixture
def raw(url: str) -> Iterator[Any]:
    connection = redis.Redis(port=address.parse(url).port, protocol=2)
    yield connection
    connection.close()


def key(kind: str, function: bytes, *last: str) -> str:
    return ":".join([kind, function.decode(), *last])


@async_test
async def test_any_number_of_jobs_on_two_connections(url: str, raw: Any) -> None:
    function, count = new_name(), 1000
    async with connected_client(url) as client, connected_worker(url, function, concurrency=20) as worker:
        before = raw.info("clients").get("connected_clients", 0)
        listeners = [client.submit(function, b"%d" % number) for number in range(count)]
        for _ in range(count):
            job = await worker.job()
            worker.complete(job, job.payload)
        assert [await listener.ending() for listener in listeners] == [Completed(b"%d" % n) for n in range(count)]
        assert raw.info("clients").get("connected_clients", 0) <= before + 3


@async_test
async def test_scheduled_jobs_come_before_all_priorities(url: str) -> None:
    function = new_name()
    async with connected_client(url) as client:
        await client.queued(function, b"high", priority=Priority.HIGH)
        await client.queued(function, b"due", run_at=1000.0)
        async with connected_worker(url, function) as worker:
            for payload in (b"due", b"high"):
                job = await worker.job()
                assert job.payload == payload
                worker.complete(job)
    assert Client.unsupported_reason(Order(function, run_at=5.0, priority=Priority.LOW))
    assert not Client.unsupported_reason(Order(function, run_at=5.0))


@async_test
async def test_handle_of_another_protocol(url: str) -> None:
    async with connected_client(url) as client:
        with pytest.raises(ClientError, match="handles are numbers"):
            await client.protocol.cancel(Acceptance(b"H:host:1", b"f"))


@async_test
async def test_closed_worker_leaves_no_count_behind(url: str, raw: Any) -> None:
    function = new_name()
    async with connected_client(url) as client:
        for number in range(3):
            await client.queued(function, b"%d" % number)
        async with connected_worker(url, function, concurrency=2) as worker:
            await worker.job()
            worker.release(await worker.job())
        async with connected_worker(url, function, concurrency=3) as other:
            jobs = [await other.job() for _ in range(3)]
            assert {job.payload for job in jobs} == {b"0", b"1", b"2"}
            for job in jobs:
                other.complete(job)
    assert raw.get(key("count", function)) in (None, b"0")


@async_test
async def test_plain_worker_and_plain_client(url: str) -> None:
    """The document's programs at the other end: here the library for GearMonkey alone."""
    function = new_name()
    name = function.decode()
    async with connected_client(url) as client, gearmonkey.AsyncWorker(url, bytes.upper) as plain:
        await plain.accept(name)
        listener = client.submit(function, b"abc")
        assert await plain.run_one(10)
        assert await listener.ending() == Completed(b"ABC")
    async with connected_worker(url, function) as worker, gearmonkey.AsyncClient(url) as plain_client:
        run = asyncio.create_task(plain_client.run(name, b"xyz", options=gearmonkey.OPT_BLOCKING, timeout=10))
        worker.complete(await worker.job(), b"zyx")
        assert (await plain_client.get(name, await run)).output == b"zyx"


@async_test
async def test_end_that_was_not_published_is_found(url: str, raw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker wrote the hash and died."""
    monkeypatch.setattr(client, "POLL_SECONDS", 0.05)
    function = new_name()
    async with connected_client(url) as end:
        listener = await end.accepted(function)
        number = (await listener.acceptance()).handle.decode()
        assert raw.rpop(key("queue", function, "normal")) == number.encode()
        raw.hset(key("job", function, number), mapping={"status": "success", "output": "x"})
        assert await listener.ending() == Completed(b"x")


@only_redis
@async_test
async def test_database_that_does_not_exist(url: str) -> None:
    with pytest.raises(ClientError, match="out of range"):
        await ClientEnd(url.removesuffix("/0") + "/99").open()


@only_redis
@async_test
async def test_lease_is_renewed_and_its_loss_revokes_the_job(
    url: str, raw: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker.Worker, "lease", LEASE)
    function = new_name()
    async with connected_client(url) as client, connected_worker(url, function) as first:
        listener = client.submit(function, b"x")
        job = await first.job()
        taken = key("geartrain:taken", function)
        [(entry, expiry)] = raw.zrange(taken, 0, -1, withscores=True)
        await until(lambda: raw.zscore(taken, entry) > expiry, "the lease is renewed")
        # As another worker does when the first did not renew its lease for too long.
        with raw.pipeline() as pipeline:
            pipeline.zrem(taken, entry).rpush(key("queue", function, "normal"), job.handle).execute()
        async with connected_worker(url, function) as other:
            again = await other.job()
            assert await first.revocations.next() is job
            first.complete(job, b"late")
            other.complete(again, b"in time")
            assert await listener.ending() == Completed(b"in time")


@only_redis
@async_test
async def test_job_of_a_killed_worker_is_finished_by_another(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker.Worker, "lease", LEASE)
    script = (
        "import asyncio\n"
        "from geartrain.address import parse\n"
        "from geartrain.client.protocols.gearmonkey import Worker\n"
        f"Worker.lease = {LEASE}\n"
        "class Runner:\n"
        "    def assigned(self, job): print('taken', flush=True)\n"
        "async def main():\n"
        f"    worker = Worker(parse({url!r}), print, Runner(), b'victim', 2)\n"
        "    await worker.open({b'doomed': 0.0})\n"
        "    await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    victim = process.Process([sys.executable, "-c", script], tmp_path)
    try:
        async with connected_client(url) as client:
            listener = client.submit(b"doomed", b"x")
            await asyncio.to_thread(victim.wait_for_line, "taken")
            victim.kill()
            async with connected_worker(url, b"doomed") as other:
                other.complete(await other.job(), b"saved")
                assert await listener.ending() == Completed(b"saved")
    finally:
        victim.kill()


def test_no_redis_py_is_needed(tmp_path: Path) -> None:
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
