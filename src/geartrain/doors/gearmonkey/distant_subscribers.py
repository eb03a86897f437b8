"""Subscribers at other servers of the cluster.

Each server tells the others which channels and patterns its connections listen to, and how many of them do. What is
published goes to the servers where somebody listens, and to no others. A pop that waits for the end of a job listens
too, without being a receiver.
"""

import enum
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from geartrain.doors.gearmonkey import glob
from geartrain.runtime.other_servers import DistantServers

_INTEREST: Final = "gearmonkey interest"
_PUBLISHED: Final = "gearmonkey published"


class Listening(enum.IntEnum):
    """How somebody listens."""

    CHANNEL = 0
    PATTERN = 1
    END = 2  # waits for the end of a job of this channel


class _Interest(msgspec.Struct, array_like=True):
    """How many listen to some names now. With `all`, nobody listens to others."""

    all: bool
    names: list[tuple[int, bytes, int]]  # kind, name and number


class _Published(msgspec.Struct, array_like=True):
    channel: bytes
    message: bytes


_interests = msgspec.msgpack.Decoder(_Interest)
_messages = msgspec.msgpack.Decoder(_Published)

Deliver = Callable[[bytes, bytes], None]


class _Listeners:
    """Those at one other server."""

    def __init__(self) -> None:
        self.counts: dict[tuple[int, bytes], int] = {}
        self._globs: dict[bytes, glob.Glob] = {}

    def update(self, interest: _Interest) -> None:
        if interest.all:
            self.counts.clear()
            self._globs.clear()
        for kind, name, count in interest.names:
            self.counts.pop((kind, name), None)
            if kind == Listening.PATTERN:
                self._globs.pop(name, None)
            if count:
                self.counts[kind, name] = count
                if kind == Listening.PATTERN:
                    self._globs[name] = glob.Glob(name)

    def receivers(self, channel: bytes) -> int:
        return sum(self._receivers(channel))

    def _receivers(self, channel: bytes) -> Iterator[int]:
        yield self.counts.get((Listening.CHANNEL, channel), 0)
        for pattern, parsed in self._globs.items():
            if parsed.matches(channel):
                yield self.counts.get((Listening.PATTERN, pattern), 0)

    def listen_to(self, channel: bytes) -> bool:
        return (Listening.END, channel) in self.counts or self.receivers(channel) > 0


class DistantSubscribers:
    """What other servers want to hear, and what they are told of this one."""

    def __init__(self, others: Callable[[], DistantServers], deliver: Deliver) -> None:
        self._others = others  # those of the tick loop, which change when the server joins
        self._deliver = deliver
        self._own: dict[tuple[int, bytes], int] = {}
        self._by_node: dict[int, _Listeners] = {}
        others().hearers[_INTEREST] = self._hear_interest
        others().hearers[_PUBLISHED] = self._hear_published
        others().on_link.append(self._introduce)

    def __bool__(self) -> bool:
        return any(listeners.counts for listeners in self._by_node.values())

    def note(self, kind: Listening, name: bytes, count: int) -> None:
        """So many connections of this server listen to a name."""
        if count:
            self._own[int(kind), name] = count
        else:
            self._own.pop((int(kind), name), None)
        if self._others().exist:
            self._tell(_Interest(False, [(int(kind), name, count)]))

    def add(self, kind: Listening, name: bytes, by: int) -> None:
        """So many more, or fewer."""
        self.note(kind, name, max(self._own.get((int(kind), name), 0) + by, 0))

    def publish(self, channel: bytes, message: bytes) -> int:
        """Send a message to the servers where somebody listens; returns the number of receivers there."""
        count = 0
        for node, listeners in self._by_node.items():
            if listeners.listen_to(channel):
                count += listeners.receivers(channel)
                content = msgspec.msgpack.encode(_Published(channel, message))
                self._others().tell(_PUBLISHED, content, node)
        return count

    def receivers(self, channel: bytes) -> int:
        """The number of subscribers of a channel at other servers."""
        return sum(listeners.receivers(channel) for listeners in self._by_node.values())

    def _introduce(self, node: int) -> None:
        """Tell a server that can be reached now everything. What it said before may be out of date."""
        self._by_node.pop(node, None)
        names = [(kind, name, count) for (kind, name), count in self._own.items()]
        self._tell(_Interest(True, names), node)

    def _tell(self, interest: _Interest, node: int = 0) -> None:
        self._others().tell(_INTEREST, msgspec.msgpack.encode(interest), node)

    def _hear_interest(self, node: int, content: bytes) -> None:
        self._by_node.setdefault(node, _Listeners()).update(_interests.decode(content))

    def _hear_published(self, node: int, content: bytes) -> None:
        published = _messages.decode(content)
        self._deliver(published.channel, published.message)
