"""What fails, and when: all of it follows from the seed."""

import enum
import random
from collections.abc import Iterator
from typing import NamedTuple


class FaultKind(enum.StrEnum):
    """What can fail."""

    KILL_SERVER = "kill -9 of the server"
    STOP_WORKER = "SIGSTOP of a worker"
    KILL_WORKER = "kill -9 of a worker"
    FULL_DISK = "full disk"
    DROP_CONNECTIONS = "dropped connections"
    STEP_CLOCK = "clock step"


class Fault(NamedTuple):
    """One fault of a plan."""

    kind: FaultKind
    pause: float  # seconds since the fault before it has ended
    duration: float  # seconds, of those that have an end
    chance: float  # from 0 to 1: chooses a worker, a number of connections, a size of a step


MEAN_PAUSE = 4.0  # seconds
_DURATIONS = (0.5, 4.0)  # seconds
# Where the server's clock is set to, in seconds from the real time. The last part of a run is ahead of all of them, so
# that jobs whose time was given while the clock was ahead are due.
CLOCK_OFFSETS = (-3600, -90, -5, 0, 5, 90, 3600)
LAST_CLOCK_OFFSET = 2 * 3600


def faults(seed: int, mean_pause: float = MEAN_PAUSE) -> Iterator[Fault]:
    """Faults without end. Each kind occurs once before any occurs again."""
    chance = random.Random(f"plan {seed}")
    for kind in _kinds(chance):
        pause = chance.uniform(0.3, 1.7) * mean_pause
        yield Fault(kind, pause, chance.uniform(*_DURATIONS), chance.random())


def _kinds(chance: random.Random) -> Iterator[FaultKind]:
    while True:
        deck = list(FaultKind)
        chance.shuffle(deck)
        yield from deck
