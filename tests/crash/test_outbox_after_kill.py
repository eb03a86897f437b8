"""kill -9 of relays of an outbox and of the server in the middle: no job is lost, and none is submitted twice."""

import asyncio
import random
import threading
from pathlib import Path

from geartrain import App
from tests.crash.conftest import Start
from tests.support import process, serving
from tests.support.gearman_peer import Kind, Peer
from tests.support.outbox_database import OutboxDatabase
from tests.support.outbox_database import database as database
from tests.support.postgres_fixtures import cluster as cluster
from tests.support.postgres_fixtures import clusters as clusters
from tests.support.postgres_fixtures import schema as schema
from tests.support.relay import Relay
from tests.support.waiting import wait_for

JOBS = 400
ROUNDS = 4
LATEST = 0.4  # seconds until a kill
BATCH = 20

app = App("crash")


@app.task
def receipt(number: int) -> None: ...


def start_relay(database: OutboxDatabase, url: str, home: Path) -> process.Process:
    options = ("--server", url, "--batch", str(BATCH), "--poll", "0.2")
    return process.Process([str(serving.installed_command()), "outbox", "relay", database.url, *options], home)


def take_all(port: int) -> list[bytes]:
    """The payloads of all jobs, which are completed, also on the server's disk."""
    payloads = []
    with Peer(port).register(receipt.function_name) as worker:
        while (job := worker.take()) is not None:
            payloads.append(job.data)
            worker.send(Kind.WORK_COMPLETE, job.handle, b"")
        worker.send(Kind.SUBMIT_JOB_BG, b"afterwards", b"same", b"")
        worker.body(Kind.JOB_CREATED)
    return payloads


def test_kills_at_any_moment(database: OutboxDatabase, start: Start, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    numbers = iter(range(JOBS))
    never = threading.Event()
    for _ in range(ROUNDS):
        with start() as server:
            relays = [start_relay(database, server.url, tmp_path) for _ in range(2)]
            try:
                for relay in relays:
                    relay.wait_until(lambda lines: bool(lines), "it moves jobs")
                for _ in range(JOBS // ROUNDS):
                    database.submit(receipt.bind(next(numbers)))
                never.wait(chance.uniform(0, LATEST))
                relays[0].kill()
                never.wait(chance.uniform(0, LATEST))
                server.kill()
            finally:
                for relay in relays:
                    relay.kill()
    with start() as server:
        relay = start_relay(database, server.url, tmp_path)
        try:
            wait_for(lambda: database.waiting == 0, "the rest was moved")
        finally:
            relay.kill()
        payloads = take_all(server.port)
    assert len(payloads) == JOBS
    assert {number for number in range(JOBS) if any(b'"args":[%d]' % number in each for each in payloads)} == set(
        range(JOBS)
    )


class AnswerKeeper(Relay):
    """Passes everything on to the server, and keeps back its answers from the first jobs on."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.sent = asyncio.Event()
        self.answers = asyncio.Event()

    async def passed(self, data: bytes, to_peer: bool) -> None:
        if not to_peer and receipt.function_name in data:
            self.sent.set()
        if to_peer and self.sent.is_set():
            await self.answers.wait()


def test_jobs_that_have_ended_are_not_sent_again(database: OutboxDatabase, start: Start, tmp_path: Path) -> None:
    """The acknowledgements are lost, the jobs run to their end, the relay is killed: the next one has to ask."""
    database.submit(*(receipt.bind(number) for number in range(BATCH)))
    with start() as server:
        asyncio.run(_lose_answers(database, server, tmp_path))
        assert database.waiting == BATCH, "the relay deleted no row"
        relay = start_relay(database, server.url, tmp_path)
        try:
            wait_for(lambda: database.waiting == 0, "the rows are settled")
        finally:
            relay.kill()
        assert take_all(server.port) == [], "nothing was submitted again"


async def _lose_answers(database: OutboxDatabase, server: serving.ServerProcess, home: Path) -> None:
    keeper = AnswerKeeper(server.url)
    await keeper.open()
    relay = start_relay(database, keeper.url, home)
    try:
        async with asyncio.timeout(process.PATIENCE):
            await keeper.sent.wait()
            taken: list[bytes] = []
            while len(taken) < BATCH:
                taken += await asyncio.to_thread(take_all, server.port)
    finally:
        relay.kill()
        keeper.answers.set()
        await keeper.cut()


def test_a_server_that_is_killed_with_jobs_on_their_way(database: OutboxDatabase, start: Start, tmp_path: Path) -> None:
    """The relay lives on: the rows are in doubt, and it asks the server when that runs again."""
    database.submit(*(receipt.bind(number) for number in range(JOBS)))
    asyncio.run(_kill_and_restart(database, start, tmp_path))


async def _kill_and_restart(database: OutboxDatabase, start: Start, home: Path) -> None:
    with start() as server:
        keeper = AnswerKeeper(server.url)
        await keeper.open()
        relay = start_relay(database, keeper.url, home)
        async with asyncio.timeout(process.PATIENCE):
            await keeper.sent.wait()
        ended = await asyncio.to_thread(take_all, server.port)
        server.kill()
    try:
        keeper.hang_up()
        keeper.answers.set()
        with serving.serve("--store", f"sqlite://{home}/jobs.db", "--listen", server.url) as server:
            await asyncio.to_thread(wait_for, lambda: database.waiting == 0, "all were moved")
            payloads = ended + await asyncio.to_thread(take_all, server.port)
    finally:
        relay.kill()
        await keeper.cut()
    assert len(set(payloads)) == JOBS
    assert len(payloads) == JOBS, "none came twice"
    assert "Traceback" not in relay.stderr
