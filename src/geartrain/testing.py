"""For the tests of programs that use an app: no server, no worker, no waiting.

    async def test_a_new_user_is_greeted() -> None:
        async with InMemory(app) as memory:
            await register("Ada")                          # the program's own code, which submits greet("Ada")
            memory.assert_submitted(greet, "Ada")
            await memory.drain()                           # runs it, and whatever it submits
            memory.clock.advance(3600)                     # what was put off, retried or scheduled becomes due
            await memory.drain()

Calls are written and read with the task's own codec, run inside the app's middleware, and retried as a worker would
do it, except that a backoff always waits the longest that it may, so that tests know when.
"""

import dataclasses
import itertools
import weakref
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final, ParamSpec, Self, TypeVar

from geartrain.app import retry
from geartrain.app.app import App
from geartrain.app.call import Call
from geartrain.app.crons import Cron
from geartrain.app.runner import Runner
from geartrain.app.task import Task
from geartrain.app.threads import Threads
from geartrain.app.transport import Remote, Transport
from geartrain.client.job_events import Completed, Data, Event, Failed, Progressed, Warned
from geartrain.client.order import Status
from geartrain.errors import JobFailedError, JobTimeoutError
from geartrain.model import JobState

__all__ = ["Clock", "InMemory", "Submitted"]

P = ParamSpec("P")
R = TypeVar("R")

_OVER: Final = frozenset({JobState.DONE, JobState.FAILED, JobState.CANCELLED, JobState.DEAD})
# A task that submits itself would be drained for ever.
_MOST_RUNS: Final = 10_000


class Clock:
    """A time that passes when a test says so."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Let so many seconds pass."""
        if seconds < 0:
            raise ValueError("time does not go back")
        self.now += seconds


