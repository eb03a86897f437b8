"""A schedule as it is saved: when it runs, and the job that it submits."""

from typing import Final

import msgspec

from geartrain import jsonbytes
from geartrain.admin.verbs import MISSED_POLICIES
from geartrain.admin.views import PRIORITIES, ScheduleView
from geartrain.cron import UTC
from geartrain.errors import AdminError

LONGEST_NAME: Final = 200
LARGEST_PAYLOAD: Final = 1024 * 1024
LONGEST_LIFE: Final = 366 * 86_400.0  # seconds
# What becomes of runs that were missed.
SKIP: Final = "skip"
ONCE: Final = "once"
ALL: Final = "all"


class Schedule(msgspec.Struct):
    """A schedule as it is saved."""

    name: str
    expression: str
    function: bytes
    payload: bytes = b""
    priority: str = "normal"
    unique: bool = False
    timezone: str = UTC
    missed: str = ONCE
    expires: float = 0.0  # seconds that a job may wait for a worker; 0: no limit
    start: float = 0.0  # when it got its expression; `@every` counts from here
    paused: bool = False
    next_at: float | None = None
    last_at: float | None = None
    last_handle: bytes = b""

    @property
    def run(self) -> "ScheduleRun":
        """When it ran, and runs next."""
        return ScheduleRun(
            name=self.name,
            expression=self.expression,
            timezone=self.timezone,
            start=self.start,
            next_at=self.next_at,
            last_at=self.last_at,
            last_handle=self.last_handle,
        )

    def advance(self, run: "ScheduleRun") -> None:
        """Take over the runs of the same schedule, as another server or an earlier start knows them.

        A run that was submitted is never submitted again, so the later of two times is right.
        """
        if (run.expression, run.timezone, run.start) != (self.expression, self.timezone, self.start):
            return
        if self.next_at is not None:
            self.next_at = None if run.next_at is None else max(self.next_at, run.next_at)
        if (run.last_at or 0.0) > (self.last_at or 0.0):
            self.last_at, self.last_handle = run.last_at, run.last_handle

    def view(self) -> ScheduleView:
        """The schedule as operators see it."""
        return ScheduleView(
            name=self.name,
            expression=self.expression,
            timezone=self.timezone,
            function=jsonbytes.encode(self.function),
            payload=jsonbytes.encode(self.payload),
            priority=PRIORITIES[PRIORITIES.index(self.priority)],
            unique=self.unique,
            missed=self.missed,
            expires=self.expires,
            paused=self.paused,
            next_at=None if self.paused else self.next_at,
            last_at=self.last_at,
            last_handle=jsonbytes.encode(self.last_handle),
        )

    def check(self) -> None:
        """Refuse values that cannot be a schedule, with an AdminError."""
        name = self.name
        problems = (
            (
                not name or len(name) > LONGEST_NAME or not name.isprintable(),
                f"the name of a schedule must be 1 to {LONGEST_NAME} printable characters",
            ),
            (not self.function, "a schedule needs a function"),
            (
                len(self.payload) > LARGEST_PAYLOAD,
                f"the payload of a schedule must not be larger than {LARGEST_PAYLOAD} bytes",
            ),
            (
                self.priority not in PRIORITIES,
                f"unknown priority {self.priority!r}; the priorities are {', '.join(PRIORITIES)}",
            ),
            (
                self.missed not in MISSED_POLICIES,
                f"unknown policy {self.missed!r} for missed runs; the policies are {', '.join(MISSED_POLICIES)}",
            ),
            (
                not 0 <= self.expires <= LONGEST_LIFE,
                f"expires must be 0 to {LONGEST_LIFE:g} seconds, not {self.expires:g}",
            ),
        )
        for is_wrong, text in problems:
            if is_wrong:
                raise AdminError("bad-request", text)


class ScheduleRun(msgspec.Struct):
    """When a schedule ran and runs next. In a cluster it is saved by the leader alone, apart from the schedule.

    So an operator may change the schedule at any server while the leader submits a run of it, and neither is lost.
    """

    name: str
    expression: str
    timezone: str
    start: float
    next_at: float | None
    last_at: float | None
    last_handle: bytes
