"""What admin asks of the other servers of the cluster, over the links to them."""

from collections.abc import Mapping
from typing import Final

from geartrain.admin.cluster_calls import ClusterAnswers
from geartrain.admin.cluster_views import PARTS
from geartrain.admin.other_admins import NoAnswerError
from geartrain.admin.service import Admin
from geartrain.cluster.cluster import Cluster
from geartrain.doors.peer.door import PeerDoor, PeerError
from geartrain.server.cluster_info import ClusterLinkCounts
from geartrain.store.shared import NODE_BITS

_QUESTION: Final = "admin"


class LinkedAdmins:
    """The admins of the other servers; implements `admin.other_admins.OtherAdmins`."""

    node_bits = NODE_BITS

    def __init__(self, door: PeerDoor, cluster: Cluster, admin: Admin) -> None:
        self._door = door
        self._cluster = cluster
        self.node = door.options.node
        self.name = door.options.name
        answers = ClusterAnswers(admin, self, PARTS)
        door.answerers[_QUESTION] = lambda link, content: answers.answer(content)

    def names(self) -> Mapping[int, str]:
        """The names of those that live, linked or not, by node."""
        return {node.id: node.name for node in self._cluster.servers if node.id != self.node}

    def owns(self, id: int) -> bool:
        """Whether this server is the home of jobs with such an id."""
        return self._cluster.owns(id)

    async def ask(self, node: int, content: bytes, seconds: float) -> bytes:
        """What a server answers."""
        link = self._door.links.get(node)
        if link is None:
            raise NoAnswerError(f"there is no link to server {self.names().get(node, node)}")
        try:
            return await self._door.ask(link, _QUESTION, content, seconds)
        except PeerError as error:
            raise NoAnswerError(str(error)) from None

    def round_trip(self, node: int) -> float | None:
        """Seconds that a message to a server and back takes."""
        link = self._door.links.get(node)
        return link.round_trip if link is not None else None

    def counts(self) -> ClusterLinkCounts:
        """What the links know."""
        links = self._door.links.values()
        return ClusterLinkCounts(
            lent=sum(len(link.lending.lent) for link in links),
            borrowed=len(self._door.tick_loop.engine.borrowed),
            returned=sum(link.lending.returned for link in links),
            round_trips={link.name: link.round_trip for link in links if link.round_trip is not None},
        )
