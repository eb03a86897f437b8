"""Which way jobs of a function go between two servers, decided from what waits and who works on each side.

The rules, for a job that waits on one side, its own, and workers of the other:

- Without a worker on the other side nothing goes there.
- While its own side has no worker of its own, its jobs go to the other side at once. Twice as many are under way as the
  other side has workers, so that none of these is idle while the next job travels; more and more as long as none of
  them has to wait there, since a worker may run several jobs at once.
- While its own side has workers, they come first: a job that one of them is free for does not wait. Only when jobs have
  waited for the length of the grace without a break, so all are busy, jobs go to the other side, as many as it has
  workers, and only while nothing waits there.

So a function never goes both ways at once: one way needs workers on the side that the other way finds without any, or
with jobs that wait.
"""

from typing import Final, NamedTuple

BOTH: Final = "both"
TO_SERVER: Final = "to-server"
TO_REDIS: Final = "to-redis"
DIRECTIONS: Final = (BOTH, TO_SERVER, TO_REDIS)

_PER_WORKER: Final = 2  # jobs under way, so that a worker finds the next one when it has finished
_MOST: Final = 256


class SideState(NamedTuple):
    """A function on one side, without the bridge itself."""

    workers: int = 0
    waiting: int = 0  # jobs that were submitted there
    waited: float = 0.0  # seconds for which there has always been such a job
    brought: int = 0  # jobs of the other side that wait there


def most_under_way(own: SideState, other: SideState, grace: float, before: int = 0) -> int:
    """How many jobs of one side may be under way on the other; `before` is what it was at the last look.

    >>> most_under_way(SideState(workers=0), SideState(workers=3), grace=2.0)
    6
    >>> most_under_way(SideState(workers=5, waiting=8, waited=0.5), SideState(workers=3), grace=2.0)
    0
    >>> most_under_way(SideState(workers=5, waiting=8, waited=2.5), SideState(workers=3), grace=2.0)
    3
    """
    if not other.workers:
        return 0
    if not own.workers:
        return _without_own_workers(own, other, before)
    has_free_worker = not own.waiting or own.waited < grace
    return 0 if has_free_worker or other.waiting + other.brought else other.workers


def _without_own_workers(own: SideState, other: SideState, before: int) -> int:
    least = _PER_WORKER * other.workers
    if own.waiting and not other.brought:
        return max(least, min(before * 2, _MOST))
    if other.brought > least:
        return max(least, before // 2)
    return max(least, before)


def is_stranded(own: SideState, other: SideState) -> bool:
    """Whether jobs of one side wait on the other, while a worker of their own side is free."""
    return bool(other.brought and own.workers and not own.waiting)
