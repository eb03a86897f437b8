"""The engine's settings: attempts, failures, retries, waking and limits; and those of single functions."""

import dataclasses
import sys
from typing import Final, NamedTuple

from geartrain.engine.limits import FlowLimits
from geartrain.model import FailureAction

JOB_BYTES: Final = 512  # what a job takes besides its payload, rounded up


class FunctionPolicy(NamedTuple):
    """Settings of one function; None: those of the engine or the server apply."""

    failures: FailureAction | None = None  # what becomes of background jobs that fail
    keep_for: float | None = None  # seconds that records of done and cancelled jobs are kept
    keep_failed_for: float | None = None  # the same, of failed jobs
    max_run: float | None = None  # seconds that a worker may take for a job, whatever it says itself; 0: no limit
    limits: FlowLimits = FlowLimits()  # of its running jobs


@dataclasses.dataclass
class Policy:
    """Settings of the engine; each may be changed while it runs.

    >>> policy = Policy(retry_delay=2.0, retry_delay_max=60.0)
    >>> [policy.delay_after(attempts) for attempts in (1, 2, 3, 10)]
    [2.0, 4.0, 8.0, 60.0]
    """

    # A job is dead after this many attempts. 0: no limit.
    max_attempts: int = 10
    # What becomes of background jobs that fail.
    failures: FailureAction = FailureAction.KEEP
    # How many idle workers a new job wakes.
    wake_count: int = 1
    # If jobs are still queued this many seconds after a worker was woken, another one is woken: a worker may serve
    # several servers and be busy with a job of another one.
    wake_grace: float = 0.05
    # Seconds before a failed job is retried, doubled with every attempt up to the maximum.
    retry_delay: float = 1.0
    retry_delay_max: float = 3600.0
    # At most this many due jobs are moved per tick, so that a million jobs due at midnight do not block the server.
    moves_per_tick: int = 2000
    # How many functions there may be, not counting those that a restart brings back.
    max_functions: int = 100_000
    # Seconds after which a function that nothing uses is forgotten; 0: never.
    forget_functions_after: float = 0.0
    # How many functions have histograms of their own of the times that their jobs wait and run.
    measured_functions: int = 1000
    # How many functions one worker may offer.
    max_abilities: int = 10_000
    # How many bytes all jobs may have together: their payloads, and JOB_BYTES for each. Dead jobs count. The engine
    # reads it once.
    max_queued_bytes: int = sys.maxsize
    # How many jobs a workflow may have.
    max_workflow_jobs: int = 1_000_000
    # How many dead foreground jobs are kept; dead background jobs stay until an operator acts on them.
    dead_foreground_limit: int = 1000

    def delay_after(self, attempts: int) -> float:
        """Seconds before the next attempt of a job that has failed `attempts` times."""
        exponent = min(max(attempts, 1) - 1, 32)
        return float(min(self.retry_delay * 2**exponent, self.retry_delay_max))
