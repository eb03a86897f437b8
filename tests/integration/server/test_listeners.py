"""Listeners: which addresses the server listens on, which it skips, and the errors for the rest."""

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import AsyncIterator, Iterator

import pytest

from geartrain import address
from geartrain.address import Address
from geartrain.admin.service import Admin
from geartrain.admin.views import ReloadView
from geartrain.doors.access import Access
from geartrain.doors.door import SocketOptions
from geartrain.engine.engine import Engine
from geartrain.errors import StartError
from geartrain.job_query import JobQuery
from geartrain.model import Record
from geartrain.rights import Identity
from geartrain.runtime.clock import Clock
from geartrain.runtime.tick import TickLoop
from geartrain.server import listeners
from geartrain.server.access import ServerAccess
from geartrain.server.config.settings import Settings
from geartrain.server.info import RunningServer
from geartrain.server.listeners import DoorContext, Doors
from geartrain.server.tls import ServerTls
from geartrain.server.users import UserSources
from geartrain.store.memory import MemoryStore


class NoControl:
    """A server that no client of these tests stops."""

    log_level_name = "ERROR"

    def shutdown(self, graceful: bool) -> None:
        raise AssertionError("unexpected shutdown")

    def not_ready(self) -> str:
        return ""


class EmptyArchive:
    """No job has ever finished."""

    async def result(self, record: Record) -> bytes:
        return record.result

    async def find(self, handle: bytes) -> Record | None:
        return None

    async def newest(self, query: JobQuery, limit: int) -> list[Record]:
        return []


def no_reload(caller: Identity | None) -> ReloadView:
    raise NotImplementedError


@contextlib.asynccontextmanager
async def doors() -> AsyncIterator[Doors]:
    archive = EmptyArchive()
    tick_loop = TickLoop(asyncio.get_running_loop(), Engine(), Clock())
    server = RunningServer(
        tick_loop,
        MemoryStore(),
        "memory",
        None,
        reload=no_reload,
        kept_seconds={},
        access=ServerAccess(UserSources()),
        archive=archive,
    )
    admin = Admin(tick_loop, server, archive, {})
    context = DoorContext(
        tick_loop=tick_loop,
        settings=Settings(),
        control=NoControl(),
        archive=archive,
        saved_values={},
        admin=admin,
        access=Access(),
    )
    made = Doors(context, SocketOptions(), ServerTls(Settings(), ()))
    try:
        yield made
    finally:
        made.close()
        tick_loop.close()
        await asyncio.sleep(0)


def opened(*urls: str) -> list[Address]:
    """Listen on these, check that a Gearman server answers there, and return the bound addresses."""

    async def run() -> list[Address]:
        async with doors() as made:
            await made.open([address.parse(url) for url in urls])
            for place in made.addresses:
                reader, writer = await asyncio.open_connection(place.host, place.port)
                writer.write(b"version\n")
                assert (await reader.readline()).startswith(b"OK 1.1.20+geartrain.")
                writer.close()
                await writer.wait_closed()
            return made.addresses

    return asyncio.run(run())


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that another socket listens on."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Host names with the addresses that the resolver returns for them."""
    table: dict[str, list[str]] = {}
    real = asyncio.BaseEventLoop.getaddrinfo

    async def getaddrinfo(loop: asyncio.BaseEventLoop, host: str, port: int, **rest: int) -> list[object]:
        results: list[object] = []
        for name in table.get(host, [host]):
            results += await real(loop, name, port, **rest)
        return results

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", getaddrinfo)
    return table


def test_bound_ports_are_reported() -> None:
    first, second = opened("gearman://127.0.0.1:0", "gearman://127.0.0.1:0")
    assert first.host == second.host == "127.0.0.1"
    assert first.port != second.port
    assert 0 not in (first.port, second.port)


def test_name_opens_all_its_addresses(names: dict[str, list[str]]) -> None:
    names["both.test"] = ["127.0.0.1", "127.0.0.2", "127.0.0.1"]
    assert [place.host for place in opened("gearman://both.test:0")] == ["127.0.0.1", "127.0.0.2"]


def test_ipv6() -> None:
    if not socket.has_ipv6 or not os.path.exists("/proc/net/if_inet6"):
        pytest.skip("this machine has no IPv6")
    [place] = opened("gearman://[::1]:0")
    assert str(place) == f"gearman://[::1]:{place.port}"


