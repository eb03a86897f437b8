"""The Periodic door: what its connections share."""

import dataclasses
import hmac
import ipaddress
import logging
from collections.abc import Mapping
from typing import Final

from geartrain.address import Address
from geartrain.doors import door
from geartrain.doors.periodic.calendar import Calendar
from geartrain.doors.periodic.config import Config
from geartrain.doors.periodic.connection import PeriodicConnection
from geartrain.doors.periodic.locks import Locks
from geartrain.doors.periodic.watcher import DataWatcher
from geartrain.runtime import tick
from geartrain.runtime.tick import LONGEST_WAIT
from geartrain.runtime.timers import DelayedCall

_SHORTEST_INTERVAL: Final = 0.1


@dataclasses.dataclass
class Options:
    """How this door speaks Periodic."""

    # What peers have to show when they come in; empty admits everybody.
    token: str = ""
    # Addresses at which workers' requests are not confirmed: old Node clients fall over it.
    quiet: frozenset[Address] = frozenset()


class PeriodicDoor(door.Door):
    """Both dialects at every address, told apart by what a peer says first."""

    name = "periodic"

    def __init__(
        self,
        tick_loop: tick.TickLoop,
        limits: door.Limits,
        options: Options,
        control: door.ProcessControl,
        kept: Mapping[str, bytes],
    ) -> None:
        super().__init__(tick_loop, limits)
        self.options = options
        self.control = control
        self.config = Config(kept, tick_loop.engine.journal.save_value)
        self.locks = Locks(tick_loop.engine)
        self.calendar = Calendar(tick_loop.engine)
        self._expected: dict[tuple[bytes, bytes], list[DataWatcher]] = {}
        self._keepalive_check: DelayedCall | None = None
        self.timeout = 0  # seconds for a job that says nothing of its own
        self.apply_config()

    def connect(self, address: Address) -> PeriodicConnection:
        """A connection object for a peer that has just come in."""
        return PeriodicConnection(self, address)

    def is_quiet(self, address: Address) -> bool:
        """Whether workers' requests are not confirmed at this address, or at the name that it was opened by."""
        return any(
            (quiet.scheme, quiet.port, quiet.path) == (address.scheme, address.port, address.path)
            and (quiet.host == address.host or not _is_numeric(quiet.host))
            for quiet in self.options.quiet
        )

    def admits(self, token: bytes) -> bool:
        """Whether a peer that shows this token may come in."""
        return not self.options.token or hmac.compare_digest(token, self.options.token.encode())

    def apply_config(self) -> None:
        """Let the configured values govern what they name."""
        poll = max(float(self.config.get(b"poll-interval")), _SHORTEST_INTERVAL)
        self.tick_loop.longest_wait = min(poll, LONGEST_WAIT)  # more often than asked for is no harm
        self.timeout = self.config.get(b"timeout")
        self.tick_loop.engine.policy.moves_per_tick = max(self.config.get(b"max-batch-size"), 1)
        self._check_keepalive_later()

    def expect(self, function: bytes, name: bytes, watcher: DataWatcher) -> None:
        """A client wants the data of a job that is not there yet."""
        self._expected.setdefault((function, name), []).append(watcher)

    def expecting(self, function: bytes, name: bytes) -> list[DataWatcher]:
        """Who has asked for the data of a job that has just come; each is given out once."""
        if not self._expected:
            return []
        found = self._expected.pop((function, name), [])
        return [watcher for watcher in found if not watcher.connection.closing]

    def unexpect(self, connection: PeriodicConnection) -> None:
        """A client is gone."""
        for key, watchers in list(self._expected.items()):
            left = [watcher for watcher in watchers if watcher.connection is not connection]
            if left:
                self._expected[key] = left
            else:
                del self._expected[key]

    def close(self) -> None:
        """Close every connection."""
        self._cancel_keepalive_check()
        super().close()

    def _check_keepalive_later(self) -> None:
        self._cancel_keepalive_check()
        keepalive = self.config.get(b"keepalive")
        if keepalive:
            interval = max(keepalive / 2, _SHORTEST_INTERVAL)
            self._keepalive_check = self.tick_loop.timers.call_later(interval, self._check_keepalive)

    def _cancel_keepalive_check(self) -> None:
        if self._keepalive_check is not None:
            self._keepalive_check.cancel()
            self._keepalive_check = None

    def _check_keepalive(self) -> None:
        """Close the connections that have been silent for too long."""
        keepalive = self.config.get(b"keepalive")
        earliest = self.tick_loop.loop.time() - keepalive
        for connection in list(self.connections):
            if isinstance(connection, PeriodicConnection) and connection.heard_at < earliest:
                connection.log(logging.INFO, "peer silent, disconnecting", f"no bytes for {keepalive} seconds")
                connection.close()
        self._check_keepalive_later()


def _is_numeric(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
