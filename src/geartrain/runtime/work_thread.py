"""A thread that does one piece of work after the other, in the order in which they were put.

Simulations pass in another one, whose work is done at simulated times.
"""

import queue
import sys
import threading
from collections.abc import Callable
from typing import Final

from mypy_extensions import mypyc_attr

# How long a thread may keep Python's global lock while another one waits for it. While the event loop is busy, a commit
# waits for the lock after each of its statements, so it would take several times Python's default of 5 ms.
SWITCH_SECONDS: Final = 0.0005


def tune_switching() -> None:
    """Call once, when the server is built."""
    sys.setswitchinterval(SWITCH_SECONDS)


@mypyc_attr(allow_interpreted_subclasses=True)
class WorkThread:
    """The thread, from `start` to `end`."""

    def __init__(self, name: str) -> None:
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._running = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin with the work that was put already."""
        self._running.start()

    def put(self, work: Callable[[], None]) -> None:
        """Do this after all that was put before."""
        self._work.put(work)

    def end(self) -> None:
        """Do no more after the work that was put."""
        self._work.put(None)

    def join(self) -> None:
        """Wait for its end."""
        self._running.join()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()