def test_star_is_every_interface() -> None:
    async def run() -> list[Address]:
        return await listeners._resolve(address.parse("gearman://*:4730"))

    hosts = [place.host for place in asyncio.run(run())]
    assert "0.0.0.0" in hosts
    assert set(hosts) <= {"0.0.0.0", "::"}


def test_address_of_a_name_that_is_not_on_this_machine_is_skipped(names: dict[str, list[str]]) -> None:
    names["localhost.test"] = ["192.0.2.1", "127.0.0.1"]  # the first is reserved for documentation
    assert [place.host for place in opened("gearman://localhost.test:0")] == ["127.0.0.1"]


def test_address_not_on_this_machine() -> None:
    with pytest.raises(StartError) as caught:
        opened("gearman://192.0.2.1:4730")
    reason = os.strerror(errno.EADDRNOTAVAIL)
    assert str(caught.value) == f"cannot listen on gearman://192.0.2.1:4730: {reason}"


def test_port_in_use(taken: int) -> None:
    with pytest.raises(StartError) as caught:
        opened("gearman://127.0.0.1:0", f"gearman://127.0.0.1:{taken}")
    assert str(caught.value) == f"cannot listen on gearman://127.0.0.1:{taken}: Address already in use"


def test_unknown_name(names: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    async def unknown(*arguments: object, **rest: object) -> list[object]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", unknown)
    with pytest.raises(StartError) as caught:
        opened("gearman://nowhere.test:1")
    assert str(caught.value) == "cannot listen on gearman://nowhere.test:1: Name or service not known"


def test_every_protocol_of_a_url_has_a_door() -> None:
    servers = [
        address.Address(scheme, "", 0, "") for scheme in (*address.DEFAULT_PORTS, *address.PATH_SCHEMES, address.PEER)
    ]
    assert {server.scheme.partition("+")[0] for server in servers} == set(listeners.FACTORIES)


def set_default_ports(monkeypatch: pytest.MonkeyPatch, **ports: int) -> None:
    """Tests must not listen on the real default ports."""
    for scheme in list(address.DEFAULT_PORTS):
        monkeypatch.delitem(address.DEFAULT_PORTS, scheme)
    for scheme, port in ports.items():
        monkeypatch.setitem(address.DEFAULT_PORTS, scheme, port)


def test_default_addresses_are_on_this_machine_only() -> None:
    places = list(listeners.default_addresses(tls=False))
    assert Address("gearman", "127.0.0.1", 4730, "") in places
    assert {place.host for place in places} == {"127.0.0.1"}


def test_default_ports_without_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    set_default_ports(monkeypatch, gearman=0)
    [place] = opened()
    assert place.scheme == "gearman"


def test_default_port_in_use_is_skipped_with_a_warning(
    taken: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    set_default_ports(monkeypatch, gearman=taken, danga=0)
    monkeypatch.setattr(listeners, "FACTORIES", dict.fromkeys(("gearman", "danga"), listeners.FACTORIES["gearman"]))
    assert [place.scheme for place in opened()] == ["danga"]
    [record] = caplog.records
    assert (record.levelname, record.getMessage()) == ("WARNING", "default port in use, skipped")
    assert str(record.fields["address"]) == f"gearman://127.0.0.1:{taken}"  # type: ignore[attr-defined]


def test_all_default_ports_in_use(taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    set_default_ports(monkeypatch, gearman=taken)
    with pytest.raises(StartError) as caught:
        opened()
    assert str(caught.value) == (
        f"all default ports are in use (gearman://127.0.0.1:{taken}); choose others with --listen"
    )


def test_no_new_connection_after_stop_listening() -> None:
    async def run() -> None:
        async with doors() as made:
            await made.open([address.parse("gearman://127.0.0.1:0")])
            [place] = made.addresses
            reader, writer = await asyncio.open_connection(place.host, place.port)
            writer.write(b"version\n")
            await reader.readline()
            assert made.connections == 1
            made.stop_listening()
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(place.host, place.port)
            writer.write(b"version\n")
            assert (await reader.readline()).startswith(b"OK 1.1.20+geartrain.")
            made.close()
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()

    asyncio.run(run())
