"""Which server a job goes to; that it is reached is seen in the acceptance tests."""

import asyncio
from collections import Counter

import pytest

from geartrain import address
from geartrain.client.credentials import Credentials
from geartrain.client.order import Capabilities, Order
from geartrain.client.protocols.base import ClientProtocol, JobListener
from geartrain.client.server_pool import PooledServer, ServerPool
from geartrain.errors import ServerGoneError

URLS = [f"gearman://10.0.0.{n}:4730" for n in range(1, 5)]


class Obliging(ClientProtocol):
    """A protocol that opens unless its host is down."""

    capabilities = Capabilities()
    down: set[str] = set()
    opened: list[str] = []
    refused: asyncio.Event

    async def open(self) -> None:
        await asyncio.sleep(0)
        if self.address.host in self.down:
            self.refused.set()
            raise ConnectionRefusedError(111, "no")
        self.opened.append(self.address.host)

    def submit(self, order: Order, listener: JobListener) -> None:
        raise AssertionError("nothing is submitted here")

    async def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def all_up() -> None:
    Obliging.down = set()
    Obliging.opened = []
    Obliging.refused = asyncio.Event()


def servers(urls: list[str]) -> ServerPool:
    return ServerPool([PooledServer(address.parse(url), Obliging, Credentials()) for url in urls])


def test_a_key_has_one_home_whatever_the_order_of_the_servers_and_keys_spread() -> None:
    async def scenario() -> None:
        homes: Counter[str] = Counter()
        one, other = servers(URLS), servers(URLS[::-1])
        for n in range(400):
            key = b"key %d" % n
            home = await one.reach(key, 0)
            assert (await other.reach(key, 0)).address == home.address
            assert one.ready(key) is home
            homes[home.address.host] += 1
        assert len(homes) == 4
        assert min(homes.values()) > 50

    asyncio.run(scenario())


def test_only_the_keys_of_a_lost_server_move() -> None:
    async def scenario() -> None:
        keys = [b"key %d" % n for n in range(100)]
        before = {key: (await servers(URLS).reach(key, 0)).address.host for key in keys}
        Obliging.down = {"10.0.0.1"}
        after = {key: (await servers(URLS).reach(key, 0)).address.host for key in keys}
        assert {key for key in keys if before[key] != after[key]} == {key for key in keys if before[key] == "10.0.0.1"}

    asyncio.run(scenario())


def test_jobs_without_a_key_stay_where_they_are_and_clients_spread() -> None:
    async def scenario() -> None:
        starts = set()
        for _ in range(100):
            client = servers(URLS)
            home = await client.reach(b"", 0)
            assert all([await client.reach(b"", 0) is home for _ in range(3)])
            starts.add(home.address.host)
        assert len(starts) == 4

    asyncio.run(scenario())


def test_however_many_wait_a_server_is_opened_once() -> None:
    async def scenario() -> None:
        client = servers(URLS[:1])
        reached = await asyncio.gather(*(client.reach(b"", 0) for _ in range(10)))
        assert len(set(reached)) == 1
        assert Obliging.opened == ["10.0.0.1"]

    asyncio.run(scenario())


def test_a_waiter_that_gives_up_does_not_stop_the_others() -> None:
    async def scenario() -> None:
        client = servers(URLS[:1])
        first, second = (asyncio.create_task(client.reach(b"", 0)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).protocol is not None

    asyncio.run(scenario())


def test_when_nobody_is_there_all_are_named() -> None:
    async def scenario() -> None:
        Obliging.down = {address.parse(url).host for url in URLS}
        with pytest.raises(ServerGoneError) as caught:
            await servers(URLS).reach(b"", 0)
        assert all(url in str(caught.value) for url in URLS)
        assert "Connection refused" in str(caught.value)

    asyncio.run(scenario())


def test_it_is_tried_again_within_the_patience() -> None:
    async def scenario() -> None:
        Obliging.down = {"10.0.0.1"}
        reaching = asyncio.create_task(servers(URLS[:1]).reach(b"", 60))
        await Obliging.refused.wait()
        assert not reaching.done()
        Obliging.down = set()
        assert (await reaching).protocol is not None

    asyncio.run(scenario())
