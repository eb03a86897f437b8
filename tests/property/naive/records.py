"""What the naive model knows of watchers, workers, jobs, crews and functions: plain records."""

import dataclasses

from geartrain.model import Expiry

NEVER = float("inf")


@dataclasses.dataclass(eq=False)
class NaiveWatcher:
    number: int
    # "quiet"; "again": submits anew when a job ends, does not wait for one whose time ran out;
    # "angry": cancels its others when one fails, and one whose time ran out.
    manner: str
    patience: int = 2  # how often it submits anew


@dataclasses.dataclass(eq=False)
class NaiveWorker:
    number: int
    # When woken: "slow" does nothing yet, "quick" claims, "parked" claims or sleeps on, "swift" completes.
    manner: str
    abilities: dict[bytes, tuple[float, Expiry]] = dataclasses.field(default_factory=dict)
    crew: "NaiveCrew | None" = None
    holding: "list[NaiveJob]" = dataclasses.field(default_factory=list)  # what it runs, oldest claim first
    invited: "list[NaiveJob]" = dataclasses.field(default_factory=list)  # broadcasts that it may fetch
    pardoned: set[bytes] = dataclasses.field(default_factory=set)


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
    arrived: int = 0  # when it got its place in the line
    timed: bool = False  # somebody chose its time
    shared: bool = False  # it runs as a broadcast
    started_at: float = 0.0
    deadline: float = NEVER

    @property
    def abandoned(self) -> bool:
        return not self.background and not self.watchers


@dataclasses.dataclass(eq=False)
class NaiveCrew:
    """Workers with the same abilities; `turns` has the functions that have jobs, by priority."""

    key: frozenset[bytes]
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
        self.calls: list[NaiveCrew] = []  # whose turn it is to be woken
        self.waiting_since = [0, 0, 0]  # by priority: since when there has been a job to hand out
