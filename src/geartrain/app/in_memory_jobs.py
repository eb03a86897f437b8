"""Jobs of an app that runs in memory, for tests: the program, the running task and the memory have a side of each."""

import dataclasses
import math
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, Protocol

from geartrain.app.call import Call
from geartrain.app.in_memory_workflows import InMemoryMember, InMemoryWorkflow
from geartrain.app.task import Task
from geartrain.app.transport import SubmittedJob
from geartrain.client.job_events import Completed, Data, Event, Progressed, Warned
from geartrain.client.order import Status
from geartrain.errors import ExpiredError, JobFailedError, JobTimeoutError, ResultGoneError
from geartrain.model import JobState

FINISHED: Final = frozenset({JobState.DONE, JobState.FAILED, JobState.CANCELLED, JobState.DEAD, JobState.EXPIRED})


class Moment(Protocol):
    """The test's clock, as jobs read it."""

    @property
    def now(self) -> float:
        """In seconds of the epoch."""


class Memory(Protocol):
    """What a job asks of the memory that it is in."""

    @property
    def clock(self) -> Moment:
        """Its time."""

    async def run_until(self, job: "Submitted") -> None:
        """Run jobs until this one has ended."""

    def wait_for_turn(self, job: "Submitted") -> None:
        """Let a job wait in the queue again."""


@dataclasses.dataclass(eq=False)
class Submitted(InMemoryMember):
    """A submitted call: its state, attempts and result."""

    memory: Memory
    submission: Call[Any]
    payload: bytes
    number: int
    state: JobState = JobState.QUEUED
    tries: int = 0  # attempts so far
    due: float = 0.0
    returned: bytes = b""
    reason: str = ""  # of the last failure
    trace: str = ""  # its traceback
    logged: str = ""  # by its attempts, with the option `keep_logs`
    news: list[Event] = dataclasses.field(default_factory=list)
    workflow: InMemoryWorkflow | None = None

    def __repr__(self) -> str:
        return f"{self.task.name}({shown_arguments(self.arguments)}) {self.state.name.lower()}"

    @property
    def task(self) -> Task[Any, Any]:
        return self.submission.task

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments by name, with defaults."""
        return self.task.parameters.named(self.submission.args, self.submission.kwargs)

    # The submitter's side

    @property
    def handle(self) -> bytes:
        return f"memory:{self.number}".encode()

    @property
    def server(self) -> str:
        return "memory"

    async def result(self, timeout: float | None) -> bytes:
        if not self.submission.background:
            await self.memory.run_until(self)
        if self.state is JobState.DONE:
            return self.returned
        if self.state not in FINISHED:
            raise JobTimeoutError(f"{self!r}: not finished; `await memory.drain()` runs all tasks that are due")
        error = ExpiredError if self.state is JobState.EXPIRED else JobFailedError
        raise error(f"{self!r}: {self.reason}", self.reason, data=self.reason.encode())

    async def status(self) -> Status:
        progress = next((event for event in reversed(self.news) if isinstance(event, Progressed)), None)
        numbers = (progress.numerator, progress.denominator) if progress is not None else (0.0, 0.0)
        known, running = self.state not in FINISHED, self.state is JobState.RUNNING
        return Status(known, running, *numbers, self.state.name.lower(), self.trace or self.reason)

    async def log(self) -> str:
        return self.logged

    async def cancel(self) -> bool:
        if self.state in FINISHED:
            return False
        self.end(JobState.CANCELLED, "cancelled")
        return True

    async def events(self) -> AsyncIterator[Event]:
        await self.memory.run_until(self)
        for event in self.news:
            yield event

    # The memory's side

    def end(self, state: JobState, reason: str = "") -> None:
        """It has ended; the jobs that wait for it go on, or are cancelled too."""
        self.state, self.reason = state, reason
        if self.workflow is not None:
            self.workflow.ended(self)

    def block(self) -> None:
        """Wait for other jobs of the workflow, as a new job."""
        self.state, self.due, self.tries, self.reason, self.trace = JobState.BLOCKED, math.inf, 0, "", ""
        self.memory.wait_for_turn(self)

    def release(self) -> None:
        """All that it waited for has ended."""
        self.due = max(self.submission.run_at, self.memory.clock.now)
        self.state = JobState.SCHEDULED if self.due > self.memory.clock.now else JobState.QUEUED

    # The running task's side

    async def parent_results(self, place: int, parents: Sequence[int]) -> Sequence[bytes | JobFailedError]:
        assert self.workflow is not None
        return self.workflow.results(parents)

    @property
    def revoked(self) -> bool:
        return self.state is JobState.CANCELLED

    def progress(self, numerator: float, denominator: float) -> None:
        self.news.append(Progressed(numerator, denominator))

    def data(self, data: bytes) -> None:
        self.news.append(Data(data))

    def warn(self, data: bytes) -> None:
        self.news.append(Warned(data))

    @property
    def attempt(self) -> int:
        return self.tries


class UnknownJob(SubmittedJob):
    """What a program gets for a handle that no submission has."""

    __slots__ = ("_handle",)

    def __init__(self, handle: bytes) -> None:
        self._handle = handle

    @property
    def handle(self) -> bytes:
        return self._handle

    @property
    def server(self) -> str:
        return "memory"

    async def result(self, timeout: float | None) -> bytes:
        raise ResultGoneError(f"there is no job {self._handle.decode('utf-8', 'replace')}")

    async def status(self) -> Status:
        return Status(False)

    async def log(self) -> str:
        return ""

    async def cancel(self) -> bool:
        return False

    async def events(self) -> AsyncIterator[Event]:
        yield Completed(await self.result(None))


def shown_arguments(arguments: dict[str, Any]) -> str:
    """Arguments as a call has them.

    >>> shown_arguments({"name": "Ada", "loud": True})
    "name='Ada', loud=True"
    """
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())
