"""Whether a job of another server that has a unique key, as the store has it, still has it.

The ends of jobs reach the store some milliseconds late. A background job that is submitted meanwhile, here, with the
key of one that has ended there, must not be taken for that one: nobody would run it. So the home is asked.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from geartrain.engine.engine import Engine
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import RESERVING
from geartrain.errors import NotDurableError

if TYPE_CHECKING:
    from geartrain.doors.peer.door import PeerDoor
    from geartrain.doors.peer.link import PeerLink

HOLDS_KEY: Final = "holds key"  # as a question
_YES: Final = b"yes"
_NO: Final = b""

_ANSWER_SECONDS: Final = 2.0
_PATIENCE_SECONDS: Final = 10.0  # after which the submission is refused
_PAUSE_SECONDS: Final = 0.25

_log = logging.getLogger("geartrain.cluster")


class KeyHolders:
    """Asks the homes of jobs that have keys, and answers for those of this server."""

    def __init__(self, door: "PeerDoor") -> None:
        self._door = door
        self._tasks: set[asyncio.Task[None]] = set()
        door.answerers[HOLDS_KEY] = self._answer

    def close(self) -> None:
        """Ask nothing more."""
        for task in self._tasks:
            task.cancel()

    def ask(self, job: LiveJob, id: int, handle: bytes) -> bool:
        """Ask whether a job still has the key of `job`, which is reserving; false if its home cannot be asked."""
        link = self._door.link_to_giver(id)
        if link is None:
            return False
        task = asyncio.ensure_future(self._ask(link, job, handle))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def _ask(self, link: "PeerLink", job: LiveJob, handle: bytes) -> None:
        if self._door.tick_loop.engine.now - job.submitted_at > _PAUSE_SECONDS:  # asked before, maybe
            await asyncio.sleep(_PAUSE_SECONDS)
        try:
            holds = await self._door.ask(link, HOLDS_KEY, handle, _ANSWER_SECONDS) == _YES
        except self._door.Error as error:  # it cannot commit, and does not know; or it is gone, and is not asked again
            _log.debug("home of a key could not be asked", extra={"fields": {"why": str(error)}})
            holds = False
        engine: Engine = self._door.tick_loop.begin_tick()
        is_there = engine.jobs.get(job.id) is job
        if is_there and holds:
            engine.cede(job, handle)
        elif is_there and job.state is RESERVING and engine.now - job.submitted_at > _PATIENCE_SECONDS:
            engine.retract(job)
        else:  # the store is asked again, unless the job was ended or replaced meanwhile
            engine.reserve_again(job)

    async def _answer(self, link: "PeerLink", handle: bytes) -> bytes:
        """A job that is over, or dead, has no key. The store has heard of that when the other server does.

        A job whose own commit is under way may still lose its key, when the store fails over to a standby that has not
        heard of it; so the answer waits for that commit.
        """
        job = self._door.tick_loop.begin_tick().find(handle)
        if job is not None and job.state is not RESERVING:
            return _YES
        try:
            await self._door.tick_loop.durable()
        except NotDurableError as error:
            raise self._door.Error("what became of the job could not be written to the store") from error
        return _NO if self._door.tick_loop.begin_tick().find(handle) is None else _YES
