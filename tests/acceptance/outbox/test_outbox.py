"""Jobs that are submitted in a transaction of the program's own database, and moved to a server."""

import contextlib
import signal
import uuid
from pathlib import Path
from typing import Any

import psycopg
import pytest

from geartrain import App, AsyncClient, outbox
from geartrain.client.order import Order
from geartrain.errors import AddressError, AuthenticationError
from geartrain.outbox.source import OutboxError
from tests.support import process, serving
from tests.support.http_peer import Peer
from tests.support.outbox_database import OutboxDatabase
from tests.support.peer import until
from tests.support.protocol_ends import async_test
from tests.support.protocol_ends import until as until_async

TOKEN = "a-token-for-the-tests-of-outboxes"


@pytest.fixture
def app() -> App:
    return App(f"shop-{uuid.uuid4().hex[:8]}")


@pytest.fixture
def receipt(app: App) -> Any:
    @app.task
    def receipt(number: int) -> int:
        return number

    return receipt


@pytest.fixture(params=[0, 1], ids=["gearman", "http"])
def url(server: serving.ServerProcess, request: pytest.FixtureRequest) -> str:
    return server.urls[request.param]


@pytest.fixture
def http(server: serving.ServerProcess) -> str:
    return server.urls[1]


async def drain(database: OutboxDatabase, url: str, **options: Any) -> int:
    relay = outbox.Relay(database.url, url, **options)
    try:
        return await relay.drain()
    finally:
        await relay.close()


def claimed(peer: Peer, function: str, count: int) -> list[Any]:
    """Run so many jobs of a function, and return them; there must be no more."""
    worker = peer.worker(function)
    jobs = [worker.claim() for _ in range(count)]
    assert None not in jobs
    for job in jobs:
        worker.complete(job["handle"])
    assert worker.claim() is None
    return jobs


@async_test
async def test_a_job_exists_if_the_transaction_commits(
    database: OutboxDatabase, url: str, peer: Peer, receipt: Any
) -> None:
    connection = database.connect()
    with contextlib.suppress(ZeroDivisionError), connection:
        connection.execute("INSERT INTO orders VALUES (1)")
        outbox.submit(connection, receipt.bind(1))
        raise ZeroDivisionError
    connection.close()
    connection = database.connect()
    with connection:
        connection.execute("INSERT INTO orders VALUES (2)")
        outbox.submit(connection, receipt.bind(2))
        assert await drain(database, url) == 0, "it is not committed yet"
    connection.close()
    assert await drain(database, url) == 1
    assert database.query("SELECT number FROM orders") == [(2,)]
    assert database.waiting == 0
    [job] = claimed(peer, receipt.name, 1)
    assert '"args":[2]' in job["payload"]
    assert job["unique"].startswith("outbox-")


@async_test
async def test_jobs_keep_their_order_over_batches(database: OutboxDatabase, url: str, peer: Peer, receipt: Any) -> None:
    for first in (0, 7, 14):
        database.submit(*(receipt.bind(number) for number in range(first, first + 7)))
    assert await drain(database, url, batch=4) == 21
    jobs = claimed(peer, receipt.name, 21)
    assert [f'"args":[{number}]' in job["payload"] for number, job in enumerate(jobs)] == [True] * 21


@async_test
async def test_options_of_a_call_and_plain_jobs(database: OutboxDatabase, url: str, peer: Peer, app: App) -> None:
    @app.task(priority="high", unique="order-{number}", keep_for=60)
    def report(number: int) -> None: ...

    later = peer.get("/overview")["now"] + 3600
    async with AsyncClient(url) as client:
        plain = client.order(f"{app.name}.plain", b"\xff\x00", background=True)
    database.submit(report.bind(7), report.bind(7), report.options(at=later, priority="normal").bind(8), plain)
    assert await drain(database, url) == 4
    jobs = peer.get(f"/jobs?search={app.name}")["items"]
    shown = {job["unique"]: (job["priority"], job["state"]) for job in jobs if job["unique"].startswith("order-")}
    assert shown == {"order-7": ("high", "queued"), "order-8": ("normal", "scheduled")}
    assert len(jobs) == 3, "equal keys are one job"
    assert later in [job["run_at"] for job in jobs]
    [raw] = claimed(peer, f"{app.name}.plain", 1)
    assert raw["payload"] == {"base64": "/wA="}


