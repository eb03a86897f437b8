"""How the engine treats jobs and workers where no protocol says otherwise."""

import dataclasses

from geartrain import backoff


@dataclasses.dataclass
class Policy:
    """The engine's own settings; every one of them may be changed while it runs."""

    # A job that was given to this many workers in vain is set aside as dead. 0 means never.
    max_attempts: int = 10
    # How many sleeping workers one new job wakes.
    wake_count: int = 1
    # A woken worker that has not come for the job after this many seconds is passed over: workers serve
    # several servers at once and may be busy with another's job.
    wake_grace: float = 0.05
    # A failed job that may be tried again waits this long, doubled with every attempt up to the maximum.
    retry_delay: float = 1.0
    retry_delay_max: float = 3600.0
    # So many jobs whose time has come are moved in one tick: a million due at midnight must not hold up the rest.
    moves_per_tick: int = 2000
    # How many dead foreground jobs are remembered; background ones stay until somebody acts on them.
    dead_foreground_limit: int = 1000

    def delay_after(self, attempts: int) -> float:
        """Seconds to wait before the next attempt of a job that has failed `attempts` times."""
        return backoff.delay(attempts, self.retry_delay, self.retry_delay_max)
