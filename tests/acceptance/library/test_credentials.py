"""Tokens of the Python library: every protocol that carries one, with the right, a wrong and a revoked token."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import geartrain
from geartrain.client import control
from geartrain.errors import AuthenticationError, ClientError, RefusedError, ServerGoneError, UnsupportedError
from geartrain.server import users_file
from tests.support import serving
from tests.support.protocol_ends import async_test

CARRIERS = ("gearman", "periodic", "gearmonkey", "http")
OTHERS = ("danga", "memodb+tcp")
WRONG = "gt_wrong-wrong-wrong-wrong"
SECONDS = 60


class Place:
    """A server whose addresses give no rights to strangers, its users file, and tokens."""

    def __init__(self, server: serving.ServerProcess, users: Path, tokens: dict[str, str]) -> None:
        self.server = server
        self.users = users
        self.tokens = tokens
        self.urls = dict(zip((*CARRIERS, *OTHERS, "open"), server.urls, strict=True))

    async def reload(self) -> int:
        """Apply the users file; returns how many connections were closed."""
        async with geartrain.AsyncClient(self.urls["open"]) as operator:
            closed: int = (await control.ask(operator, "reload"))["closed_connections"]
            return closed


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    users = tmp_path / "users.toml"
    tokens = {
        name: users_file.create_token(users, name, may).secret
        for name, may in {"client": ["submit"], "worker": ["work"], "boss": ["admin"]}.items()
    }
    listens = [f"--listen={scheme}://{serving.HOST}:0?may=none" for scheme in (*CARRIERS, *OTHERS)]
    listens.append(f"--listen=gearman://{serving.HOST}:0")
    with serving.serve("--store", "memory", "--users-file", str(users), *listens) as server:
        yield Place(server, users, tokens)
        assert not [token for token in tokens.values() if token in server.stderr]


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TOKEN", "TOKEN_FILE", "HTTP_TOKEN", "PERIODIC_TOKEN"):
        monkeypatch.delenv(f"GEARTRAIN_{name}", raising=False)


@contextlib.asynccontextmanager
async def reversing(url: str, token: str | None):  # type: ignore[no-untyped-def]
    worker = geartrain.AsyncWorker(url, token=token)
    worker.register("reverse", lambda job: job.payload[::-1], mode="inline")
    async with asyncio.timeout(SECONDS):
        async with worker:
            yield worker


# The right token


@pytest.mark.parametrize("protocol", CARRIERS)
@async_test
async def test_client_and_worker_with_their_tokens(place: Place, protocol: str) -> None:
    url = place.urls[protocol]
    async with (
        reversing(url, place.tokens["worker"]),
        geartrain.AsyncClient(url, token=place.tokens["client"]) as client,
    ):
        assert await client.run("reverse", b"abc", wait=SECONDS) == b"cba"


@pytest.mark.parametrize("variable", ["GEARTRAIN_TOKEN", "GEARTRAIN_TOKEN_FILE"])
@pytest.mark.parametrize("protocol", CARRIERS)
@async_test
async def test_token_of_the_environment(
    place: Place, protocol: str, variable: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(place.tokens["boss"] + "\n")
    monkeypatch.setenv(variable, str(file) if variable.endswith("FILE") else place.tokens["boss"])
    async with reversing(place.urls[protocol], None), geartrain.AsyncClient(place.urls[protocol]) as client:
        assert await client.run("reverse", b"abc", wait=SECONDS) == b"cba"


def test_sync_client_and_worker(place: Place) -> None:
    worker = geartrain.Worker(place.urls["gearman"], token=place.tokens["worker"])

    @worker.function("reverse")
    def reverse(job: geartrain.Job) -> bytes:
        worker.stop()
        return job.payload[::-1]

    with geartrain.Client(place.urls["gearman"], token=place.tokens["client"]) as client:
        job = client.submit("reverse", b"abc")
        worker.run(signals=False)
        assert job.result(SECONDS) == b"cba"


@pytest.mark.parametrize("protocol", CARRIERS)
@async_test
async def test_app(place: Place, protocol: str) -> None:
    app = geartrain.App("shop", place.urls[protocol], token=place.tokens["boss"])

    @app.task
    async def greet(name: str) -> str:
        return f"Hello, {name}"

    async with app, asyncio.timeout(SECONDS):
        serving_tasks = asyncio.create_task(app.serve())
        while True:
            try:
                assert await greet.call("Ada") == "Hello, Ada"
                break
            except geartrain.NoWorkersError:  # Periodic does not wait for a worker
                await asyncio.sleep(0.01)
        serving_tasks.cancel()
        await asyncio.gather(serving_tasks, return_exceptions=True)


# The wrong one, and none


@pytest.mark.parametrize("protocol", CARRIERS)
@async_test
async def test_wrong_token_of_a_client(place: Place, protocol: str) -> None:
    """It is an error at once, without `patience`."""
    async with geartrain.AsyncClient(place.urls[protocol], token=WRONG, patience=3600) as client:
        with pytest.raises(AuthenticationError) as caught:
            await asyncio.wait_for(client.submit("reverse", background=True), SECONDS)
    assert WRONG not in str(caught.value)


@pytest.mark.parametrize("protocol", CARRIERS)
@async_test
async def test_wrong_token_of_a_worker(place: Place, protocol: str) -> None:
    worker = geartrain.AsyncWorker(place.urls[protocol], token=WRONG)
    worker.register("reverse", lambda job: b"")
    with pytest.raises(AuthenticationError):
        await asyncio.wait_for(worker.run(signals=False), SECONDS)
    with pytest.raises(AuthenticationError):
        async with reversing(place.urls[protocol], WRONG):
            pass


@pytest.mark.parametrize("protocol", CARRIERS)
@async_test
async def test_without_a_token_nothing_is_allowed(place: Place, protocol: str) -> None:
    async with geartrain.AsyncClient(place.urls[protocol], patience=1) as client:
        with pytest.raises((RefusedError, ServerGoneError, ClientError)):
            await asyncio.wait_for(client.submit("reverse", background=True), SECONDS)


@async_test
async def test_empty_token_overrides_the_environment(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEARTRAIN_TOKEN", WRONG)
    async with geartrain.AsyncClient(place.urls["open"], token="") as client:
        await client.submit("reverse", background=True)


@pytest.mark.parametrize("protocol", OTHERS)
@async_test
async def test_protocols_that_carry_no_token(place: Place, protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (geartrain.AsyncClient, geartrain.AsyncWorker):
        with pytest.raises(UnsupportedError, match="client certificate"):
            kind(place.urls[protocol], token=place.tokens["boss"])
    monkeypatch.setenv("GEARTRAIN_TOKEN", WRONG)
    async with geartrain.AsyncClient(place.urls[protocol], patience=1) as client:
        await client.connect()


@async_test
async def test_gearmand_does_not_know_tokens() -> None:
    with serving.gearmand() as server:
        async with geartrain.AsyncClient(server.url, token=WRONG) as client:
            with pytest.raises(AuthenticationError, match="no Geartrain server"):
                await asyncio.wait_for(client.connect(), SECONDS)


# A token that is revoked while connected


@pytest.mark.parametrize("protocol", CARRIERS)
@async_test
async def test_revoked_client(place: Place, protocol: str) -> None:
    async with geartrain.AsyncClient(place.urls[protocol], token=place.tokens["client"]) as client:
        await client.submit("reverse", background=True)
        users_file.revoke_tokens(place.users, "client")
        assert await place.reload() > 0
        with pytest.raises(AuthenticationError):
            await asyncio.wait_for(submit_until_refused(client), SECONDS)


async def submit_until_refused(client: geartrain.AsyncClient) -> None:
    """The loss of the connection may be noticed by a submission."""
    while True:
        with contextlib.suppress(ServerGoneError):
            await client.submit("reverse", background=True)


@pytest.mark.parametrize("protocol", CARRIERS)
@async_test
async def test_revoked_worker(place: Place, protocol: str) -> None:
    """It ends with an error instead of reconnecting forever, and gets no job any more."""
    worker = geartrain.AsyncWorker(place.urls[protocol], token=place.tokens["worker"])
    worker.register("reverse", lambda job: b"", mode="inline")
    running = asyncio.create_task(worker.run(signals=False))
    async with geartrain.AsyncClient(place.urls["open"]) as client:
        job = await client.submit("reverse", background=False)
        assert await job.result(SECONDS) == b""
        users_file.revoke_tokens(place.users, "worker")
        await place.reload()
        with pytest.raises(AuthenticationError):
            await asyncio.wait_for(running, SECONDS)
        assert (await control.ask(client, "workers"))["items"] == []


@async_test
async def test_worker_without_the_right_is_warned(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """It keeps its other functions, so it goes on."""
    async with reversing(place.urls["gearman"], place.tokens["client"]):
        assert "client has no right work for the function 'reverse'" in caplog.text
