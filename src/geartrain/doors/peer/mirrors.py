"""Clients of this server that wait for a job of another one, because it has the unique key of the job they submitted.

The submission moves to the home of that job, where it joins the job, or becomes one if that has just ended. Here a
`Mirror` stands for the job: its watchers are those of the job that was submitted here, and they hear what the home
tells. If the home is lost, the mirror submits the job here, under the handle that the clients know.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from geartrain.doors.peer.link import PeerLink
from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import KeyWaiter, Watcher
from geartrain.engine.job import LiveJob, Progress
from geartrain.engine.lifecycle import FAILED, RESERVING, RUNNING
from geartrain.errors import RequestError
from geartrain.model import JobState
from geartrain.wire import peer as wire

if TYPE_CHECKING:
    from geartrain.doors.peer.door import PeerDoor

SUBMIT: Final = "submit"  # as a question
EVENT: Final = "event"  # as something that is told
UNWATCH: Final = "unwatch"
_ANSWER_SECONDS: Final = 2.0
_PATIENCE_SECONDS: Final = 60.0  # after which a job is cancelled whose key a server has that cannot be reached
_PAUSE_SECONDS: Final = 0.25

_log = logging.getLogger("geartrain.cluster")


class MovedSubmission(msgspec.Struct, array_like=True):
    """A foreground job as it was submitted."""

    mirror: int  # the number by which the server that has the clients knows them
    function: bytes
    unique: bytes
    payload: bytes
    priority: int
    door: str
    timeout: float
    reducer: bytes


class Event(msgspec.Struct, array_like=True):
    """What happened to a job that a mirror watches: the name of a watcher's method, and its arguments."""

    mirror: int
    what: str
    data: bytes = b""
    numbers: list[int] = []
    reason: str = ""
    code: int = 0
    state: int = 0


class Mirror(Watcher):
    """A job of another server, with clients of this one."""

    __slots__ = ("_early", "job", "link", "number", "submission")

    def __init__(self, number: int, submission: MovedSubmission) -> None:
        super().__init__()
        self.number = number
        self.submission = submission
        self.link: PeerLink | None = None  # to the home; None: the job is at this server
        self.job: LiveJob | None = None  # outside of the engine's tables; None: the clients do not know the handle yet
        self._early: list[Event] = []  # that came before that

    def show(self, job: LiveJob) -> None:
        """The clients know the handle: they hear what has happened."""
        self.job = job
        early, self._early = self._early, []
        for event in early:
            self.hear(event)

    def hear(self, event: Event) -> None:
        """Something has happened to the job at its home."""
        if self.job is None:
            self._early.append(event)
            return
        handler = _HANDLERS.get(event.what)
        if handler is not None:
            handler(self, self.job, event)

    def _watchers(self) -> list[Watcher]:
        return list((self.job.watchers if self.job is not None else None) or ())

    def _end(self) -> list[Watcher]:
        """The job has ended: it is watched no longer."""
        watchers, job = self._watchers(), self.job
        if job is not None:
            job.watchers = None
            for watcher in watchers:
                watcher.watching.discard(job)
        return watchers

    def progress(self, job: LiveJob, progress: Progress) -> None:
        if self.job is not None:
            self.job.progress = progress
            for watcher in self._watchers():
                watcher.progress(self.job, progress)

    def data(self, job: LiveJob, data: bytes) -> None:
        if self.job is not None:
            for watcher in self._watchers():
                watcher.data(self.job, data)

    def warning(self, job: LiveJob, data: bytes) -> None:
        if self.job is not None:
            for watcher in self._watchers():
                watcher.warning(self.job, data)

    def complete(self, job: LiveJob, result: bytes) -> None:
        if self.job is not None:
            for watcher in self._end():
                watcher.complete(self.job, result)

    def fail(self, job: LiveJob, reason: str) -> None:
        if self.job is not None:
            self.job.state, self.job.code = job.state, job.code
            for watcher in self._end():
                watcher.fail(self.job, reason)

    def exception(self, job: LiveJob, data: bytes) -> None:
        if self.job is not None:
            self.job.reason, self.job.code = job.reason, job.code
            for watcher in self._end():
                watcher.exception(self.job, data)

    def _hear_progress(self, job: LiveJob, event: Event) -> None:
        self.progress(job, Progress(event.numbers[0], event.numbers[1], event.numbers[2], event.data))

    def _hear_data(self, job: LiveJob, event: Event) -> None:
        self.data(job, event.data)

    def _hear_warning(self, job: LiveJob, event: Event) -> None:
        self.warning(job, event.data)

    def _hear_complete(self, job: LiveJob, event: Event) -> None:
        self.complete(job, event.data)

    def _hear_fail(self, job: LiveJob, event: Event) -> None:
        job.state, job.reason, job.code = JobState(event.state), event.reason, event.code
        self.fail(job, event.reason)

    def _hear_exception(self, job: LiveJob, event: Event) -> None:
        job.state, job.reason, job.code = FAILED, event.reason, event.code
        self.exception(job, event.data)


