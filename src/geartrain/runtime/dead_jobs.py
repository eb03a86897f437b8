"""Limits of dead jobs: the oldest are deleted when they are too old or too many.

By default there are no limits, and a dead job stays until an operator acts on it.
"""

import math
from typing import Final

from geartrain.engine.deadlines import NEVER
from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Timer
from geartrain.engine.job import LiveJob
from geartrain.store.contract import Quota

_EVERY: Final = 60.0  # seconds between two looks at all dead jobs
_AGAIN: Final = 1.0  # seconds, if there were more than one call may delete
_MOST: Final = 1000  # deleted at once


class DeadJobLimits(Timer):
    """Deletes dead jobs that exceed a quota; a deleted job leaves a record, as one that an operator deletes."""

    def __init__(self, engine: Engine, quota: Quota) -> None:
        super().__init__()
        self._engine = engine
        self._quota = quota  # 0: no limit
        self._next = 0.0  # when to look again

    def fire(self, now: float) -> None:
        """Delete the oldest, if it is time for that."""
        if not self._engine.dead:
            self.at = NEVER
            return
        if now >= self._next:
            excess = self._excess(now)
            for job in excess[:_MOST]:
                self._engine.delete(job)
            self._next = now + (_AGAIN if len(excess) > _MOST else _EVERY)
        self.at = self._next

    def _excess(self, now: float) -> list[LiveJob]:
        """The dead jobs that are too old or too many, the oldest first."""
        dead = sorted(self._engine.dead.values(), key=_died_at)
        too_many = len(dead) - self._quota.most if self._quota.most else 0
        before = now - self._quota.seconds if self._quota.seconds else -math.inf
        return [job for number, job in enumerate(dead) if number < too_many or _died_at(job) < before]


def _died_at(job: LiveJob) -> float:
    """When its last attempt ended."""
    return job.failed_attempts[-1].ended_at if job.failed_attempts else job.submitted_at
