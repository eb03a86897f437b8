"""A server that goes away and comes back: programs notice no more than a delay, and nothing is done twice unasked."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

import geartrain
from geartrain.wire import gearman as wire
from tests.acceptance.library.conftest import EVERY_SERVER, STARTS, free_port, play, serve, working
from tests.support import serving


async def reverse(job: geartrain.Job) -> bytes:
    return job.payload[::-1]


@pytest.mark.parametrize("kind", EVERY_SERVER)
def test_a_killed_and_restarted_server_is_found_again(kind: str, function: str) -> None:
    port = free_port()
    url = f"gearman://{serving.HOST}:{port}"

    async def scenario() -> None:
        with STARTS[kind](port=port) as first:
            client = geartrain.AsyncClient(url)
            worker = geartrain.AsyncWorker(url)
            worker.register(function, reverse)
            await worker.start()
            assert await client.run(function, "abc") == b"cba"
            first.kill()
        with STARTS[kind](port=port):
            assert await client.run(function, "def", resubmit=True) == b"fed"
            await client.close()
            await worker.close()

    play(scenario)


def test_a_foreground_job_that_was_under_way_is_lost_unless_it_may_run_again(function: str) -> None:
    port = free_port()
    url = f"gearman://{serving.HOST}:{port}"

    async def scenario() -> None:
        async with geartrain.AsyncClient(url) as client:
            with serve(port) as first:
                once = await client.submit(function, "once")
                again = await client.submit(function, "again", resubmit=True)
                before = again.handle
                first.kill()
            with pytest.raises(geartrain.ServerGoneError, match="resubmit=True"):
                await once.result()
            with serve(port):
                async with working(url, **{function: reverse}):
                    assert await again.result() == b"niaga"
            assert again.handle != before

    play(scenario)


def test_a_client_waits_for_a_server_that_is_not_there_yet(function: str) -> None:
    port = free_port()

    async def scenario() -> None:
        async with geartrain.AsyncClient(f"gearman://{serving.HOST}:{port}") as client:
            submitting = asyncio.create_task(client.submit(function, background=True))
            await asyncio.sleep(0)
            with serve(port):
                assert (await submitting).handle

    play(scenario)


def test_without_patience_it_is_said_at_once_who_was_tried() -> None:
    urls = [f"gearman://{serving.HOST}:{free_port()}" for _ in range(2)]

    async def scenario() -> None:
        async with geartrain.AsyncClient(*urls, patience=0) as client:
            with pytest.raises(geartrain.ServerGoneError) as caught:
                await client.submit("f")
            assert all(url in str(caught.value) for url in urls)
            assert "refused" in str(caught.value).lower()

    play(scenario)


def test_status_comes_back_on_a_new_connection(function: str) -> None:
    port = free_port()

    async def scenario() -> None:
        async with geartrain.AsyncClient(f"gearman://{serving.HOST}:{port}") as client:
            with serve(port) as first:
                job = await client.submit(function, background=True)
                first.kill()
            with serve(port):
                assert (await job.status()).known is False

    play(scenario)


Script = Callable[[int], bytes | None]


class Faulty(asyncio.Protocol):
    """A peer that greets like a Gearman server and then does as its script says."""

    def __init__(self, script: Script, submissions: Iterator[int], all_of_them: set["Faulty"]) -> None:
        self.script = script
        self.submissions = submissions
        self.all_of_them = all_of_them
        self.reader = wire.Reader()
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.all_of_them.add(self)

    def data_received(self, data: bytes) -> None:
        self.reader.feed(data)
        while (kind := self.reader.next()) != wire.MORE:
            if kind == wire.OPTION_REQ:
                self.transport.write(wire.response(wire.OPTION_RES, b"exceptions"))
                continue
            said = self.script(next(self.submissions))
            if said is None:
                self.transport.close()
                return
            self.transport.write(said)


@contextlib.asynccontextmanager
async def faulty_server(script: Script) -> AsyncIterator[str]:
    """`script` gets the number of each submission and says what comes back; None: hang up."""
    peers: set[Faulty] = set()
    submissions = itertools.count(1)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Faulty(script, submissions, peers), serving.HOST, 0)
    try:
        yield f"gearman://{serving.HOST}:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for peer in peers:
            peer.transport.abort()
        await server.wait_closed()


def created(number: int) -> bytes:
    return wire.response(wire.JOB_CREATED, b"H:faulty:%d" % number)


def test_an_acknowledgement_that_was_lost_is_uncertain() -> None:
    async def scenario() -> None:
        async with faulty_server(lambda number: None) as url, geartrain.AsyncClient(url) as client:
            with pytest.raises(geartrain.UncertainError, match="may be queued or not"):
                await client.submit("f", background=True)
            with pytest.raises(geartrain.ServerGoneError):
                await client.submit("f")
            orders = [client.order("f", background=True) for _ in range(3)]
            lost = await client.submit_many(orders, return_exceptions=True)
            assert [type(error) for error in lost] == [geartrain.UncertainError] * 3

    play(scenario)


@pytest.mark.parametrize("allowed", [{"unique": "key"}, {"resubmit": True}])
@pytest.mark.parametrize("background", [True, False])
def test_a_lost_submission_is_made_again_if_that_is_safe_or_allowed(
    allowed: dict[str, object], background: bool
) -> None:
    async def scenario() -> None:
        script: Script = lambda number: created(number) if number > 2 else None  # noqa: E731
        async with faulty_server(script) as url, geartrain.AsyncClient(url) as client:
            job = await client.submit("f", background=background, **allowed)  # type: ignore[arg-type]
            assert job.handle == "H:faulty:3"

    play(scenario)


@pytest.mark.parametrize("rubbish", [b"HTTP/1.0 400 Bad Request" + b"x" * 9000, b"\0XYZ" + b"\0" * 20, created(1) * 2])
def test_a_server_that_makes_no_sense_is_hung_up_on(rubbish: bytes) -> None:
    async def scenario() -> None:
        async with faulty_server(lambda number: rubbish) as url, geartrain.AsyncClient(url) as client:
            with pytest.raises((geartrain.ServerGoneError, geartrain.UncertainError)):
                await client.run("f")

    play(scenario)


def test_what_is_not_a_gearman_server_is_said_so() -> None:
    class Stranger(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            transport.write(b"SSH-2.0-nothing\r\n" + b"\0" * 100)
            transport.close()

    async def scenario() -> None:
        server = await asyncio.get_running_loop().create_server(Stranger, serving.HOST, 0)
        url = f"gearman://{serving.HOST}:{server.sockets[0].getsockname()[1]}"
        async with server, geartrain.AsyncClient(url, patience=0) as client:
            with pytest.raises(geartrain.ServerGoneError, match="no server could be reached"):
                await client.submit("f")

    play(scenario)