_HANDLERS: Final[dict[str, Callable[[Mirror, LiveJob, Event], None]]] = {
    "progress": Mirror._hear_progress,
    "data": Mirror._hear_data,
    "warning": Mirror._hear_warning,
    "complete": Mirror._hear_complete,
    "fail": Mirror._hear_fail,
    "exception": Mirror._hear_exception,
}


class MirrorWatcher(Watcher):
    """At the home: passes on what happens to a job to the server that has the clients."""

    __slots__ = ("_link", "_number", "mirrors")

    def __init__(self, mirrors: "Mirrors", link: PeerLink, number: int) -> None:
        super().__init__()
        self.mirrors = mirrors
        self._link = link
        self._number = number

    def progress(self, job: LiveJob, progress: Progress) -> None:
        numbers = [progress.numerator, progress.denominator, progress.seconds_left]
        self._tell("progress", progress.verbatim, numbers)

    def data(self, job: LiveJob, data: bytes) -> None:
        self._tell("data", data)

    def warning(self, job: LiveJob, data: bytes) -> None:
        self._tell("warning", data)

    def complete(self, job: LiveJob, result: bytes) -> None:
        self._tell("complete", result)
        self.mirrors.ended(self._link, self._number)

    def fail(self, job: LiveJob, reason: str) -> None:
        self._tell("fail", reason=reason, code=job.code, state=job.state)
        self.mirrors.ended(self._link, self._number)

    def exception(self, job: LiveJob, data: bytes) -> None:
        self._tell("exception", data, reason=job.reason, code=job.code)
        self.mirrors.ended(self._link, self._number)

    def _tell(
        self, what: str, data: bytes = b"", numbers: list[int] | None = None, reason: str = "", code: int = 0,
        state: int = 0,
    ) -> None:  # fmt: skip
        event = Event(self._number, what, data, numbers or [], reason, code, int(state))
        self._link.send(wire.Tell(EVENT, msgspec.msgpack.encode(event)))


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


