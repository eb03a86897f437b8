"""How a worker of an app runs: what `geartrain work` and `app.run` can say about it."""

import dataclasses
from collections.abc import Sequence
from typing import TypedDict

from geartrain.client import arguments


class WorkerKeywords(TypedDict, total=False):
    """The options that `app.run` takes: those that need no process to start another one."""

    concurrency: int
    max_share: float
    name: str
    only: Sequence[str]
    exclude: Sequence[str]
    burst: bool
    stop_timeout: float


@dataclasses.dataclass(frozen=True, slots=True)
class WorkerOptions:
    """The options of one worker process."""

    concurrency: int = 10  # tasks at a time, over all servers
    max_share: float = 1.0  # of these, for the jobs of one task that has no share of its own
    name: str = ""  # in lists of workers
    only: Sequence[str] = ()  # patterns of tasks; empty: all
    exclude: Sequence[str] = ()  # patterns of tasks
    burst: bool = False  # end when no job is left
    stop_timeout: float = 0.0  # seconds that running tasks have after a stop; 0: as long as they take
    max_tasks: int = 0  # stop after this many tasks; 0: no limit
    max_memory: int = 0  # stop when the process has this many bytes of memory; 0: no limit

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise ValueError("a worker runs at least one task at a time")
        arguments.share(self.max_share)
        if min(self.stop_timeout, self.max_tasks, self.max_memory) < 0:
            raise ValueError("the limits of a worker must not be negative")
