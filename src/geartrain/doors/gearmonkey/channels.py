"""Publish and subscribe: `channel:{FN}` has events of all jobs of a function, from every door."""

import re
from typing import TYPE_CHECKING, Final

from geartrain.doors.gearmonkey import glob
from geartrain.engine.interfaces import Observer
from geartrain.engine.job import LiveJob, Progress
from geartrain.model import JobState

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection
    from geartrain.doors.gearmonkey.door import GearmonkeyDoor

_OWN_EVENT: Final = re.compile(rb"(create|start|finish):[0-9]+")
FINISH: Final = re.compile(rb"finish:([1-9][0-9]{0,17})")  # the event, with the job's id
_WAITING: Final = (JobState.QUEUED, JobState.SCHEDULED)

Subscribers = dict[bytes, dict["GearmonkeyConnection", None]]


class Channels:
    """The subscribers of every channel and pattern."""

    def __init__(self) -> None:
        self.by_name: Subscribers = {}
        self.by_pattern: Subscribers = {}

    def __bool__(self) -> bool:
        return bool(self.by_name or self.by_pattern)

    def publish(self, channel: bytes, message: bytes) -> int:
        """Send a message to the subscribers of a channel; returns their number."""
        listeners = self.by_name.get(channel, {})
        for connection in listeners:
            connection.push([b"message", channel, message])
        count = len(listeners)
        for pattern, others in self.by_pattern.items():
            if glob.matches(pattern, channel):
                count += len(others)
                for connection in others:
                    connection.push([b"pmessage", pattern, channel, message])
        return count

    def receivers(self, channel: bytes) -> int:
        """The number of subscribers of a channel."""
        patterns = (others for pattern, others in self.by_pattern.items() if glob.matches(pattern, channel))
        return len(self.by_name.get(channel, ())) + sum(map(len, patterns))

    def relay(self, channel: bytes, message: bytes) -> int:
        """PUBLISH from a program. Job events are dropped, because the engine publishes each of them itself."""
        if _OWN_EVENT.fullmatch(message):
            return self.receivers(channel)
        return self.publish(channel, message)


def add_subscriber(subscribers: Subscribers, name: bytes, connection: "GearmonkeyConnection") -> None:
    """Add a subscriber."""
    subscribers.setdefault(name, {})[connection] = None


def remove_subscriber(subscribers: Subscribers, name: bytes, connection: "GearmonkeyConnection") -> None:
    """Remove a subscriber."""
    listeners = subscribers.get(name)
    if listeners is not None:
        listeners.pop(connection, None)
        if not listeners:
            del subscribers[name]


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
        if channels:
            channels.publish(b"channel:" + job.function, b"%b:%d" % (event, job.id))
