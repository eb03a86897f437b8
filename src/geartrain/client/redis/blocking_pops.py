"""Connections that do nothing but wait for a job, one for each queue.

BRPOPLPUSH waits at one queue only. When one of the waits ends, the others are cancelled with CLIENT UNBLOCK, and
whatever has arrived by then is returned.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from geartrain.address import Address
from geartrain.client.redis import flow
from geartrain.client.redis.pipeline import Pipeline

Unblock = Callable[[Sequence[int]], Awaitable[None]]


class BlockingPops:
    """The waiting connections of a worker; `unblock` cancels the waits of connections with these ids."""

    def __init__(self, address: Address, unblock: Unblock) -> None:
        self.tls: ssl.SSLContext | None = None
        self.token = ""
        self._address = address
        self._unblock = unblock
        self._connections: list[tuple[Pipeline, int]] = []  # with their ids
        self._cancelled: asyncio.Future[None] | None = None  # while a wait is under way

    async def wait(self, moves: flow.Moves) -> list[bytes | None]:
        """What was moved from each list: at least one, unless the time is over or the wait was cancelled."""
        self._cancelled = asyncio.get_running_loop().create_future()
        try:
            while len(self._connections) < len(moves.lists):
                await self._add()
            return await self._wait(self._connections[: len(moves.lists)], moves)
        except flow.BrokenError as broken:
            # What has been moved meanwhile is in our lists in Redis, and returns to its queue after a lease.
            self.close()
            raise ConnectionError(str(broken)) from broken
        except BaseException:
            self.close()
            raise
        finally:
            self._cancelled = None

    def cancel(self) -> None:
        """End the wait that is under way."""
        if self._cancelled is not None and not self._cancelled.done():
            self._cancelled.set_result(None)

    def close(self) -> None:
        """Close the connections."""
        for pipeline, _ in self._connections:
            pipeline.abandon()
        self._connections.clear()

    async def _add(self) -> None:
        pipeline = Pipeline(_ignore)
        await pipeline.open(self._address, self.tls, self.token)
        try:
            self._connections.append((pipeline, await pipeline.ask("CLIENT", "ID")))
        except BaseException:
            pipeline.abandon()
            raise

    async def _wait(self, connections: Sequence[tuple[Pipeline, int]], moves: flow.Moves) -> list[bytes | None]:
        assert self._cancelled is not None
        waits: dict[asyncio.Future[Any], int] = {}
        for (pipeline, id), command in zip(connections, moves.commands(), strict=True):
            waits[pipeline.ask(*command)] = id
        try:
            await asyncio.wait([*waits, self._cancelled], timeout=moves.seconds, return_when=asyncio.FIRST_COMPLETED)
            while pending := [wait for wait in waits if not wait.done()]:
                await self._unblock([waits[wait] for wait in pending])
                await asyncio.wait(pending, timeout=flow.UNBLOCK_SECONDS)
        except asyncio.CancelledError:
            for wait in waits:  # their results must not stay unread
                wait.cancel()
            raise
        errors = [wait.exception() for wait in waits]
        for error in filter(None, errors):
            raise error
        return [wait.result() for wait in waits]


def _ignore(error: Exception) -> None:
    """A lost connection is noticed by the wait on it."""
