"""Clients of this server that wait for a job of another one: here a `Mirror` stands for the job.

Some have named the job, and hear what the home tells until the connection to it is lost.

Others have submitted a job whose unique key the other one has. The submission moves to the home of that job, where it
joins the job, or becomes one if that has just ended. The watchers of the mirror are those of the job that was submitted
here. If the home is lost, the mirror submits the job here, under the handle that the clients know.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

import msgspec

from geartrain.doors.peer.key_holders import KeyHolders
from geartrain.doors.peer.link import PeerLink
from geartrain.doors.peer.mirror import EVENT, Event, Mirror
from geartrain.doors.peer.mirror_feeds import SUBMIT, UNWATCH, WATCH, MirrorFeeds, MovedSubmission
from geartrain.doors.periodic import failed_attempts
from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Watcher
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import FAILED, RESERVING
from geartrain.errors import RequestError
from geartrain.model import Priority
from geartrain.runtime.other_servers import DistantJob
from geartrain.wire import peer as wire

if TYPE_CHECKING:
    from geartrain.doors.peer.door import PeerDoor

_ANSWER_SECONDS: Final = 2.0
_PATIENCE_SECONDS: Final = 60.0  # after which a job is cancelled whose key a server has that cannot be reached
_PAUSE_SECONDS: Final = 0.25

_log = logging.getLogger("geartrain.cluster")


class JoinedMirror(Mirror):
    """Its clients have submitted the job."""

    __slots__ = ("submission",)

    def __init__(self, number: int, submission: MovedSubmission) -> None:
        super().__init__(number)
        self.submission = submission


class WatchingMirror(Mirror):
    """Its client has named the job."""

    __slots__ = ("_on_loss",)

    def __init__(self, number: int, link: PeerLink, on_loss: Callable[[], None]) -> None:
        super().__init__(number)
        self.link = link
        self._on_loss = on_loss

    def lose(self) -> None:
        is_watched = self.job is not None and bool(self.job.watchers)
        super().lose()
        if is_watched:
            self._on_loss()


class Mirrors:
    """The mirrors of a server, and what it tells to those of others."""

    def __init__(self, door: "PeerDoor") -> None:
        self._door = door
        self.engine: Engine = door.tick_loop.engine
        self._mirrors: dict[int, Mirror] = {}  # by number
        self._next_number = 1
        self._feeds = MirrorFeeds(door)
        self._tasks: set[asyncio.Task[None]] = set()
        door.hearers[EVENT] = self._hear

    def close(self) -> None:
        """Ask nothing more."""
        for task in self._tasks:
            task.cancel()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _new_number(self) -> int:
        number, self._next_number = self._next_number, self._next_number + 1
        return number

    # Clients that have named the job

    async def watch(self, link: PeerLink, job: DistantJob, watcher: Watcher, on_loss: Callable[[], None]) -> bool:
        """Let a watcher hear of a job of another server; whether that has the job.

        `on_loss` is called if the connection is lost before the job has ended.
        """
        mirror = WatchingMirror(self._new_number(), link, on_loss)
        self._mirrors[mirror.number] = mirror
        try:
            question = msgspec.msgpack.encode((mirror.number, job.handle))
            is_there = bool(await self._door.ask(link, WATCH, question, _ANSWER_SECONDS))
            if not is_there or mirror.number not in self._mirrors:
                return False
            self._door.tick_loop.begin_tick()
            shown = LiveJob(
                job.id, job.handle, job.function, b"", b"", int(Priority.NORMAL), False, 0.0, self.engine.now, ""
            )
            _move(shown, [watcher])
            mirror.show(shown)
        except self._door.Error as error:
            _log.debug("job cannot be watched", extra={"fields": {"why": str(error)}})
            return False
        finally:
            if mirror.job is None:
                self._drop(mirror, link)
        return True

    # Clients that have submitted the job

    def join(self, job: LiveJob, id: int, handle: bytes) -> None:
        """Let the clients that wait for a job, which is reserving, wait for the one that has its key."""
        self._start(self._join(job, id, handle))

    async def _join(self, job: LiveJob, id: int, handle: bytes) -> None:
        replaces = _replaces(job)
        submission = MovedSubmission(
            self._new_number(), job.function, job.unique, job.payload, job.priority, job.door, job.timeout, job.reducer,
            job.background, bool(job.watchers), replaces, job.run_at if replaces else 0.0, job.count,
        )  # fmt: skip
        mirror = self._mirrors[submission.mirror] = JoinedMirror(submission.mirror, submission)
        link = self._door.link_to(id)
        if link is not None:
            try:
                taken = await self._door.ask(link, SUBMIT, msgspec.msgpack.encode(submission), _ANSWER_SECONDS)
            except self._door.Error as error:
                _log.debug("submission could not be moved", extra={"fields": {"why": str(error)}})
            else:
                self._show(mirror, link, job, taken)
                return
        del self._mirrors[mirror.number]
        await asyncio.sleep(_PAUSE_SECONDS)
        self._try_again(job, handle)

    def _try_again(self, job: LiveJob, handle: bytes) -> None:
        """The home of the other job cannot be reached. If it is gone, the key will be free; the store will tell."""
        engine = self._door.tick_loop.begin_tick()
        if engine.now - job.submitted_at < _PATIENCE_SECONDS:
            engine.reserve_again(job)
        elif engine.jobs.get(job.id) is not job or job.state is not RESERVING:
            return
        elif job.background:  # the submitter gets an error
            engine.retract(job)
        else:
            engine.give_up_key(job)
            if engine.jobs.get(job.id) is job:
                engine.cancel(job, f"job {handle.decode(errors='replace')} has its unique key, and cannot be reached")

    def _show(self, mirror: JoinedMirror, link: PeerLink, job: LiveJob, handle: bytes) -> None:
        """The submission has moved: tell the clients the handle of the job that stands for it."""
        engine = self._door.tick_loop.begin_tick()
        if engine.jobs.get(job.id) is not job:  # its clients are gone, or it was cancelled or replaced
            if engine.jobs.get(job.id) is None:
                engine.confirm(job)  # so that nobody waits for its key any more
            self._drop(mirror, link)
            return
        shown = LiveJob(
            job.id, handle, job.function, job.unique, job.payload, job.priority, False, job.run_at, job.submitted_at,
            job.door,
        )  # fmt: skip
        mirror.link = link
        _move(shown, engine.withdraw(job, handle))
        if shown.watchers:
            mirror.show(shown)
        else:
            self._mirrors.pop(mirror.number, None)

    def _drop(self, mirror: Mirror, link: PeerLink | None) -> None:
        self._mirrors.pop(mirror.number, None)
        if link is not None:
            link.send(wire.Tell(UNWATCH, msgspec.msgpack.encode(mirror.number)))

    def _hear(self, link: PeerLink, content: bytes) -> None:
        event = msgspec.msgpack.decode(content, type=Event)
        mirror = self._mirrors.get(event.mirror)
        if mirror is not None and mirror.link in (None, link):
            mirror.hear(event)
            if mirror.job is not None and not mirror.job.watchers:
                self._mirrors.pop(mirror.number, None)

    def sweep(self) -> None:
        """Let go of jobs whose clients are gone."""
        for mirror in list(self._mirrors.values()):
            if mirror.job is not None and not mirror.job.watchers:
                self._drop(mirror, mirror.link)

    def interrupted(self, link: PeerLink) -> None:
        """The connection to a server is lost: what happens from now on, nobody hears."""
        self._feeds.interrupted(link)
        for mirror in [mirror for mirror in self._mirrors.values() if mirror.link is link]:
            if isinstance(mirror, WatchingMirror):
                del self._mirrors[mirror.number]
                mirror.lose()

    def resumed(self, link: PeerLink) -> None:
        """There is a connection again: watch there what was watched, or submit it again if it has ended."""
        for mirror in self._joined(link):
            self._start(self._resume(link, mirror))

    def _joined(self, link: PeerLink) -> list[JoinedMirror]:
        mirrors = self._mirrors.values()
        return [mirror for mirror in mirrors if mirror.link is link and isinstance(mirror, JoinedMirror)]

    async def _resume(self, link: PeerLink, mirror: JoinedMirror) -> None:
        try:
            await self._door.ask(link, SUBMIT, msgspec.msgpack.encode(mirror.submission), _ANSWER_SECONDS)
        except self._door.Error as error:
            _log.debug("submission could not be moved", extra={"fields": {"why": str(error)}})
            self._door.tick_loop.begin_tick()
            mirror.link = None
            self._submit(mirror)

    def lost(self, link: PeerLink) -> None:
        """A server cannot be reached any more: run the jobs here for which clients wait."""
        for mirror in self._joined(link):
            mirror.link = None
            self._submit(mirror)

    def _submit(self, mirror: JoinedMirror) -> None:
        submission, job = mirror.submission, mirror.job
        if job is None or not job.watchers:
            self._mirrors.pop(mirror.number, None)
            return
        try:
            self.engine.submit(
                submission.function, submission.unique, submission.payload, submission.priority, False, mirror,
                door=submission.door, timeout=submission.timeout, reducer=submission.reducer,
            )  # fmt: skip
        except RequestError as error:
            job.state, job.code = FAILED, 1
            mirror.fail(job, str(error))


def _move(job: LiveJob, watchers: list[Watcher]) -> None:
    """Let these watchers watch a job that has none."""
    job.watchers = watchers
    for watcher in watchers:
        watcher.watching.add(job)


def _replaces(job: LiveJob) -> bool:
    """Whether a submission is to replace a job with its unique key, if that waits: those of Periodic are."""
    return job.door == failed_attempts.DOOR


def handler(mirrors: Mirrors, holders: KeyHolders) -> Callable[[LiveJob, Any], bool]:
    """What the committer calls when another server's job has the key of one; whether it is taken care of.

    The submission moves to that server if clients wait for it, or if it has to replace the other job. Else the other
    job stands for it, unless that has just ended.
    """

    def settle(job: LiveJob, twin: Any) -> bool:
        is_revived = mirrors.engine.is_revived(job)
        if job.background and not is_revived and not _replaces(job):
            return job.state is RESERVING and holders.ask(job, twin.id, twin.handle)
        moves = not is_revived if job.background else bool(job.watchers)
        if moves:
            mirrors.join(job, twin.id, twin.handle)
        return moves

    return settle
