"""Publish and subscribe: `channel:{FN}` tells of every job of a function, whichever door it came by."""

import re
from typing import TYPE_CHECKING, Final

from geartrain.doors.gearmonkey import glob
from geartrain.engine.interfaces import Observer
from geartrain.engine.job import LiveJob

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection
    from geartrain.doors.gearmonkey.door import GearmonkeyDoor

_OWN_EVENT: Final = re.compile(rb"(create|start|finish):[0-9]+")

Subscribers = dict[bytes, dict["GearmonkeyConnection", None]]


class Channels:
    """Who listens where."""

    def __init__(self) -> None:
        self.by_name: Subscribers = {}
        self.by_pattern: Subscribers = {}

    def __bool__(self) -> bool:
        return bool(self.by_name or self.by_pattern)

    def publish(self, channel: bytes, message: bytes) -> int:
        """Tell everybody who listens; returns how many that are."""
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
        """How many listen."""
        patterns = (others for pattern, others in self.by_pattern.items() if glob.matches(pattern, channel))
        return len(self.by_name.get(channel, ())) + sum(map(len, patterns))

    def relay(self, channel: bytes, message: bytes) -> int:
        """A program publishes. The events of jobs are the engine's to tell, and each is told once."""
        if _OWN_EVENT.fullmatch(message):
            return self.receivers(channel)
        return self.publish(channel, message)


def listen(subscribers: Subscribers, name: bytes, connection: "GearmonkeyConnection") -> None:
    """One more listens there."""
    subscribers.setdefault(name, {})[connection] = None


def leave(subscribers: Subscribers, name: bytes, connection: "GearmonkeyConnection") -> None:
    """One fewer."""
    listeners = subscribers.get(name)
    if listeners is not None:
        listeners.pop(connection, None)
        if not listeners:
            del subscribers[name]


class Events(Observer):
    """The engine's news: for subscribers, for clients that wait for the end of a job, and for who asks later."""

    def __init__(self, door: "GearmonkeyDoor") -> None:
        self._door = door

    def created(self, job: LiveJob) -> None:
        """`create`."""
        self._tell(job, b"create")

    def started(self, job: LiveJob) -> None:
        """`start`."""
        self._tell(job, b"start")

    def finished(self, job: LiveJob, result: bytes) -> None:
        """`finish`; the hash says already what came of it."""
        door = self._door
        door.scheduled.discard(job.handle)
        door.outputs.pop(job.handle, None)
        ours = job.door == door.name or job.handle in door.popped
        if ours or door.channels or door.waits.concern(job):
            door.jobs.endings.remember(job, result, door.tick_loop.engine.now)
            door.popped.discard(job.handle)
        if door.waits.count:
            door.waits.job_over(job)
        self._tell(job, b"finish")

    def _tell(self, job: LiveJob, what: bytes) -> None:
        channels = self._door.channels
        if channels:
            channels.publish(b"channel:" + job.function, b"%b:%d" % (what, job.id))
