"""Publish and subscribe: `channel:{FN}` has events of all jobs of a function, from every door."""

import functools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from geartrain.doors.gearmonkey import glob, keys
from geartrain.doors.gearmonkey.distant_subscribers import DistantSubscribers, Listening
from geartrain.engine.interfaces import Observer
from geartrain.engine.job import LiveJob, Progress
from geartrain.model import JobState

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection
    from geartrain.doors.gearmonkey.door import GearmonkeyDoor

_OWN_EVENT: Final = re.compile(rb"(create|start|finish):[0-9]+")
FINISH: Final = re.compile(rb"finish:([1-9][0-9]{0,17})")  # the event, with the job's id
_MOST_PATTERNS: Final = 1000  # different ones of all connections
_MOST_REMEMBERED: Final = 10_000  # channels whose patterns are known
_WAITING: Final = (JobState.QUEUED, JobState.SCHEDULED)

Connections = dict["GearmonkeyConnection", None]


class ChannelSubscribers:
    """The subscribers by name of a channel."""

    def __init__(self) -> None:
        self._by_name: dict[bytes, Connections] = {}
        self.on_change: Callable[[bytes, int], None] | None = None  # called with a name and how many listen to it

    def __len__(self) -> int:
        return len(self._by_name)

    def get(self, name: bytes) -> Connections:
        """Those of one name."""
        return self._by_name.get(name, {})

    def check(self, names: list[bytes]) -> None:
        """Raise an error if one of these cannot be subscribed to."""

    def add(self, name: bytes, connection: "GearmonkeyConnection") -> None:
        connections = self._by_name.setdefault(name, {})
        connections[connection] = None
        self._changed(name, len(connections))

    def remove(self, name: bytes, connection: "GearmonkeyConnection") -> None:
        connections = self._by_name.get(name)
        if connections is not None:
            connections.pop(connection, None)
            if not connections:
                del self._by_name[name]
            self._changed(name, len(connections))

    def _changed(self, name: bytes, count: int) -> None:
        if self.on_change is not None:
            self.on_change(name, count)


class ChannelPatterns(ChannelSubscribers):
    """The subscribers by pattern. Which patterns match a channel is remembered until a pattern is added or removed."""

    def __init__(self) -> None:
        super().__init__()
        self.most_patterns = _MOST_PATTERNS
        self._globs: dict[bytes, glob.Glob] = {}
        self._matching: dict[bytes, list[bytes]] = {}  # patterns by channel

    def check(self, names: list[bytes]) -> None:
        """Raise an error for a pattern that is too long or has too many stars, and if there are too many patterns."""
        new = {pattern: glob.Glob(pattern) for pattern in names if pattern not in self._globs}
        if len(self._globs) + len(new) > self.most_patterns:
            raise keys.refusal(f"there are {self.most_patterns} patterns of all connections; subscribe to channels")

    def add(self, name: bytes, connection: "GearmonkeyConnection") -> None:
        super().add(name, connection)
        if name not in self._globs:
            self._globs[name] = glob.Glob(name)
            self._matching.clear()

    def remove(self, name: bytes, connection: "GearmonkeyConnection") -> None:
        super().remove(name, connection)
        if name in self._globs and not self.get(name):
            del self._globs[name]
            self._matching.clear()

    def matching(self, channel: bytes) -> list[bytes]:
        """The patterns that match a channel."""
        found = self._matching.get(channel)
        if found is None:
            if len(self._matching) >= _MOST_REMEMBERED:
                self._matching.clear()
            found = [pattern for pattern, parsed in self._globs.items() if parsed.matches(channel)]
            self._matching[channel] = found
        return found


