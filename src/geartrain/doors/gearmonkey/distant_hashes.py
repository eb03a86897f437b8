"""Hashes of jobs that another server of the cluster has: read there, for one command, and not kept."""

from typing import TYPE_CHECKING, Final

import msgspec

from geartrain.doors.gearmonkey import command_rights, keys
from geartrain.doors.gearmonkey.blocked_pops import BlockedPop
from geartrain.doors.gearmonkey.written_fields import Fields
from geartrain.errors import ForbiddenError
from geartrain.runtime.other_servers import JobName, UnreachableError
from geartrain.runtime.tick import TickLoop

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.commands import Command
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection
    from geartrain.doors.gearmonkey.job_hashes import JobHashes

Jobs = list[tuple[bytes, keys.Key]]  # handles and keys

_READ: Final = "gearmonkey hash"


class DistantHash(msgspec.Struct, array_like=True):
    """The hash of a job."""

    has_ended: bool
    fields: Fields


_answers = msgspec.msgpack.Decoder(DistantHash)
_questions = msgspec.msgpack.Decoder(tuple[bytes, int])


class HashReader:
    """Reads hashes at other servers, and lets them read those of this one."""

    def __init__(self, tick_loop: TickLoop, jobs: "JobHashes") -> None:
        self._tick_loop = tick_loop
        self._jobs = jobs
        tick_loop.others.answerers[_READ] = self._answer

    async def read(
        self, connection: "GearmonkeyConnection", jobs: Jobs, row: "Command", arguments: list[bytes]
    ) -> dict[int, DistantHash]:
        """The hashes of those jobs that other servers have, by id. A command that deletes them cancels the jobs."""
        found: dict[int, DistantHash] = {}
        if not self._tick_loop.others.exist:
            return found
        for handle, key in jobs:
            distant = await self._read(key) if self._jobs.is_unknown(key) else None
            if distant is not None:
                found[key.id] = distant
                if row.deletes and not distant.has_ended and _may_run(connection, arguments):
                    await self._cancel(handle)
        return found

    async def _read(self, key: keys.Key) -> DistantHash | None:
        question = msgspec.msgpack.encode((key.function, key.id))
        answer = await self._tick_loop.others.ask_home(key.id, _READ, question)
        return _answers.decode(answer) if answer else None

    async def _cancel(self, handle: bytes) -> None:
        others = self._tick_loop.others
        job = await others.find(JobName(handle=handle))
        if job is not None:
            try:
                await others.cancel(job, "deleted")
            except UnreachableError:
                raise keys.refusal("the server that has this job does not answer; try again") from None

    async def _answer(self, content: bytes) -> bytes:
        key = keys.parse(b"job:%b:%d" % _questions.decode(content))
        if self._jobs.prepared.get(key) is not None:
            return b""
        fields = self._jobs.fields(key)
        return msgspec.msgpack.encode(DistantHash(self._jobs.has_ended(key), fields)) if fields else b""

    def check_locks(self, pop: BlockedPop) -> None:
        """Look for the end of jobs of other servers again: it may have been before they knew that a pop waits."""
        locks = [key for key in pop.keys if key.kind == keys.LOCK]
        if locks and self._tick_loop.others.exist:
            self._tick_loop.others.start(self._check_locks(pop, locks))

    async def _check_locks(self, pop: BlockedPop, locks: list[keys.Key]) -> None:
        for key in locks:
            distant = await self._read(key)
            if distant is not None and distant.has_ended and not pop.ended:
                pop.connection.begin_tick()
                pop.connection.gearmonkey.blocked_pops.end_of(key.function, key.id)


def _may_run(connection: "GearmonkeyConnection", arguments: list[bytes]) -> bool:
    connection.begin_tick()
    try:
        if connection.identity is not None:
            command_rights.check(connection, arguments)
    except ForbiddenError:
        return False
    return True