@dataclasses.dataclass(eq=False)
class Submitted(Remote):
    """A call that was submitted, and what became of it."""

    memory: "InMemory"
    submission: Call[Any]
    payload: bytes
    number: int
    state: JobState = JobState.QUEUED
    tries: int = 0  # attempts so far
    due: float = 0.0
    returned: bytes = b""
    reason: str = ""  # why it failed, the last time
    news: list[Event] = dataclasses.field(default_factory=list)

    def __repr__(self) -> str:
        return f"{self.task.name}({', '.join(self._shown())}) {self.state.name.lower()}"

    @property
    def task(self) -> Task[Any, Any]:
        return self.submission.task

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments by name, as they were handed over, defaults included."""
        return self.task.parameters.named(self.submission.args, self.submission.kwargs)

    def _shown(self) -> list[str]:
        return [f"{name}={value!r}" for name, value in self.arguments.items()]

    # As the one who submitted it sees it

    @property
    def handle(self) -> bytes:
        return f"memory:{self.number}".encode()

    async def result(self, timeout: float | None) -> bytes:
        if not self.submission.background:
            await self.memory.run_until(self)
        if self.state is JobState.DONE:
            return self.returned
        if self.state not in _OVER:
            raise JobTimeoutError(f"{self!r}: it is not over; `await memory.drain()` runs what is due")
        raise JobFailedError(f"{self!r}: {self.reason}", self.reason, data=self.reason.encode())

    async def status(self) -> Status:
        return Status(self.state not in _OVER, self.state is JobState.RUNNING)

    async def cancel(self) -> bool:
        if self.state not in (JobState.QUEUED, JobState.SCHEDULED):
            return False
        self.state, self.reason = JobState.CANCELLED, "it was cancelled"
        return True

    async def events(self) -> AsyncIterator[Event]:
        await self.memory.run_until(self)
        for event in self.news:
            yield event

    # As the task that runs sees it

    def progress(self, numerator: float, denominator: float) -> None:
        self.news.append(Progressed(numerator, denominator))

    def data(self, data: bytes) -> None:
        self.news.append(Data(data))

    def warn(self, data: bytes) -> None:
        self.news.append(Warned(data))

    async def attempts(self) -> int:
        return self.tries


class InMemory(Transport):
    """An app without servers, as long as the block runs: `with InMemory(app)` or `async with InMemory(app)`."""

    def __init__(self, app: App, now: float = 1_700_000_000.0) -> None:
        self.app = app
        self.clock = Clock(now)
        self.submitted: list[Submitted] = []  # everything, in order
        self._numbers = itertools.count(1)
        self._waiting: list[Submitted] = []
        self._next_cron: dict[str, float] = {}
        self._last_cron: dict[str, Submitted] = {}
        self._threads = Threads("geartrain-testing")
        self._runner = Runner(app.around_runs, self._threads)
        self._before: Any = None  # what the app had before the block

    # The block

    def __enter__(self) -> Self:
        app = self.app
        self._before = (app.now, app.connect, app.transports)
        app.now, app.connect, app.transports = self.clock, lambda: self, weakref.WeakKeyDictionary()
        for cron in app.crons.values():
            self._next_cron[cron.name] = cron.next_after(self.clock.now)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._before is not None, "the block was not entered"
        self.app.now, self.app.connect, self.app.transports = self._before
        self._threads.close()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()

    # What was submitted

    def of(self, task: Task[P, R]) -> list[Submitted]:
        """Every submission of a task, in order."""
        return [each for each in self.submitted if each.task.name == task.name]

    def assert_submitted(self, task: Task[P, R], *args: P.args, **kwargs: P.kwargs) -> Submitted:
        """Fail unless the task was submitted with these arguments; the last such submission."""
        wanted = task.parameters.named(args, kwargs)
        found = [each for each in self.of(task) if each.arguments == wanted]
        if not found:
            shown = ", ".join(f"{name}={value!r}" for name, value in wanted.items())
            raise AssertionError(f"{task.name}({shown}) was not submitted; {self._account(task)}")
        return found[-1]

    def assert_not_submitted(self, task: Task[P, R]) -> None:
        """Fail if the task was submitted at all."""
        if self.of(task):
            raise AssertionError(f"{task.name} was submitted; {self._account(task)}")

    def _account(self, task: Task[P, R]) -> str:
        mine = self.of(task)
        if mine:
            return "of this task there were: " + "; ".join(map(repr, mine))
        return f"there were {len(self.submitted)} submissions of other tasks" if self.submitted else "nothing was"

    # Running

    async def drain(self, forward: bool = False) -> list[Submitted]:
        """Run everything that is due, and what that submits; give what ran, in order.

        `forward` lets the time pass that delays and retries ask for, until nothing waits. Schedules do not count
        there, since they never end.
        """
        ran: list[Submitted] = []
        while True:
            self._fire_crons()
            job = self._next_due()
            if job is None:
                if not forward or not self._waiting:
                    return ran
                self.clock.now = max(self.clock.now, min(each.due for each in self._waiting))
                continue
            if len(ran) >= _MOST_RUNS:
                raise AssertionError(f"{_MOST_RUNS} tasks ran and there are still more: does one submit itself?")
            ran.append(job)
            await self._attempt(job)

    def drain_sync(self, forward: bool = False) -> list[Submitted]:
        """The same for tests without an event loop."""
        return self.app.wait(self.drain(forward))

    async def run_until(self, job: Submitted) -> None:
        """Run what is due, letting time pass if need be, until this one is over."""
        for _ in range(_MOST_RUNS):
            if job.state in _OVER:
                return
            if job.state is JobState.RUNNING:
                raise AssertionError(f"{job!r} waits for itself")
            await self.drain()
            if job in self._waiting:
                self.clock.now = max(self.clock.now, job.due)

    def _next_due(self) -> Submitted | None:
        self._waiting = [each for each in self._waiting if each.state not in _OVER]
        due = [each for each in self._waiting if each.due <= self.clock.now]
        if not due:
            return None
        first = min(due, key=lambda each: (each.submission.priority, each.due, each.number))
        self._waiting.remove(first)
        return first

    async def _attempt(self, job: Submitted) -> None:
        job.state = JobState.RUNNING
        job.tries += 1
        ending = await self._runner.run(job.task, job)
        if ending.error is None:
            job.state, job.returned = JobState.DONE, ending.result
            job.news.append(Completed(ending.result))
            return
        job.reason = retry.reason_of(ending.error)
        delay = job.task.terms.policy.delay_after(ending.error, job.tries, lambda shortest, longest: longest)
        if delay is not None:
            job.state, job.due = JobState.SCHEDULED, self.clock.now + delay
            self._waiting.append(job)
            return
        job.state = JobState.DEAD if job.submission.background else JobState.FAILED
        job.news.append(Failed(job.reason, data=job.reason.encode()))

    # Schedules

    def _fire_crons(self) -> None:
        for cron in self.app.crons.values():
            moment = self._next_cron.setdefault(cron.name, cron.next_after(self.clock.now))
            while moment <= self.clock.now:
                self._fire(cron)
                moment = cron.next_after(moment)
            self._next_cron[cron.name] = moment

    def _fire(self, cron: Cron) -> None:
        last = self._last_cron.get(cron.name)
        if cron.unique and last is not None and last.state not in _OVER:
            return
        self._last_cron[cron.name] = self._take(cron.call)

    # The transport

    async def submit(self, call: Call[Any]) -> Remote:
        return self._take(call)

    async def submit_many(self, calls: Iterable[Call[Any]]) -> list[Remote]:
        return [self._take(call) for call in calls]

    async def close(self) -> None:
        """There is nothing to hang up."""

    def _take(self, call: Call[Any]) -> Submitted:
        payload = call.payload()
        twin = self._twin(call)
        if twin is not None:
            return twin
        job = Submitted(self, call, payload, next(self._numbers), due=call.run_at or self.clock.now)
        if call.run_at > self.clock.now:
            job.state = JobState.SCHEDULED
        self.submitted.append(job)
        self._waiting.append(job)
        return job

    def _twin(self, call: Call[Any]) -> Submitted | None:
        """The job with the same unique key that is not over, if there is one."""
        if not call.unique:
            return None
        for other in self.submitted:
            same = other.task.name == call.task.name and other.submission.unique == call.unique
            if same and other.state not in _OVER:
                return other
        return None
