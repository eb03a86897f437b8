"""Listeners: which door serves which protocol, and on which addresses the server listens.

A host name stands for all its addresses, as with gearmand, and `*` for every interface. The server does not start
when it cannot listen on an address of the settings. Without addresses in the settings it listens on the default ports
and skips those that are in use.
"""

import asyncio
import dataclasses
import errno
import logging
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from geartrain.address import DEFAULT_PORTS, PATH_SCHEMES, PEER, Address
from geartrain.admin.service import Admin
from geartrain.doors.access import Access
from geartrain.doors.connection_limit import LOG_SECONDS, ConnectionLimit
from geartrain.doors.danga.door import DangaDoor
from geartrain.doors.danga.shared_port import SharedPortDoor
from geartrain.doors.door import Door, Limits, ProcessControl, SocketOptions
from geartrain.doors.gearman.door import GearmanDoor
from geartrain.doors.gearmonkey import written_fields
from geartrain.doors.gearmonkey.door import GearmonkeyDoor
from geartrain.doors.http.door import HttpDoor
from geartrain.doors.http.tokens import Tokens
from geartrain.doors.memodb.door import MemodbDoor
from geartrain.doors.peer.door import Options as PeerOptions
from geartrain.doors.peer.door import PeerDoor
from geartrain.doors.periodic import config
from geartrain.doors.periodic.door import PeriodicDoor
from geartrain.doors.periodic.shared_locks import LockStore, SharedLocks
from geartrain.errors import StartError
from geartrain.rights import Identity
from geartrain.runtime.records import RecordArchive
from geartrain.runtime.tick import TickLoop
from geartrain.runtime.timers import DelayedCall
from geartrain.server import options
from geartrain.server.config.settings import Settings
from geartrain.server.process import machine
from geartrain.server.tls import ServerTls

DEFAULT_HOST = "127.0.0.1"
EVERY_INTERFACE = "*"
# The errors of a machine without IPv6 for the IPv6 half of `localhost` or `*`.
_NOT_ON_THIS_MACHINE = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})

_log = logging.getLogger("geartrain.server")


class DoorContext(NamedTuple):
    """What a door may need of the server around it."""

    tick_loop: TickLoop
    settings: Settings
    control: ProcessControl
    archive: RecordArchive
    saved_values: Mapping[str, bytes]  # that doors saved before the last stop
    admin: Admin
    access: Access
    peer: PeerOptions | None = None  # of a server that shares its store with others
    lock_store: LockStore | None = None  # of such a server

    @property
    def limits(self) -> Limits:
        return options.limits(self.settings)


def _gearman(context: DoorContext) -> Door:
    gearman_options = options.gearman_options(context.settings)
    door = GearmanDoor(context.tick_loop, context.limits, gearman_options, context.control)
    return SharedPortDoor(door, _danga(context)) if context.settings.danga_on_gearman_port else door


def _danga(context: DoorContext) -> DangaDoor:
    return DangaDoor(context.tick_loop, context.limits, context.archive, context.settings.linger)


def _periodic(context: DoorContext) -> Door:
    periodic_options = options.periodic_options(context.settings)
    door = PeriodicDoor(
        context.tick_loop,
        context.limits,
        periodic_options,
        context.control,
        context.saved_values,
        context.lock_store,
    )
    context.admin.value_loaders[config.KIND] = door.config.load
    return door


def _memodb(context: DoorContext) -> Door:
    return MemodbDoor(context.tick_loop, context.limits, options.memodb_options(context.settings))


def _gearmonkey(context: DoorContext) -> Door:
    gearmonkey_options = options.gearmonkey_options(context.settings)
    saved = context.saved_values
    door = GearmonkeyDoor(context.tick_loop, context.limits, gearmonkey_options, context.archive, saved)
    context.admin.value_loaders[written_fields.KIND] = door.jobs.written.load
    return door


def _http(context: DoorContext) -> Door:
    http_options = options.http_options(context.settings, context.control.not_ready)
    return HttpDoor(context.tick_loop, context.limits, http_options, context.admin)


def _peer(context: DoorContext) -> Door:
    if context.peer is None:
        raise StartError("peer:// is for servers that share a store: use --store postgresql://...")
    return PeerDoor(context.tick_loop, context.limits, context.peer)


# By protocol: the part of a scheme before `+`. A protocol has one door, however many addresses it has.
FACTORIES: Mapping[str, Callable[[DoorContext], Door]] = {
    "gearman": _gearman,
    "danga": _danga,
    "periodic": _periodic,
    "memodb": _memodb,
    "gearmonkey": _gearmonkey,
    "http": _http,
    "peer": _peer,
}


