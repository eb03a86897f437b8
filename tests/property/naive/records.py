"""The naive model: watchers, workers, jobs, crews and functions as plain data."""

import dataclasses

from geartrain.model import Expiry

NEVER = float("inf")


@dataclasses.dataclass(eq=False)
class NaiveWatcher:
    number: int
    # "quiet"; "again": submits another job when one ends, and unwatches a job that times out;
    # "angry": cancels its other jobs when one fails, and a job that times out.
    manner: str
    patience: int = 2  # how often it submits another job


@dataclasses.dataclass(eq=False)
class NaiveWorker:
    number: int
    # When woken: "slow" does nothing yet, "quick" claims, "parked" claims or sleeps again, "swift" completes.
    manner: str
    abilities: dict[bytes, tuple[float, Expiry]] = dataclasses.field(default_factory=dict)
    crew: "NaiveCrew | None" = None
    holding: "list[NaiveJob]" = dataclasses.field(default_factory=list)  # running jobs, the oldest claim first
    invited: "list[NaiveJob]" = dataclasses.field(default_factory=list)  # copies of broadcasts that it may claim
    forgiven: set[bytes] = dataclasses.field(default_factory=set)


@dataclasses.dataclass(eq=False)
class NaiveJob:
    number: int
    handle: bytes
    function: bytes
    unique: bytes
    payload: bytes
    priority: int
    background: bool
    run_at: float
    timeout: float
    count: int
    watchers: list[NaiveWatcher]
    keeps_result: bool = True
    state: str = "new"
    attempts: int = 0
    arrived: int = 0  # when it was queued
    timed: bool = False  # it was submitted with a time
    shared: bool = False  # it runs as a broadcast
    started_at: float = 0.0
    deadline: float = NEVER
    expires_at: float = NEVER

    @property
    def abandoned(self) -> bool:
        return not self.background and not self.watchers


@dataclasses.dataclass(eq=False)
class NaiveCrew:
    """Workers with the same abilities; `turns` has the functions that have jobs, by priority."""

    key: frozenset[bytes]
    own: bool = False  # of one worker that changed its abilities; no other joins
    members: list[NaiveWorker] = dataclasses.field(default_factory=list)
    asleep: list[NaiveWorker] = dataclasses.field(default_factory=list)
    turns: tuple[list[bytes], list[bytes], list[bytes]] = dataclasses.field(default_factory=lambda: ([], [], []))
    served: dict[tuple[int, bytes], int] = dataclasses.field(default_factory=dict)


class NaiveFunction:
    def __init__(self) -> None:
        self.paused = False
        self.broadcast = False
        self.limits = (0, 0, 0)
        self.crews: list[NaiveCrew] = []
        self.idle_crews: list[NaiveCrew] = []  # crews that may have idle workers, in turn
        self.waiting_since = [0, 0, 0]  # by priority: since when jobs are queued
