"""What servers of a cluster tell each other: everything when a link is new, and then what changes."""

import time
from collections.abc import Callable
from typing import Final

from geartrain.doors.peer.door import PeerDoor
from geartrain.doors.peer.link import PeerLink
from geartrain.runtime.timers import DelayedCall
from geartrain.wire import peer as wire

_SHARE: Final = 0.01  # of the time that looking for changes may take, at most


class Gossip:
    """Looks for changes at intervals, and sends what a topic has to say.

    Looking may visit every function, so it is done less often where there are very many.
    """

    def __init__(
        self,
        peers: PeerDoor,
        topic: str,
        seconds: float,
        look: Callable[[], None],
        whole: Callable[[], bytes],
        hear: Callable[[PeerLink, bytes], None],
    ) -> None:
        """Call `look` every `seconds` or less often; a new link is told `whole`, since earlier messages may be lost."""
        self._peers = peers
        self._topic = topic
        self._seconds = seconds
        self._look = look
        self._whole = whole
        self._timer: DelayedCall | None = None
        peers.hearers[topic] = hear
        peers.on_link.append(self._begin)
        self._plan(seconds)

    def tell(self, content: bytes) -> None:
        """Send something to all other servers."""
        self._peers.tick_loop.begin_tick()
        self._peers.tell(self._topic, content)

    def close(self) -> None:
        """Tell no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _plan(self, seconds: float) -> None:
        self._timer = self._peers.tick_loop.timers.call_later(seconds, self._look_again)

    def _look_again(self) -> None:
        began = time.perf_counter()
        self._look()
        self._plan(max(self._seconds, (time.perf_counter() - began) / _SHARE))

    def _begin(self, link: PeerLink) -> None:
        link.send(wire.Tell(self._topic, self._whole()))
