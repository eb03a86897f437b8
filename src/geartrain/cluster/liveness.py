"""Who may be taken for dead.

A server that lives commits at least once per beat, and every commit moves its counter. A server whose counter another
one has seen unmoved for a whole lease may be fenced by it. Only the observer's monotonic clock is used, so clocks of
different machines need not agree, and no clock that is set can hurt.

The observer must have been in contact with the store. After an outage of the store every counter stands still, and
nobody is to blame: after a lease without a look, observation begins anew. A shorter gap between two looks counts as a
quarter of a lease at most, so that others have time to commit after it. On a busy machine every look may be as late.

And it must have been able to commit. Where PostgreSQL can be read and commits nothing, every counter stands still too.
"""

from collections.abc import Collection
from typing import Final

from geartrain.store.shared import Node

BEATS_PER_LEASE: Final = 10
CONTACT_SHARE: Final = 0.25  # of the lease, as which a gap between two looks counts at most
LAPSE_SHARE: Final = 0.7  # of the lease: after that, a server that could not commit assigns no background jobs
EXCUSED_SHARE: Final = 0.5  # of the lease, for which a server has stood still at most when nobody could commit
QUICK_BEATS: Final = 1.5  # for which a server must have stood still whose address refuses connections


def beat_seconds(lease: float) -> float:
    """How often a server commits at least.

    >>> beat_seconds(10.0), beat_seconds(60.0)
    (1.0, 1.0)
    """
    return min(lease / BEATS_PER_LEASE, 1.0)


class Liveness:
    """What one server knows of the others' counters.

    >>> from geartrain.store.shared import SERVING
    >>> other = Node(7, "b", "", "", "1", 1, SERVING, False, False, 0, 41, 0.0, 0.0)
    >>> liveness = Liveness(lease=10.0)
    >>> [liveness.overdue([other], float(now)) for now in (0, 2, 4, 6, 8)] == [[]] * 5
    True
    >>> liveness.overdue([other], 10.0) == [other]
    True
    >>> liveness.overdue([other._replace(batch=42)], 10.1)
    []
    """

    def __init__(self, lease: float) -> None:
        self._lease = lease
        self._beat = beat_seconds(lease)
        # By node: its counter, and when it was first seen at this value. Plain pairs, as every look at a cluster of
        # 1,000 servers makes hundreds of them.
        self._sightings: dict[int, tuple[int, float]] = {}
        self._contact = 0.0  # the last look
        self.late: list[Node] = []  # that had stood still for a beat or longer at the last look

    def overdue(self, nodes: Collection[Node], now: float) -> list[Node]:
        """Look at the living nodes, and return those that have stood still for a lease."""
        self._bridge(now - self._contact)
        self._contact = now
        sightings = self._sightings
        moved_before = now - self._beat
        late = []
        for node in nodes:
            id, batch = node.id, node.batch
            sighting = sightings.get(id)
            if sighting is None or sighting[0] != batch:
                sightings[id] = (batch, now)
            elif sighting[1] <= moved_before:
                late.append(node)
        if len(sightings) > len(nodes):  # some are gone
            self._sightings = {node.id: sightings[node.id] for node in nodes}
        self.late = late
        return [node for node in late if self.still_for(node) >= self._lease]

    def _bridge(self, gap: float) -> None:
        """Nothing was seen for so many seconds: count them as if they were a usual gap, or forget what was seen."""
        uncounted = gap - self._lease * CONTACT_SHARE
        if gap > self._lease:
            self._sightings.clear()
        elif uncounted > 0.0:
            self._sightings = {id: (batch, since + uncounted) for id, (batch, since) in self._sightings.items()}

    def excuse(self, now: float) -> None:
        """Perhaps nobody could commit until now: count what was seen as half a lease at most, so that there is time."""
        earliest = now - self._lease * EXCUSED_SHARE
        self._sightings = {id: (batch, max(since, earliest)) for id, (batch, since) in self._sightings.items()}

    def still_for(self, node: Node) -> float:
        """For how many seconds the counter of a node was seen unmoved."""
        sighting = self._sightings.get(node.id)
        return self._contact - sighting[1] if sighting is not None else 0.0
