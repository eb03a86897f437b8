"""The thread in which a membership looks at the store, because the event loop must not wait for it."""

import threading
from typing import Protocol

from geartrain.cluster.membership import Membership


class MembershipLoop(Protocol):
    """Has a membership look regularly, from `start` to `stop`."""

    pause: float  # seconds between two looks

    def start(self) -> None: ...

    def hurry(self) -> None:
        """Look at once."""

    def stop(self) -> None:
        """Look no more, and wait for the look that is under way."""


class MembershipThread:
    """Looks in a thread of its own."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        self.pause = membership.pause
        self._stopping = threading.Event()
        self._hurry = threading.Event()
        self._thread = threading.Thread(target=self._run, name="membership", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def hurry(self) -> None:
        self._hurry.set()

    def stop(self) -> None:
        self._stopping.set()
        self._hurry.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._membership.look()
            self._hurry.wait(self.pause)
            self._hurry.clear()