@async_test
async def test_a_job_with_a_partition_is_refused(database: OutboxDatabase, url: str) -> None:
    async with AsyncClient(url) as client:
        order = client.order("f", background=True, partition="acme")
    with pytest.raises(ValueError, match="has no partition: leave it out, and let the server"):
        database.submit(order)
    assert database.waiting == 0


@async_test
async def test_a_job_that_is_refused_stays_with_the_reason_and_is_tried_again(
    database: OutboxDatabase, http: str, peer: Peer, app: App, receipt: Any
) -> None:
    limits = f"/functions/{receipt.name}/limits"
    assert peer.call("PUT", limits, {"high": 1, "normal": 1, "low": 1}).status == 200
    other = Order(f"{app.name}.other".encode(), background=True)
    database.submit(receipt.bind(1), receipt.bind(2), other)
    assert await drain(database, http) == 2, "the others are moved"
    [(refused, refusals)] = database.query("SELECT refused, refusals FROM geartrain_outbox")
    assert refused
    assert refusals == 1
    assert peer.call("PUT", limits, {"high": 0, "normal": 0, "low": 0}).status == 200
    async with outbox.Relay(database.url, http, poll=0.1):
        await until_async(lambda: database.waiting == 0, "it was tried again")
    claimed(peer, receipt.name, 2)


@async_test
async def test_a_relay_moves_jobs_when_they_are_written(
    database: OutboxDatabase, http: str, peer: Peer, receipt: Any
) -> None:
    """With a poll of an hour, only a notification (or the counter of SQLite) can wake it."""
    async with outbox.Relay(database.url, http, poll=3600):
        for number in range(3):
            database.submit(receipt.bind(number))
            await until_async(lambda: database.waiting == 0, "the job was moved")
    claimed(peer, receipt.name, 3)


@async_test
async def test_relays_share_the_work(database: OutboxDatabase, http: str, peer: Peer, receipt: Any) -> None:
    database.submit(*(receipt.bind(number) for number in range(300)))
    relays = [outbox.Relay(database.url, http, batch=5, poll=0.2) for _ in range(3)]
    async with contextlib.AsyncExitStack() as stack:
        for relay in relays:
            await stack.enter_async_context(relay)
        await until_async(lambda: database.waiting == 0, "all jobs were moved")
    assert sum(relay.moved for relay in relays) == 300
    assert database.is_sqlite or sum(relay.moved > 0 for relay in relays) > 1
    jobs = claimed(peer, receipt.name, 300)
    assert len({job["payload"] for job in jobs}) == 300


@async_test
async def test_a_server_that_is_away_is_waited_for(database: OutboxDatabase, receipt: Any, tmp_path: Path) -> None:
    with serving.serve("--store", "memory", "--listen", f"http://{serving.HOST}:0") as server:
        url = server.url
        server.stop()
    database.submit(receipt.bind(1))
    async with outbox.Relay(database.url, url, poll=0.1):
        with serving.serve("--store", "memory", "--listen", url) as server:
            await until_async(lambda: database.waiting == 0, "the job was moved")
            assert Peer(server.url).get(f"/functions/{receipt.name}")["queued"] == 1


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
@pytest.mark.peer("postgresql-18")
@async_test
async def test_async_connections(database: OutboxDatabase, http: str, peer: Peer, receipt: Any) -> None:
    async with await psycopg.AsyncConnection.connect(database.url) as connection:
        await outbox.create_table_async(connection)
        with contextlib.suppress(ZeroDivisionError):
            async with connection.transaction():
                await outbox.submit_async(connection, receipt.bind(1))
                raise ZeroDivisionError
        await outbox.submit_async(connection, receipt.bind(2))
    assert await drain(database, http) == 1
    [job] = claimed(peer, receipt.name, 1)
    assert '"args":[2]' in job["payload"]


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
@pytest.mark.peer("postgresql-18")
@async_test
async def test_a_database_that_ends_the_connection_is_connected_again(
    database: OutboxDatabase, http: str, peer: Peer, receipt: Any
) -> None:
    async with outbox.Relay(database.url, http, poll=3600) as relay:
        database.submit(receipt.bind(1))
        await until_async(lambda: relay.moved == 1, "it works")
        database.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            " AND query LIKE '%geartrain_outbox%'"
        )
        database.submit(receipt.bind(2))
        await until_async(lambda: relay.moved == 2, "it works again")
    claimed(peer, receipt.name, 2)


