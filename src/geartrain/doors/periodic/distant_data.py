"""RECV_DATA in a cluster: the parts of the result of a job that another server has."""

import asyncio
from typing import TYPE_CHECKING, Final

from geartrain.doors.periodic.watcher import DataWatcher
from geartrain.runtime.other_servers import JobName
from geartrain.wire import periodic as wire

if TYPE_CHECKING:
    from geartrain.doors.periodic.connection import PeriodicConnection

_PAUSE_SECONDS: Final = 0.5  # while no server that can be reached has the job, which is in the store


class DistantData:
    """Lets a client hear of a job that another server may have. Until it is found, the client expects it here."""

    def __init__(self, connection: "PeriodicConnection", name: JobName, watcher: DataWatcher) -> None:
        self._connection = connection
        self._others = connection.tick_loop.others
        self._name = name
        self._watcher = watcher

    async def begin(self) -> None:
        """Look for the job at the other servers, and answer the request."""
        found = await self._others.find(self._name)
        connection, watcher = self._connection, self._watcher
        is_elsewhere = found is not None and connection.periodic.stop_expecting(watcher)
        if is_elsewhere and not await self._watch() and self._is_wanted():  # it has just ended
            connection.periodic.expect(self._name.function, self._name.unique, watcher)
        connection.begin_tick()
        if not connection.closing:
            connection.answer(watcher.message_id, wire.SUCCESS)

    async def _watch(self) -> bool:
        found = await self._others.watch(self._name, self._watcher, self._lose)
        if not self._is_wanted():
            self._connection.begin_tick().unwatch_all(self._watcher)
        return found is not None

    def _is_wanted(self) -> bool:
        return self._watcher in self._connection.waiters

    def _lose(self) -> None:
        self._others.start(self._find_again())

    async def _find_again(self) -> None:
        """The server that had the job cannot be reached: wait for the next one, or for its return."""
        while self._is_wanted() and not await self._watch():
            if await self._others.find(self._name) is None and self._is_wanted():
                self._connection.begin_tick()
                self._watcher.finish(b"EOF")
            await asyncio.sleep(_PAUSE_SECONDS)
