"""Waiting for the disk, for whoever has changed something and says so only when it is safe."""

import asyncio

from geartrain.admin.server_info import ServerInfo


class Receipt:
    """Waits until what was journalled so far is durable."""

    def __init__(self, server: ServerInfo) -> None:
        self._settled: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._ticket = server.hold(self)

    def settle(self, ticket: int, failed: bool) -> None:
        """The ledger has written, or failed to."""
        if ticket >= self._ticket and not self._settled.done():
            self._settled.set_result(not failed)

    async def durable(self) -> bool:
        """Whether it could be made durable."""
        return not self._ticket or await self._settled