@async_test
async def test_a_database_without_the_table_says_what_to_do(tmp_path: Path, http: str) -> None:
    (tmp_path / "empty.db").touch()
    relay = outbox.Relay(f"sqlite://{tmp_path}/empty.db", http)
    with pytest.raises(OutboxError, match="geartrain outbox create"):
        await relay.run()
    missing = outbox.Relay(f"sqlite://{tmp_path}/missing.db", http)
    with pytest.raises(OutboxError, match="there is no database"):
        await missing.run()
    with pytest.raises(AddressError, match="sqlite:///path"):
        outbox.Relay("mysql://localhost/shop", http)


def test_a_foreground_job_cannot_be_in_an_outbox(database: OutboxDatabase) -> None:
    with pytest.raises(ValueError, match="background"):
        database.submit(Order(b"mail"))
    assert database.waiting == 0


@async_test
async def test_a_wrong_token_ends_the_relay(database: OutboxDatabase, receipt: Any, tmp_path: Path) -> None:
    tokens = ("--http-tokens", f"admin:{TOKEN}")
    database.submit(receipt.bind(1))
    with serving.serve("--store", "memory", "--listen", f"http://{serving.HOST}:0", *tokens) as server:
        with pytest.raises(AuthenticationError):
            await outbox.Relay(database.url, server.url, token=TOKEN[::-1]).run()
        assert database.waiting == 1
        assert await drain(database, server.url, token=TOKEN) == 1


def test_the_commands(database: OutboxDatabase, server: serving.ServerProcess, receipt: Any, tmp_path: Path) -> None:
    connection = database.connect()
    with connection:
        connection.execute("DROP TABLE geartrain_outbox")
    connection.close()
    created = serving.run_command(tmp_path, "outbox", "create", database.url)
    assert (created.returncode, created.stdout) == (0, ""), created.stderr
    database.submit(receipt.bind(1), receipt.bind(2))
    status = serving.run_command(tmp_path, "outbox", "status", database.url)
    assert status.stdout.startswith("2 jobs in the outbox, the oldest for "), status.stderr
    once = serving.run_command(tmp_path, "outbox", "relay", database.url, "--once", "--server", server.url)
    assert once.stdout == f"moved 2 jobs to {server.url}\n", once.stderr
    assert serving.run_command(tmp_path, "outbox", "status", database.url).stdout == "0 jobs in the outbox\n"
    command = [str(serving.installed_command()), "outbox", "relay", database.url, "--server", server.url]
    relay = process.Process(command, tmp_path)
    try:
        database.submit(receipt.bind(3))
        until(lambda: database.waiting == 0, "the command moved it")
        relay.process.send_signal(signal.SIGTERM)
        assert relay.wait() == 0
        assert relay.lines[-1] == f"moved 1 job to {server.url}"
    finally:
        relay.kill()
    wrong = serving.run_command(tmp_path, "outbox", "relay", "sqlite:///nowhere/shop.db", "--server", server.url)
    assert wrong.returncode == 1
    assert "there is no database" in wrong.stderr
    assert "Traceback" not in wrong.stderr
