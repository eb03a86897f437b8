"""The membership of one server: it looks at the store, fences servers that are gone, and leads if none does.

It decides nothing about jobs. What it sees goes to the event loop (`cluster.py`), twice per beat.
`membership_thread.py` has the thread in which all this happens.
"""

import logging
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from geartrain.cluster import liveness, reachability
from geartrain.cluster.liveness import Liveness
from geartrain.errors import StoreError
from geartrain.store.shared import JOINING, SERVING, ClusterView, Node, SharedStore

_LIVING: Final = (SERVING, JOINING)
_LOOKS_PER_BEAT: Final = 2.0
_MEASURE_SECONDS: Final = 60.0  # between two questions for the age of the oldest transaction
_REFUSALS: Final = 2  # of connections, before a server is taken for gone

_log = logging.getLogger("geartrain.cluster")


class Sight(NamedTuple):
    """What one look has shown."""

    view: ClusterView
    leads: bool  # whether this server is the leader
    fenced: int  # how many servers it has fenced at this look
    xmin_age: float | None  # of the oldest transaction in the database, in seconds; None: another server leads


Tell = Callable[[Sight], None]


class Environment(NamedTuple):
    """What a member knows of the world beside the store. Simulations have their own."""

    monotonic: Callable[[], float] = time.monotonic
    refuses: Callable[[Node, str], bool] = reachability.refuses  # whether the address of a node refuses connections


REAL: Final = Environment()


class Membership:
    """What one server makes of its looks at the store. All of it runs in one thread."""

    def __init__(
        self, store: SharedStore, lease: float, machine: str, tell: Tell, environment: Environment = REAL
    ) -> None:
        self._store = store
        self._machine = machine
        self._tell = tell
        self._monotonic, self._refuses = environment
        self._lease = lease
        self._liveness = Liveness(lease)
        self._beat = liveness.beat_seconds(lease)
        self.pause = self._beat / _LOOKS_PER_BEAT  # seconds between two looks
        self._refusals: dict[int, int] = {}  # by node
        self._version = 0  # of the newest saved value that was seen
        self._measured = 0.0  # the age of the oldest transaction
        self._measure_at = 0.0  # by the monotonic clock
        self._failing = False

    def look(self) -> None:
        """Look once, do what has to be done, and tell what was seen."""
        try:
            self._tell(self._look())
            self._failing = False
        except StoreError as error:
            if not self._failing:
                _log.warning("cannot look at the cluster", extra={"fields": {"why": str(error)}})
            self._failing = True

    def _look(self) -> Sight:
        view = self._store.look(self._version)
        me = self._store.node
        others = [node for node in view.nodes if node.state in _LIVING and node.id != me]
        now = self._monotonic()
        if self._has_lapsed(now):
            self._liveness.excuse(now)
        gone = self._liveness.overdue(others, now)
        gone += self._refusing([node for node in self._liveness.late if node not in gone])
        fenced = sum(self._fence(node) for node in gone)
        own = self._own(view)
        has_leader = any(node.leader and node.state == SERVING and node not in gone for node in view.nodes)
        if own is not None and own.state == SERVING and not has_leader and self._store.lead():
            view = self._store.look(self._version)  # again: it has to know all that the last leader has saved
            own = self._own(view)
        leads = own is not None and own.leader
        sight = Sight(view, leads, fenced, self._xmin_age() if leads else None)
        self._version = view.version  # now that nothing can fail: what this look has read is not read again
        return sight

    def _has_lapsed(self, now: float) -> bool:
        """Whether this server could not commit itself, and none of the others has a lock for which it waits.

        Then it may be PostgreSQL that commits nothing, and servers would fence each other for it.
        """
        store = self._store
        return now - store.renewed_at > self._lease * liveness.LAPSE_SHARE and not store.waits_for_lock

    def _own(self, view: ClusterView) -> Node | None:
        return next((node for node in view.nodes if node.id == self._store.node), None)

    def _xmin_age(self) -> float:
        """The age of the oldest transaction, which is read once a minute: one that is too old is so for many."""
        now = self._monotonic()
        if now >= self._measure_at:
            self._measured = self._store.xmin_age()
            self._measure_at = now + _MEASURE_SECONDS
        return self._measured

    def _refusing(self, late: list[Node]) -> list[Node]:
        """Of the servers that have missed their beats, those that have refused connections often enough."""
        before = self._refusals
        self._refusals = {node.id: before.get(node.id, 0) + 1 for node in late if self._refuses(node, self._machine)}
        return [node for node in late if self._is_gone(node)]

    def _is_gone(self, node: Node) -> bool:
        is_still = self._liveness.still_for(node) >= liveness.QUICK_BEATS * self._beat
        return is_still and self._refusals.get(node.id, 0) >= _REFUSALS

    def _fence(self, node: Node) -> bool:
        if not self._store.accuse(node):
            return False
        still = f"{self._liveness.still_for(node):.1f}"
        fields = {"server": node.name, "node": node.id, "seconds": still}
        _log.warning("server fenced, it has stood still", extra={"fields": fields})
        return True
