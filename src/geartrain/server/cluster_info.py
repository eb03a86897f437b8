"""Facts about the servers that share a store, and what operators do to them."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from geartrain.admin.views import ClusterCounts, NodeView
from geartrain.cluster.cluster import Cluster
from geartrain.errors import AdminError, StoreError
from geartrain.store.shared import STATES, Node


class ClusterLinkCounts(NamedTuple):
    """What the links of this server know."""

    lent: int = 0
    borrowed: int = 0
    returned: int = 0  # loans
    round_trips: Mapping[str, float] = {}  # by server


class RunningCluster:
    """What `admin` needs of the cluster; implements its `ClusterInfo`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.links: Callable[[], ClusterLinkCounts] = ClusterLinkCounts  # set when there are links

    def nodes(self, jobs: int, workers: int) -> list[NodeView]:
        """The servers as the last look at the store has shown them; of this one, with its numbers."""
        own = self._cluster.own
        return [
            self._own_view(node, jobs, workers) if node is own else self._view(node)
            for node in self._cluster.view.nodes
        ]

    async def look(self) -> None:
        """Apply what other servers have saved in the store."""
        await self._cluster.look()

    def _own_view(self, node: Node, jobs: int, workers: int) -> NodeView:
        links = self.links()
        return msgspec.structs.replace(
            self._view(node),
            answers=True,
            lease_left=round(self._cluster.lease_left, 3),
            jobs=jobs,
            workers=workers,
            lent=links.lent,
            borrowed=links.borrowed,
        )

    def _view(self, node: Node) -> NodeView:
        return NodeView(
            name=node.name,
            node=node.id,
            address=node.link,
            version=node.version,
            state=STATES[node.state],
            leader=node.leader,
            draining=node.draining,
            answers=False,
            started_at=node.started_at,
            commit_age=round(max(node.beat_age + self._cluster.view_age, 0.0), 3),
            lease_left=None,
            jobs=None,
        )

    def counts(self) -> ClusterCounts:
        """What this server knows of the cluster, and has done for it."""
        cluster, links = self._cluster, self.links()
        return ClusterCounts(
            nodes=len(cluster.servers),
            leads=cluster.leads,
            lease_left=round(cluster.lease_left, 3),
            takeovers=cluster.takeovers,
            taken_jobs=cluster.taken_jobs,
            fenced=cluster.fenced,
            resynced_jobs=cluster.resynced_jobs,
            in_doubt=cluster.in_doubt,
            xmin_age=cluster.xmin_age,
            lent=links.lent,
            borrowed=links.borrowed,
            loans_returned=links.returned,
            round_trips=dict(links.round_trips),
        )

    async def drain(self, name: str) -> None:
        """Ask a server to stop when its running jobs are done."""
        try:
            found = await self._cluster.drain(name)
        except StoreError as error:
            raise AdminError("unavailable", str(error)) from None
        if not found:
            raise self._unknown(name)

    async def fence(self, name: str) -> None:
        """Take the jobs from a server by force. Not from this one, which could not answer then."""
        own = self._cluster.own
        if own is not None and own.name == name:
            raise AdminError(
                "conflict", f"{name} is the server that you ask: drain it, or ask another server to fence it"
            )
        try:
            found = await self._cluster.fence(name)
        except StoreError as error:
            raise AdminError("unavailable", str(error)) from None
        if not found:
            raise self._unknown(name)

    def _unknown(self, name: str) -> AdminError:
        names = ", ".join(node.name for node in self._cluster.servers)
        return AdminError("not-found", f"no server {name!r} is running in this cluster; the servers are {names}")
