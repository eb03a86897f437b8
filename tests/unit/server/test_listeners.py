"""Which addresses are opened, which may be passed over, and what is said about the rest."""

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import AsyncIterator, Iterator

import pytest

from geartrain import address
from geartrain.address import Address
from geartrain.doors.door import Socket
from geartrain.engine.engine import Engine
from geartrain.errors import StartError
from geartrain.model import Record
from geartrain.runtime.clock import Clock
from geartrain.runtime.tick import TickLoop
from geartrain.server import listeners
from geartrain.server.config.settings import Settings
from geartrain.server.listeners import DoorContext, Doors


class NoControl:
    """Nobody stops these doors from outside."""

    log_level_name = "ERROR"

    def shutdown(self, graceful: bool) -> None:
        raise AssertionError("nobody asked for it")


class NoArchive:
    """Nothing has ever run."""

    async def find(self, handle: bytes) -> Record | None:
        return None


@contextlib.asynccontextmanager
async def doors() -> AsyncIterator[Doors]:
    tick_loop = TickLoop(asyncio.get_running_loop(), Engine(), Clock())
    made = Doors(DoorContext(tick_loop, Settings(), NoControl(), NoArchive()), Socket())
    try:
        yield made
    finally:
        made.close()
        tick_loop.close()
        await asyncio.sleep(0)


def opened(*urls: str) -> list[Address]:
    """Open these, and say where they stood."""

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
    """A port that somebody else listens on."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Host names with the addresses that the resolver is to give for them."""
    table: dict[str, list[str]] = {}
    real = asyncio.BaseEventLoop.getaddrinfo

    async def getaddrinfo(loop: asyncio.BaseEventLoop, host: str, port: int, **rest: int) -> list[object]:
        found: list[object] = []
        for place in table.get(host, [host]):
            found += await real(loop, place, port, **rest)
        return found

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", getaddrinfo)
    return table


def test_asked_for_addresses_are_opened_with_their_real_ports() -> None:
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


def test_half_of_a_name_that_this_machine_does_not_have_is_passed_over(names: dict[str, list[str]]) -> None:
    names["localhost.test"] = ["192.0.2.1", "127.0.0.1"]  # the first is nobody's: reserved for documentation
    assert [place.host for place in opened("gearman://localhost.test:0")] == ["127.0.0.1"]


def test_address_that_this_machine_does_not_have() -> None:
    with pytest.raises(StartError) as caught:
        opened("gearman://192.0.2.1:4730")
    reason = os.strerror(errno.EADDRNOTAVAIL)
    assert str(caught.value) == f"cannot listen on gearman://192.0.2.1:4730: {reason}"


def test_taken_port_that_was_asked_for(taken: int) -> None:
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


def test_door_that_is_not_built_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    only_gearman(monkeypatch)
    with pytest.raises(StartError, match=r"the memodb door is not built yet; there is: gearman$"):
        opened("memodb+tcp://127.0.0.1:0")


def only_gearman(monkeypatch: pytest.MonkeyPatch, **more: object) -> None:
    """However many doors there are: the usual places of others are not for tests to open."""
    monkeypatch.setattr(listeners, "FACTORIES", {"gearman": listeners.FACTORIES["gearman"], **more})


def test_usual_places_are_on_this_machine_only() -> None:
    places = list(listeners.default_addresses())
    assert Address("gearman", "127.0.0.1", 4730, "") in places
    assert {place.host for place in places} == {"127.0.0.1"}


def test_usual_places_are_opened_when_nothing_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    only_gearman(monkeypatch)
    monkeypatch.setitem(address.DEFAULT_PORTS, "gearman", 0)
    [place] = opened()
    assert place.scheme == "gearman"


def test_taken_usual_port_is_passed_over_with_a_warning(
    taken: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    only_gearman(monkeypatch, danga=listeners.FACTORIES["gearman"])
    monkeypatch.setitem(address.DEFAULT_PORTS, "gearman", taken)
    monkeypatch.setitem(address.DEFAULT_PORTS, "danga", 0)
    assert [place.scheme for place in opened()] == ["danga"]
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert str(record.fields["address"]) == f"gearman://127.0.0.1:{taken}"  # type: ignore[attr-defined]


def test_no_usual_port_is_free(taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    only_gearman(monkeypatch)
    monkeypatch.setitem(address.DEFAULT_PORTS, "gearman", taken)
    with pytest.raises(StartError) as caught:
        opened()
    assert str(caught.value) == (
        f"none of the usual ports is free (gearman://127.0.0.1:{taken}); choose others with --listen"
    )


def test_nobody_new_is_admitted_after_listening_has_stopped() -> None:
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
