"""Which doors there are, and opening them where the settings say.

A host name stands for all its addresses, as with gearmand, and `*` for every interface. An address that was
asked for must be had; the usual ports, which nobody asked for, are passed over when they are taken.
"""

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from geartrain.address import DEFAULT_PORTS, PATH_SCHEMES, Address
from geartrain.admin.service import Admin
from geartrain.doors.danga.door import DangaDoor
from geartrain.doors.danga.shared import SharedDoor
from geartrain.doors.door import Control, Door, Socket
from geartrain.doors.gearman.door import GearmanDoor
from geartrain.doors.gearmonkey.door import GearmonkeyDoor
from geartrain.doors.http.door import HttpDoor
from geartrain.doors.memodb.door import MemodbDoor
from geartrain.doors.periodic.door import PeriodicDoor
from geartrain.errors import StartError
from geartrain.runtime.records import RecordArchive
from geartrain.runtime.tick import TickLoop
from geartrain.server import options
from geartrain.server.config.settings import Settings

DEFAULT_HOST = "127.0.0.1"
EVERY_INTERFACE = "*"
# What a machine without IPv6 says about the IPv6 half of `localhost` or `*`.
_NOT_ON_THIS_MACHINE = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})

_log = logging.getLogger("geartrain.server")


class DoorContext(NamedTuple):
    """What every door stands on."""

    tick_loop: TickLoop
    settings: Settings
    control: Control
    archive: RecordArchive
    kept: Mapping[str, bytes] = {}  # what doors have kept from before
    admin: Admin | None = None  # for doors through which people see and steer


def _gearman(context: DoorContext) -> Door:
    door = GearmanDoor(
        context.tick_loop, options.limits(context.settings), options.gearman_options(context.settings), context.control
    )
    return SharedDoor(door, _danga(context)) if context.settings.danga_on_gearman_port else door


def _danga(context: DoorContext) -> DangaDoor:
    return DangaDoor(
        context.tick_loop, options.limits(context.settings), options.danga_options(context.settings), context.archive
    )


def _periodic(context: DoorContext) -> Door:
    return PeriodicDoor(
        context.tick_loop,
        options.limits(context.settings),
        options.periodic_options(context.settings),
        context.control,
        context.kept,
    )


def _memodb(context: DoorContext) -> Door:
    return MemodbDoor(context.tick_loop, options.limits(context.settings), options.memodb_options(context.settings))


def _gearmonkey(context: DoorContext) -> Door:
    return GearmonkeyDoor(
        context.tick_loop,
        options.limits(context.settings),
        options.gearmonkey_options(context.settings),
        context.archive,
    )


def _http(context: DoorContext) -> Door:
    if context.admin is None:
        raise StartError("the HTTP door has nobody to ask")
    http_options = options.http_options(context.settings, context.control.not_ready)
    return HttpDoor(context.tick_loop, options.limits(context.settings), http_options, context.admin)


# By protocol: the part of a scheme before `+`. A protocol has one door, however many addresses it has.
FACTORIES: Mapping[str, Callable[[DoorContext], Door]] = {
    "gearman": _gearman,
    "danga": _danga,
    "periodic": _periodic,
    "memodb": _memodb,
    "gearmonkey": _gearmonkey,
    "http": _http,
}


class Doors:
    """The doors of a server, made when their first address is opened."""

    def __init__(self, context: DoorContext, sockets: Socket) -> None:
        self._context = context
        self._sockets = sockets
        self._doors: dict[str, Door] = {}
        self.addresses: list[Address] = []  # where they stand, with their real ports

    @property
    def connections(self) -> int:
        return sum(self.connections_by_protocol.values())

    @property
    def connections_by_protocol(self) -> dict[str, int]:
        return {protocol: len(door.connections) for protocol, door in self._doors.items()}

    async def open(self, wanted: Sequence[Address]) -> None:
        """Open all these, or the usual places if none are given; a StartError if that cannot be."""
        for address in wanted:
            await self._open_wanted(address)
        if not wanted:
            await self._open_usual_places()

    def stop_listening(self) -> None:
        for door in self._doors.values():
            door.stop_listening()

    def close(self) -> None:
        for door in self._doors.values():
            door.close()

    async def _open_wanted(self, address: Address) -> None:
        door = self._door(address)
        places = await _resolve(address)
        absent: list[OSError] = []
        for place in places:
            try:
                self.addresses.append(await door.open(place, self._sockets))
            except OSError as error:
                if error.errno not in _NOT_ON_THIS_MACHINE:
                    raise StartError(f"cannot listen on {place}: {_reason(error)}") from None
                absent.append(error)
                _log.debug("not an address of this machine", extra={"fields": {"address": place}})
        if len(absent) == len(places):
            raise StartError(f"cannot listen on {address}: {_reason(absent[0])}")

    async def _open_usual_places(self) -> None:
        for place in default_addresses():
            try:
                self.addresses.append(await self._door(place).open(place, self._sockets))
            except OSError as error:
                fields = {"address": place, "why": _reason(error)}
                _log.warning("a usual port is not free; it is left out", extra={"fields": fields})
        if not self.addresses:
            places = ", ".join(map(str, default_addresses()))
            raise StartError(f"none of the usual ports is free ({places}); choose others with --listen")

    def _door(self, address: Address) -> Door:
        protocol = _protocol(address.scheme)
        if protocol not in self._doors:
            factory = FACTORIES.get(protocol)
            if factory is None:
                known = ", ".join(FACTORIES)
                raise StartError(f"{address}: the {protocol} door is not built yet; there is: {known}")
            self._doors[protocol] = factory(self._context)
        return self._doors[protocol]


def default_addresses() -> Iterator[Address]:
    """Where the doors stand when nothing else is asked for."""
    for scheme, port in DEFAULT_PORTS.items():
        if _protocol(scheme) in FACTORIES:
            yield Address(scheme, DEFAULT_HOST, port, "")


def _protocol(scheme: str) -> str:
    return scheme.partition("+")[0]


async def _resolve(address: Address) -> list[Address]:
    """Every address that a host name stands for, in the system's order."""
    if address.scheme in PATH_SCHEMES:
        return [address]
    host = None if address.host == EVERY_INTERFACE else address.host
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise StartError(f"cannot listen on {address}: {_reason(error)}") from None
    return list(dict.fromkeys(address._replace(host=str(entry[4][0])) for entry in found))


def _reason(error: OSError) -> str:
    """The system's own short words; loops put longer ones around them."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error)
