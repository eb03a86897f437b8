"""LREM and ZREM: jobs that are removed from their queues, at this server or at the one that has them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from geartrain.doors.gearmonkey import keys
from geartrain.engine.lifecycle import QUEUED, SCHEDULED
from geartrain.errors import NotDurableError
from geartrain.wire import resp

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection
    from geartrain.doors.gearmonkey.door import GearmonkeyDoor

_REMOVE: Final = "gearmonkey remove"
_REMOVED: Final = b"removed"  # as the answer; empty: the job is not in that queue


class _Removal(msgspec.Struct, array_like=True):
    function: bytes
    priority: int | None  # of the queue; None: the scheduled jobs
    id: int


_removals = msgspec.msgpack.Decoder(_Removal)


class QueueRemovals:
    """Removes jobs from queues, and lets other servers remove those of this one."""

    def __init__(self, door: "GearmonkeyDoor") -> None:
        self._door = door
        self._tick_loop = door.tick_loop
        door.tick_loop.others.answerers[_REMOVE] = self._answer

    def remove(
        self, connection: "GearmonkeyConnection", key: keys.Key, numbers: Sequence[bytes], priority: int | None
    ) -> resp.Value:
        """Cancel those of these jobs that are in this queue; the reply is how many."""
        removed = 0
        unknown: list[_Removal] = []
        for number in dict.fromkeys(numbers):
            removal = _Removal(key.function, priority, resp.number(number) or 0)
            if removal.id <= 0:
                continue
            if self._is_own(removal):
                removed += self._cancel(removal)
            else:
                unknown.append(removal)
        connection.must_be_durable = removed > 0
        if not unknown or not self._tick_loop.others.exist or connection.in_transaction:
            return removed
        return connection.reply_later(self._remove_elsewhere(unknown, removed))

    async def _remove_elsewhere(self, removals: list[_Removal], removed: int) -> resp.Value:
        for removal in removals:
            question = msgspec.msgpack.encode(removal)
            removed += bool(await self._tick_loop.others.ask_home(removal.id, _REMOVE, question))
        return removed

    async def _answer(self, content: bytes) -> bytes:
        self._tick_loop.begin_tick()
        removal = _removals.decode(content)
        if not self._is_own(removal) or not self._cancel(removal):
            return b""
        try:
            await self._tick_loop.durable()
        except NotDurableError:
            return b""
        return _REMOVED

    def _is_own(self, removal: _Removal) -> bool:
        engine = self._tick_loop.engine
        return engine.jobs.get(removal.id) is not None and removal.id not in engine.borrowed

    def _cancel(self, removal: _Removal) -> bool:
        """Cancel a job of this server if it is in this queue."""
        engine = self._tick_loop.engine
        job = engine.jobs.get(removal.id)
        if job is None or job.function != removal.function:
            return False
        if removal.priority is None:
            waits_here = job.state is SCHEDULED or (job.state is QUEUED and job.handle in self._door.scheduled)
        else:
            waits_here = job.state is QUEUED and job.priority == removal.priority
        if waits_here:
            engine.cancel(job, "removed from its queue")
        return waits_here
