"""The naive model: watchers, workers, jobs, crews and functions as plain data."""

import dataclasses

from geartrain.engine.limits import FlowLimits
from geartrain.model import Expiry
from geartrain.rates import Rate

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
    partition: bytes = b""
    after: "list[NaiveJob]" = dataclasses.field(default_factory=list)  # that it was to wait for, as it is stored
    parents: "list[NaiveJob]" = dataclasses.field(default_factory=list)  # that it still waits for
    runs_anyway: bool = False

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


@dataclasses.dataclass(eq=False)
class NaiveBucket:
    """The tokens of a rate: one for each job that starts, refilled evenly."""

    rate: Rate
    tokens: float
    filled_at: float

    def refill(self, now: float) -> None:
        self.tokens = min(self.tokens + (now - self.filled_at) / self.rate.interval, self.rate.burst)
        self.filled_at = now

    def due_at(self) -> float:
        """When there is a whole token."""
        return self.filled_at + max(1 - self.tokens, 0.0) * self.rate.interval

    def full_at(self) -> float:
        return self.filled_at + (self.rate.burst - self.tokens) * self.rate.interval


class NaiveLimited:
    """A function or a partition that may have a rate."""

    def __init__(self) -> None:
        self.bucket: NaiveBucket | None = None  # None: it is full, or there is no rate
        self.awaited: tuple[float, int] | None = None  # when it is looked at again, and the order among those

    def full_at(self, now: float) -> float:
        return now if self.bucket is None else max(self.bucket.full_at(), now)


class NaivePartition(NaiveLimited):
    """A partition that has queued jobs or, while partitions are limited, running ones or a bucket that is not full."""

    def __init__(self) -> None:
        super().__init__()
        self.held = False
        self.turns = [0, 0, 0]  # by priority: since when it waits for one


class NaiveFunction(NaiveLimited):
    def __init__(self) -> None:
        super().__init__()
        self.paused = False
        self.full = False  # at its limit when it was looked at last
        self.flow = FlowLimits()
        self.partitions: dict[bytes, NaivePartition] = {}
        self.broadcast = False
        self.limits = (0, 0, 0)
        self.crews: list[NaiveCrew] = []
        self.idle_crews: list[NaiveCrew] = []  # crews that may have idle workers, in turn
        self.waiting_since = [0, 0, 0]  # by priority: since when jobs are queued

    @property
    def rests(self) -> bool:
        return self.paused or self.full
