"""The verbs about the servers that share a store."""

from geartrain.admin.base import AdminBase, ClusterInfo
from geartrain.admin.history import ServerCounts
from geartrain.admin.views import NodeView
from geartrain.errors import AdminError


class ClusterVerbs(AdminBase):
    """Listing, draining and fencing servers."""

    _counts: ServerCounts

    def nodes(self) -> list[NodeView]:
        """The servers that share the store."""
        counts = self._counts
        jobs = counts.queued + counts.running + counts.scheduled + counts.blocked + len(self._engine.dead)
        return self._cluster().nodes(jobs, len(self._engine.workers))

    def own_node(self) -> NodeView:
        """This server, for the list of another one."""
        for node in self.nodes():
            if node.answers:
                return node
        raise AdminError("not-found", "this server is about to join")

    async def see_settings(self) -> None:
        """Apply what another server has just saved: it waits for that before it answers its operator."""
        await self._cluster().look()

    async def durable(self) -> None:
        """Wait until all changes are durable."""
        await self._tick_loop.durable()

    async def drain(self, name: str) -> None:
        """Ask a server to stop when its running jobs are done."""
        await self._cluster().drain(name)

    async def fence(self, name: str) -> None:
        """Take the jobs from a server by force."""
        await self._cluster().fence(name)

    def _cluster(self) -> ClusterInfo:
        if self._server.cluster is None:
            raise AdminError(
                "conflict",
                "this server is not part of a cluster; servers that share a store (--store postgresql://...) form one",
            )
        return self._server.cluster
