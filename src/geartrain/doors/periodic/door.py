"""The Periodic door: its options, and what its connections share."""

import dataclasses
import hmac
import ipaddress
import logging
from collections.abc import Callable, Mapping
from typing import Final

from geartrain.address import Address
from geartrain.doors import door
from geartrain.doors.periodic.config import PeriodicConfig
from geartrain.doors.periodic.connection import PeriodicConnection
from geartrain.doors.periodic.first_due import FirstDueTimes
from geartrain.doors.periodic.locks import Locks
from geartrain.doors.periodic.shared_locks import LockStore, SharedLocks
from geartrain.doors.periodic.watcher import DataWatcher
from geartrain.runtime import tick
from geartrain.runtime.tick import LONGEST_WAIT
from geartrain.runtime.timers import DelayedCall

_SHORTEST_INTERVAL: Final = 0.1


@dataclasses.dataclass
class Options:
    """Settings of this door."""

    # What every peer has to present; empty: nothing.
    token: str = ""
    # Addresses at which commands of workers are not confirmed: old Node clients cannot handle it.
    quiet: frozenset[Address] = frozenset()


class PeriodicDoor(door.Door):
    """Both dialects at every address; the first frame tells which."""

    name = "periodic"

    def __init__(
        self,
        tick_loop: tick.TickLoop,
        limits: door.Limits,
        options: Options,
        control: door.ProcessControl,
        kept: Mapping[str, bytes],
        lock_store: LockStore | None = None,
    ) -> None:
        super().__init__(tick_loop, limits)
        self.options = options
        self.control = control
        self.config = PeriodicConfig(kept, tick_loop.engine.journal.save_value)
        tick_loop.values.subscribe(self.config.use)
        # Of a server that shares its store with others; None: its own are all there are.
        self.shared_locks = SharedLocks(tick_loop, lock_store) if lock_store is not None else None
        self.locks = self.shared_locks if self.shared_locks is not None else Locks(tick_loop.engine)
        self.first_due = FirstDueTimes(tick_loop.engine)
        self.omitted_functions = 0  # functions that the last STATUS omitted
        self._expected: dict[tuple[bytes, bytes], list[DataWatcher]] = {}
        self._keepalive_check: DelayedCall | None = None
        self.timeout = 0  # seconds for a job without a timeout of its own
        self.apply_config()

    def connect(self, address: Address) -> PeriodicConnection:
        """A connection for a new peer."""
        return PeriodicConnection(self, address)

    def is_quiet(self, address: Address) -> bool:
        """Whether commands of workers are not confirmed at this address, or at the host name that it was opened by."""
        return any(
            (quiet.scheme, quiet.port, quiet.path) == (address.scheme, address.port, address.path)
            and (quiet.host == address.host or not _is_numeric(quiet.host))
            for quiet in self.options.quiet
        )

    def admits(self, token: bytes) -> bool:
        """Whether a peer may connect with this token, which is not one of a user's.

        Without tokens in the settings and of users it is ignored, as peers send one to any server.
        """
        if self.options.token:
            return hmac.compare_digest(token, self.options.token.encode())
        return not token or not self.access.has_tokens

    def apply_config(self) -> None:
        """Apply the configuration."""
        poll = max(float(self.config.get(b"poll-interval")), _SHORTEST_INTERVAL)
        self.tick_loop.longest_wait = min(poll, LONGEST_WAIT)
        self.timeout = self.config.get(b"timeout")
        self.tick_loop.engine.policy.moves_per_tick = max(self.config.get(b"max-batch-size"), 1)
        self._check_keepalive_later()

    def expect(self, function: bytes, name: bytes, watcher: DataWatcher) -> None:
        """A client wants the data of a job that does not exist yet."""
        self._expected.setdefault((function, name), []).append(watcher)

    def take_expected(self, function: bytes, name: bytes) -> list[DataWatcher]:
        """The watchers that wait for a job which exists now; each is returned once."""
        if not self._expected:
            return []
        watchers = self._expected.pop((function, name), [])
        return [watcher for watcher in watchers if not watcher.connection.closing]

    def stop_expecting(self, watcher: DataWatcher) -> bool:
        """The job that a client expects is at another server; false if it exists here by now."""
        return self._keep_expected(lambda other: other is not watcher)

    def forget_expected(self, connection: PeriodicConnection) -> None:
        """Forget the watchers of a client that is gone."""
        self._keep_expected(lambda watcher: watcher.connection is not connection)

    def _keep_expected(self, keeps: Callable[[DataWatcher], bool]) -> bool:
        """Forget the watchers that are not to be kept; whether there were any."""
        changed = False
        for key, watchers in list(self._expected.items()):
            left = list(filter(keeps, watchers))
            changed = changed or len(left) < len(watchers)
            if left:
                self._expected[key] = left
            else:
                del self._expected[key]
        return changed

    def close(self) -> None:
        """Close every connection."""
        self._cancel_keepalive_check()
        if self.shared_locks is not None:
            self.shared_locks.close()
        super().close()

    def _check_keepalive_later(self) -> None:
        self._cancel_keepalive_check()
        keepalive = self.config.get(b"keepalive")
        if keepalive:
            interval = max(min(keepalive / 2, self.config.get(b"revert-interval") or keepalive), _SHORTEST_INTERVAL)
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
