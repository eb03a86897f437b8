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
        return self._cluster().nodes(counts.queued + counts.running + counts.scheduled + len(self._engine.dead))

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