class Mirrors:
    """The mirrors of a server, and what it tells to those of others."""

    def __init__(self, door: "PeerDoor") -> None:
        self._door = door
        self._engine: Engine = door.tick_loop.engine
        self._mirrors: dict[int, Mirror] = {}  # by number
        self._next_number = 1
        self._watchers: dict[tuple[int, int], MirrorWatcher] = {}  # at home, by node and number
        self._tasks: set[asyncio.Task[None]] = set()
        door.answerers[SUBMIT] = self._answer
        door.hearers[EVENT] = self._hear
        door.hearers[UNWATCH] = self._unwatch

    def close(self) -> None:
        """Ask nothing more."""
        for task in self._tasks:
            task.cancel()

    # At the server that has the clients

    def join(self, job: LiveJob, id: int, handle: bytes) -> None:
        """Let the clients that wait for a job, which is reserving, wait for the one that has its key."""
        task = asyncio.ensure_future(self._join(job, id, handle))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _join(self, job: LiveJob, id: int, handle: bytes) -> None:
        submission = MovedSubmission(
            self._next_number, job.function, job.unique, job.payload, job.priority, job.door, job.timeout, job.reducer
        )
        self._next_number += 1
        mirror = self._mirrors[submission.mirror] = Mirror(submission.mirror, submission)
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
        elif engine.jobs.get(job.id) is job and job.state is RESERVING:
            engine.give_up_key(job)
            if engine.jobs.get(job.id) is job:
                engine.cancel(job, f"job {handle.decode(errors='replace')} has its unique key, and cannot be reached")

    def _show(self, mirror: Mirror, link: PeerLink, job: LiveJob, handle: bytes) -> None:
        """The submission has moved: tell the clients the handle of the job that stands for it."""
        engine = self._door.tick_loop.begin_tick()
        if engine.jobs.get(job.id) is not job:  # its clients are gone
            self._drop(mirror, link)
            return
        shown = LiveJob(
            job.id, handle, job.function, job.unique, job.payload, job.priority, False, job.run_at, job.submitted_at,
            job.door,
        )  # fmt: skip
        shown.state = RUNNING  # so that the engine does not end it when its last watcher is gone
        mirror.link = link
        watchers = engine.withdraw(job, handle)
        shown.watchers = watchers
        for watcher in watchers:
            watcher.watching.add(shown)
        mirror.show(shown)

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
        """The connection to a server is lost: what happens from now on, nobody there hears."""
        for key in [key for key in self._watchers if key[0] == link.node]:
            self._engine.unwatch_all(self._watchers.pop(key))

    def resumed(self, link: PeerLink) -> None:
        """There is a connection again: watch there what was watched, or submit it again if it has ended."""
        for mirror in [mirror for mirror in self._mirrors.values() if mirror.link is link]:
            task = asyncio.ensure_future(self._resume(link, mirror))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _resume(self, link: PeerLink, mirror: Mirror) -> None:
        try:
            await self._door.ask(link, SUBMIT, msgspec.msgpack.encode(mirror.submission), _ANSWER_SECONDS)
        except self._door.Error as error:
            _log.debug("submission could not be moved", extra={"fields": {"why": str(error)}})
            self._door.tick_loop.begin_tick()
            mirror.link = None
            self._submit(mirror)

    def lost(self, link: PeerLink) -> None:
        """A server cannot be reached any more: run the jobs here for which clients wait."""
        for mirror in [mirror for mirror in self._mirrors.values() if mirror.link is link]:
            mirror.link = None
            self._submit(mirror)

    def _submit(self, mirror: Mirror) -> None:
        submission, job = mirror.submission, mirror.job
        if job is None or not job.watchers:
            self._mirrors.pop(mirror.number, None)
            return
        try:
            self._engine.submit(
                submission.function, submission.unique, submission.payload, submission.priority, False, mirror,
                door=submission.door, timeout=submission.timeout, reducer=submission.reducer,
            )  # fmt: skip
        except RequestError as error:
            job.state, job.code = FAILED, 1
            mirror.fail(job, str(error))

    # At the home

    async def _answer(self, link: PeerLink, content: bytes) -> bytes:
        submission = msgspec.msgpack.decode(content, type=MovedSubmission)
        watcher = MirrorWatcher(self, link, submission.mirror)
        engine = self._door.tick_loop.begin_tick()
        try:
            job = engine.submit(
                submission.function, submission.unique, submission.payload, submission.priority, False, watcher,
                door=submission.door, timeout=submission.timeout, reducer=submission.reducer,
            )  # fmt: skip
        except RequestError as error:
            raise self._door.Error(str(error)) from None
        self._watchers[link.node, submission.mirror] = watcher
        if job.state is not RESERVING:
            return job.handle
        resolved: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        engine.wait_for_key(job, _Resolved(resolved, job.handle))
        return await resolved

    def ended(self, link: PeerLink, number: int) -> None:
        """A job has ended, which was the last that its mirror heard."""
        self._watchers.pop((link.node, number), None)

    def _unwatch(self, link: PeerLink, content: bytes) -> None:
        watcher = self._watchers.pop((link.node, msgspec.msgpack.decode(content, type=int)), None)
        if watcher is not None:
            self._engine.unwatch_all(watcher)


def handler(mirrors: Mirrors) -> Callable[[LiveJob, Any], None]:
    """What the committer calls when another server's job has the key of one that clients wait for."""
    return lambda job, twin: mirrors.join(job, twin.id, twin.handle)