class Channels:
    """The subscribers of every channel and pattern."""

    def __init__(self) -> None:
        self.by_name = ChannelSubscribers()
        self.by_pattern = ChannelPatterns()
        self.distant: DistantSubscribers | None = None  # of a server in a cluster

    def use(self, distant: DistantSubscribers) -> None:
        """Publish to subscribers at other servers too, and tell them who listens here."""
        self.distant = distant
        self.by_name.on_change = functools.partial(distant.note, Listening.CHANNEL)
        self.by_pattern.on_change = functools.partial(distant.note, Listening.PATTERN)

    def __bool__(self) -> bool:
        return bool(self.by_name or self.by_pattern or self.distant)

    def publish(self, channel: bytes, message: bytes) -> int:
        """Send a message to the subscribers of a channel, at every server; returns their number."""
        count = self.deliver(channel, message)
        return count + self.distant.publish(channel, message) if self.distant else count

    def deliver(self, channel: bytes, message: bytes) -> int:
        """Send a message to the subscribers at this server; returns their number."""
        connections = self.by_name.get(channel)
        for connection in connections:
            connection.push([b"message", channel, message])
        count = len(connections)
        if self.by_pattern:
            for pattern in self.by_pattern.matching(channel):
                others = self.by_pattern.get(pattern)
                count += len(others)
                for connection in others:
                    connection.push([b"pmessage", pattern, channel, message])
        return count

    def receivers(self, channel: bytes) -> int:
        """The number of subscribers of a channel."""
        patterns = self.by_pattern.matching(channel) if self.by_pattern else []
        count = len(self.by_name.get(channel)) + sum(len(self.by_pattern.get(pattern)) for pattern in patterns)
        return count + (self.distant.receivers(channel) if self.distant else 0)

    def relay(self, channel: bytes, message: bytes) -> int:
        """PUBLISH from a program. Job events are dropped, because the engine publishes each of them itself."""
        if not self:
            return 0
        if _OWN_EVENT.fullmatch(message):
            return self.receivers(channel)
        return self.publish(channel, message)


class JobEventPublisher(Observer):
    """Observes the engine for subscribers, for pops that wait for the end of a job, and for later reads of hashes."""

    def __init__(self, door: "GearmonkeyDoor") -> None:
        self._door = door

    def created(self, job: LiveJob) -> None:
        """`create`."""
        self._publish(job, b"create")

    def started(self, job: LiveJob) -> None:
        """`start`."""
        self._publish(job, b"start")

    def progress(self, job: LiveJob, progress: Progress) -> None:
        """Keep the progress of a worker of another door for the hash of the finished job."""
        door = self._door
        if job.door == door.name and job.handle not in door.popped:
            door.jobs.written.note_progress(job.id, b"%d" % progress.numerator, b"%d" % progress.denominator)

    def requeued(self, job: LiveJob, reason: str) -> None:
        """The job is no longer with a worker of this door."""
        self._left(job)

    def rescheduled(self, job: LiveJob, reason: str) -> None:
        """The same, when its worker wants it to run later."""
        self._left(job)

    def finished(self, job: LiveJob, result: bytes) -> None:
        """`finish`; the hash has the result already."""
        door = self._door
        door.scheduled.discard(job.handle)
        ours = job.door == door.name or job.handle in door.popped
        if ours or door.channels or door.blocked_pops.has_lock_of(job):
            door.jobs.finished.add(job, result, door.tick_loop.engine.now, door.jobs.written.get(job.id))
            door.popped.discard(job.handle)
        self._forget(job)
        if door.blocked_pops.count:
            door.blocked_pops.job_ended(job)
        self._publish(job, b"finish")

    def _left(self, job: LiveJob) -> None:
        self._door.popped.discard(job.handle)
        self._forget(job)

    def _forget(self, job: LiveJob) -> None:
        """Drop what belongs to an attempt and, if the job has ended and is not dead, what belongs to the job."""
        door = self._door
        if door.jobs.written:
            if job.state in _WAITING or job.state is JobState.DEAD:
                door.jobs.written.drop_report(job.id)
            else:
                door.jobs.written.remove(job.id)
        if door.ending:
            door.ending.discard(job.id)
        if door.detached:
            door.detached.job_left(job)

    def _publish(self, job: LiveJob, event: bytes) -> None:
        channels = self._door.channels
        if channels and job.id not in self._door.tick_loop.engine.borrowed:  # its home publishes what happens to it
            channels.publish(b"channel:" + job.function, b"%b:%d" % (event, job.id))
