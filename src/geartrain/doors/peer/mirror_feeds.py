"""At the home of jobs that clients of other servers wait for: it passes on what happens to them."""

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from geartrain.doors.peer.link import PeerLink
from geartrain.doors.peer.mirror import MirrorWatcher
from geartrain.engine.interfaces import KeyWaiter
from geartrain.engine.lifecycle import RESERVING
from geartrain.errors import NotDurableError, RequestError
from geartrain.model import Duplicate

if TYPE_CHECKING:
    from geartrain.doors.peer.door import PeerDoor

SUBMIT: Final = "submit"  # as questions
WATCH: Final = "watch"
UNWATCH: Final = "unwatch"  # as something that is told

_watches: Final = msgspec.msgpack.Decoder(tuple[int, bytes])


class MovedSubmission(msgspec.Struct, array_like=True):
    """A job as it was submitted."""

    mirror: int  # the number by which the server that has the clients knows them
    function: bytes
    unique: bytes
    payload: bytes
    priority: int
    door: str
    timeout: float
    reducer: bytes
    background: bool = False
    watched: bool = True  # by clients of the server that moves it
    replaces: bool = False  # a job that waits and has the key
    run_at: float = 0.0  # where it replaces one
    count: int = 0


class _Resolved(KeyWaiter):
    """Waits until a submission from elsewhere is a job for certain."""

    __slots__ = ("_future", "_handle")

    def __init__(self, future: "asyncio.Future[bytes]", handle: bytes) -> None:
        self._future = future
        self._handle = handle

    def key_taken(self, handle: bytes) -> None:
        if not self._future.done():
            self._future.set_result(handle)

    def key_free(self) -> None:
        if not self._future.done():
            self._future.set_result(self._handle)


class MirrorFeeds:
    """What this server tells the mirrors of others."""

    def __init__(self, door: "PeerDoor") -> None:
        self._door = door
        self._watchers: dict[tuple[int, int], MirrorWatcher] = {}  # by node and number of the mirror
        door.answerers[SUBMIT] = self._submit
        door.answerers[WATCH] = self._watch
        door.hearers[UNWATCH] = self._unwatch

    async def _submit(self, link: PeerLink, content: bytes) -> bytes:
        """Join a job, or submit it if there is none; the answer is its handle."""
        submission = msgspec.msgpack.decode(content, type=MovedSubmission)
        watcher = MirrorWatcher(link, submission.mirror, self._ended) if submission.watched else None
        engine = self._door.tick_loop.begin_tick()
        try:
            job = engine.submit(
                submission.function, submission.unique, submission.payload, submission.priority, submission.background,
                watcher, submission.run_at, submission.door, submission.timeout,
                Duplicate.REPLACE if submission.replaces else Duplicate.COALESCE, submission.count, submission.reducer,
            )  # fmt: skip
        except RequestError as error:
            raise self._door.Error(str(error)) from None
        if watcher is not None:
            self._watchers[link.node, submission.mirror] = watcher
        handle = job.handle
        if job.state is RESERVING:
            resolved: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
            engine.wait_for_key(job, _Resolved(resolved, handle))
            handle = await resolved
        if submission.background:
            try:
                await self._door.tick_loop.durable()
            except NotDurableError as error:
                raise self._door.Error("the job could not be written to the store") from error
        return handle

    async def _watch(self, link: PeerLink, content: bytes) -> bytes:
        """Watch a job of this server; the answer is empty if it has ended, or is another server's."""
        number, handle = _watches.decode(content)
        engine = self._door.tick_loop.begin_tick()
        job = engine.find(handle)
        if job is None or job.id in engine.borrowed:
            return b""
        watcher = self._watchers[link.node, number] = MirrorWatcher(link, number, self._ended)
        if job.progress is not None:
            watcher.progress(job, job.progress)
        engine.watch(job, watcher)
        return job.handle

    def interrupted(self, link: PeerLink) -> None:
        """The connection to a server is lost: what happens from now on, nobody there hears."""
        for key in [key for key in self._watchers if key[0] == link.node]:
            self._door.tick_loop.engine.unwatch_all(self._watchers.pop(key))

    def _ended(self, link: PeerLink, number: int) -> None:
        """A job has ended, which was the last that its mirror heard."""
        self._watchers.pop((link.node, number), None)

    def _unwatch(self, link: PeerLink, content: bytes) -> None:
        watcher = self._watchers.pop((link.node, msgspec.msgpack.decode(content, type=int)), None)
        if watcher is not None:
            self._door.tick_loop.engine.unwatch_all(watcher)
