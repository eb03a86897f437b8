"""Bells for asyncio: connections that do nothing but wait for a job, one per queue."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from geartrain.address import Address
from geartrain.client.redis import flow, pipeline

LetGo = Callable[[Sequence[int]], Awaitable[None]]


class AsyncBlockingPops:
    """All bells of a worker; `let_go` calls off the waits of connections with these ids."""

    def __init__(self, address: Address, let_go: LetGo) -> None:
        self.tls: ssl.SSLContext | None = None
        self._address = address
        self._let_go = let_go
        self._pops: list[tuple[pipeline.Pipeline, int]] = []  # with the connections' ids
        self._called_off: asyncio.Future[None] | None = None  # of the wait that is under way

    async def wait(self, moves: flow.Moves) -> list[bytes | None]:
        """What was moved from each list; at least one, or the time is over, or the wait was called off."""
        self._called_off = asyncio.get_running_loop().create_future()
        try:
            while len(self._pops) < len(moves.lists):
                await self._add()
            return await self._wait(self._pops[: len(moves.lists)], moves)
        except flow.BrokenError as broken:
            # What has been moved meanwhile is known to Redis, and comes back after a lease.
            self.close()
            raise ConnectionError(str(broken)) from broken
        except BaseException:
            self.close()
            raise
        finally:
            self._called_off = None

    def call_off(self) -> None:
        """End the wait that is under way."""
        if self._called_off is not None and not self._called_off.done():
            self._called_off.set_result(None)

    def close(self) -> None:
        """Hang up."""
        for bell, _ in self._pops:
            bell.abandon()
        self._pops.clear()

    async def _add(self) -> None:
        bell = pipeline.Pipeline(_hear_of_it_later)
        await bell.open(self._address, self.tls)
        try:
            self._pops.append((bell, await bell.ask("CLIENT", "ID")))
        except BaseException:
            bell.abandon()
            raise

    async def _wait(self, ringing: Sequence[tuple[pipeline.Pipeline, int]], moves: flow.Moves) -> list[bytes | None]:
        assert self._called_off is not None
        waits: dict[asyncio.Future[Any], int] = {}
        for (bell, id), words in zip(ringing, moves.commands(), strict=True):
            waits[bell.ask(*words)] = id
        try:
            await asyncio.wait([*waits, self._called_off], timeout=moves.seconds, return_when=asyncio.FIRST_COMPLETED)
            while waiting := [wait for wait in waits if not wait.done()]:
                await self._let_go([waits[wait] for wait in waiting])
                await asyncio.wait(waiting, timeout=flow.CALL_OFF_AGAIN)
        except asyncio.CancelledError:
            for wait in waits:  # nobody asks for their results any more
                wait.cancel()
            raise
        broken = [wait.exception() for wait in waits]
        for error in filter(None, broken):
            raise error
        return [wait.result() for wait in waits]


def _hear_of_it_later(error: Exception) -> None:
    """A bell that breaks is noticed by whoever waits for it."""
