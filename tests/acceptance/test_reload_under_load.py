"""Reloads while jobs are submitted and run: no connection of others is lost, and no acknowledged job."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

import geartrain
from geartrain.client import control
from geartrain.server import users_file
from tests.support import serving
from tests.support.protocol_ends import async_test

PROTOCOLS = ("gearman", "periodic", "gearmonkey", "http")
RELOADS = 12
SECONDS = 120


@pytest.mark.parametrize("protocol", PROTOCOLS)
@async_test
async def test_reload_under_load(tmp_path: Path, protocol: str) -> None:
    """One client submits all the time, while another's token is created and revoked and the server reloads."""
    users = tmp_path / "users.toml"
    steady = users_file.create_token(users, "steady", ["submit", "work"]).secret
    listens = (f"--listen={protocol}://{serving.HOST}:0?may=none", f"--listen=gearman://{serving.HOST}:0")
    store = f"sqlite://{tmp_path / 'jobs.db'}"
    with serving.serve("--store", store, "--users-file", str(users), *listens) as server:
        async with asyncio.timeout(SECONDS):
            submitted, ran = await load(server.urls[0], server.urls[1], users, steady)
        assert "connection lost" not in server.stderr
    assert submitted
    assert ran == Counter(submitted)


async def load(url: str, operators_url: str, users: Path, token: str) -> tuple[list[bytes], Counter[bytes]]:
    """What was acknowledged, and how often each of it ran."""
    ran: Counter[bytes] = Counter()
    submitted: list[bytes] = []
    over = asyncio.Event()
    worker = geartrain.AsyncWorker(url, token=token, concurrency=4)
    worker.register("count", lambda job: ran.update([bytes(job.payload)]), mode="inline")

    async def submit(client: geartrain.AsyncClient) -> None:
        while not over.is_set():
            payload = b"%d" % len(submitted)
            await client.submit("count", payload, background=True)
            submitted.append(payload)

    async def reload() -> None:
        async with geartrain.AsyncClient(operators_url) as operator:
            for _ in range(RELOADS):
                await come_and_go(url, operator, users)
                count = len(submitted)
                while len(submitted) < count + 5:  # jobs of the same connections are acknowledged after it
                    await asyncio.sleep(0)
        over.set()

    async with worker, geartrain.AsyncClient(url, token=token) as client:
        await asyncio.gather(submit(client), reload())
        while sum(ran.values()) < len(submitted):
            await asyncio.sleep(0.01)
        return submitted, ran


async def come_and_go(url: str, operator: geartrain.AsyncClient, users: Path) -> None:
    """A user that is created, connects, and is revoked."""
    passing = users_file.create_token(users, "passing", ["submit"])
    await control.ask(operator, "reload")
    async with geartrain.AsyncClient(url, token=passing.secret) as client:
        await client.submit("never", background=True)
        users_file.revoke_tokens(users, "passing")
        assert (await control.ask(operator, "reload"))["closed_connections"] > 0
        with pytest.raises(geartrain.ClientError):
            await client.submit("never", background=True)