class Doors:
    """The doors of a server; each is made when its first address is opened."""

    def __init__(self, context: DoorContext, sockets: SocketOptions, tls: ServerTls) -> None:
        self._context = context
        self._sockets = sockets
        self._tls = tls
        self._doors: dict[str, Door] = {}
        most = min(context.settings.max_connections, machine.most_connections())
        self._limit = ConnectionLimit(most, self._count, context.tick_loop.loop.time)
        self.addresses: list[Address] = []  # that they listen on, with the ports that were bound
        self._next_check: DelayedCall | None = None

    @property
    def connections(self) -> int:
        return sum(self.connections_by_protocol.values())

    @property
    def connections_by_protocol(self) -> dict[str, int]:
        return {protocol: len(door.connections) for protocol, door in self._doors.items()}

    def _count(self) -> int:
        return self.connections + sum(len(door.handshakes) for door in self._doors.values())

    def _check_descriptors(self) -> None:
        self._limit.check_descriptors()
        self._next_check = self._context.tick_loop.timers.call_later(LOG_SECONDS, self._check_descriptors)

    async def open(self, addresses: Sequence[Address]) -> None:
        """Listen on these addresses, or on the default ports if there are none; StartError if that fails."""
        if self._context.peer is not None:  # before any worker comes, of which others have to hear
            for address in [address for address in addresses if address.scheme == PEER] or [_peer_address(addresses)]:
                await self._open(address)
        for_peers, self.addresses = self.addresses, []
        for address in addresses:
            if address.scheme != PEER or self._context.peer is None:
                await self._open(address)
        if not addresses:
            await self._open_defaults()
        self.addresses += for_peers
        self._check_descriptors()

    @property
    def peer_door(self) -> PeerDoor | None:
        """The door for the other servers of the cluster; None: there are none."""
        found = self._doors.get(PEER)
        return found if isinstance(found, PeerDoor) else None

    @property
    def shared_locks(self) -> SharedLocks | None:
        """The locks of a server that shares its store with others; None: no worker can ask for one."""
        found = self._doors.get("periodic")
        return found.shared_locks if isinstance(found, PeriodicDoor) else None

    @property
    def gearman_door(self) -> GearmanDoor | None:
        """The Gearman door; None: there is none."""
        found = self._doors.get("gearman")
        if isinstance(found, SharedPortDoor):
            return found.gearman
        return found if isinstance(found, GearmanDoor) else None

    def end(self, identities: frozenset[Identity], caller: Identity | None = None) -> int:
        """Close the connections of these identities, and those whose certificate is revoked; returns how many."""
        return sum(door.end(identities, self._tls.is_revoked, caller) for door in self._doors.values())

    def check_http_tokens(self, fresh: Tokens) -> None:
        """Raise StartError if the door would have to be open or locked, which it was not when it began to listen."""
        for door in self._doors.values():
            if isinstance(door, HttpDoor) and bool(door.options.tokens) != bool(fresh):
                raise StartError("http_tokens_file has its first token, or none any more; restart the server")

    def use_http_tokens(self, fresh: Tokens) -> frozenset[Identity]:
        """Replace the tokens of the settings; returns the identities of those that are no longer valid."""
        doors = [door for door in self._doors.values() if isinstance(door, HttpDoor)]
        return frozenset(identity for door in doors for identity in door.use_tokens(fresh))

    def stop_listening(self) -> None:
        """Accept no more connections, but of other servers: to them, an address that refuses is that of a dead one."""
        for door in self._doors.values():
            if door is not self.peer_door:
                door.stop_listening()

    def close(self) -> None:
        if self._next_check is not None:
            self._next_check.cancel()
        for door in self._doors.values():
            door.close()

    def abort(self) -> None:
        """Close the connections that are left, without waiting for what they have to write."""
        for door in self._doors.values():
            door.abort()

    async def _open(self, address: Address) -> None:
        door = self._door(address)
        resolved = await _resolve(address)
        sockets = self._socket_options(address)
        skipped: list[OSError] = []
        for single in resolved:
            try:
                self.addresses.append(await door.open(single, sockets))
            except OSError as error:
                if error.errno not in _NOT_ON_THIS_MACHINE:
                    raise StartError(f"cannot listen on {single}: {_reason(error)}") from None
                skipped.append(error)
                _log.debug("address not on this machine, skipped", extra={"fields": {"address": single}})
        if len(skipped) == len(resolved):
            raise StartError(f"cannot listen on {address}: {_reason(skipped[0])}")

    async def _open_defaults(self) -> None:
        defaults = list(default_addresses(tls=bool(self._context.settings.tls_certificate)))
        for address in defaults:
            try:
                self.addresses.append(await self._door(address).open(address, self._socket_options(address)))
            except OSError as error:
                fields = {"address": address, "why": _reason(error)}
                _log.warning("default port in use, skipped", extra={"fields": fields})
        if not self.addresses:
            tried = ", ".join(map(str, defaults))
            raise StartError(f"all default ports are in use ({tried}); choose others with --listen")

    def _socket_options(self, address: Address) -> SocketOptions:
        return dataclasses.replace(self._sockets, tls=self._tls.context(address))

    def _door(self, address: Address) -> Door:
        protocol = _protocol(address.scheme)
        if protocol not in self._doors:
            door = self._doors[protocol] = FACTORIES[protocol](self._context)
            door.use_access(self._context.access)
            door.connection_limit = self._limit
        return self._doors[protocol]


def default_addresses(tls: bool) -> Iterator[Address]:
    """Every protocol's default port, on this machine only."""
    for scheme, port in DEFAULT_PORTS.items():
        yield Address(scheme, DEFAULT_HOST, port, "", tls)


def _peer_address(addresses: Sequence[Address]) -> Address:
    """Where other servers of the cluster connect if the settings name no address for them.

    On any port, since they find it in the store; on the interface of the first other address, with TLS if that has it.
    """
    for address in addresses:
        if address.scheme not in PATH_SCHEMES:
            return Address(PEER, address.host, 0, "", address.tls, tls_parameters=address.tls_parameters)
    return Address(PEER, DEFAULT_HOST, 0, "")


def _protocol(scheme: str) -> str:
    return scheme.partition("+")[0]


async def _resolve(address: Address) -> list[Address]:
    """Every address that a host name stands for, in the system's order."""
    if address.scheme in PATH_SCHEMES:
        return [address]
    host = None if address.host == EVERY_INTERFACE else address.host
    try:
        results = await asyncio.get_running_loop().getaddrinfo(
            host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise StartError(f"cannot listen on {address}: {_reason(error)}") from None
    return list(dict.fromkeys(address._replace(host=str(result[4][0])) for result in results))


def _reason(error: OSError) -> str:
    """The system's own short text; event loops add a longer one around it."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error)
