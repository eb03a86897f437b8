"""Testing of programs that use an app: no server, no worker, no waiting.

    async def test_new_user_is_greeted() -> None:
        async with InMemory(app) as memory:
            await register("Ada")                          # the program's own code, which submits greet("Ada")
            memory.assert_submitted(greet, "Ada")
            await memory.drain()                           # runs it, and all that it submits
            memory.clock.advance(3600)                     # delayed, retried and scheduled tasks become due
            await memory.drain()

Calls are encoded and decoded with the task's codec, run with the app's middleware, and retried as in a worker, except
that backoffs have no jitter: each delay is its bound, so that tests know it. Partitions take turns. `max_running`,
`max_running_per_partition` and rates hold, by the test's clock: `drain` leaves jobs that a rate does not allow yet, and
`drain(forward=True)` lets the time pass until they have run. Limits that operators set, `max_share`, and anything else
about workers are not modelled: one job runs at a time, unless a task calls others or a test runs several.
"""

import contextlib
import dataclasses
import itertools
import math
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, ParamSpec, Self, TypeVar

from geartrain.app import lifespan, retry
from geartrain.app.app import App
from geartrain.app.call import Call
from geartrain.app.dependencies import Provider
from geartrain.app.in_memory_jobs import FINISHED, Submitted, UnknownJob, shown_arguments
from geartrain.app.in_memory_limits import InMemoryLimits
from geartrain.app.in_memory_workflows import InMemoryWorkflow, UnknownWorkflow
from geartrain.app.node import WorkflowNode
from geartrain.app.runner import TaskRunner
from geartrain.app.schedules import TaskSchedule
from geartrain.app.task import Task
from geartrain.app.threads import DaemonThreads
from geartrain.app.transport import SubmittedJob, SubmittedWorkflow, Transport
from geartrain.client.job_events import Completed, Failed
from geartrain.model import JobState

__all__ = ["Clock", "InMemory", "Submitted"]

P = ParamSpec("P")
R = TypeVar("R")

# A task that submits itself would be drained forever.
_MOST_RUNS: Final = 10_000


class Clock:
    """A clock that stands still until a test advances it.

    >>> clock = Clock(1000.0)
    >>> clock.advance(60)
    >>> clock()
    1060.0
    """

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        if seconds < 0:
            raise ValueError("the clock cannot go back")
        self.now += seconds


class InMemory(Transport):
    """Runs an app in memory for the block: `with InMemory(app)` or `async with InMemory(app)`.

    >>> app = App("shop")
    >>> @app.task
    ... def greet(name: str) -> str:
    ...     return f"Hello, {name}"
    >>> with app, InMemory(app) as memory:
    ...     handle = greet.with_options(delay=60).submit_sync("Ada")
    ...     memory.assert_submitted(greet, "Ada")
    ...     memory.clock.advance(60)
    ...     memory.drain_sync()
    ...     handle.result()
    shop.greet(name='Ada') scheduled
    [shop.greet(name='Ada') done]
    'Hello, Ada'
    """

    def __init__(
        self,
        app: App,
        now: float = 1_700_000_000.0,
        *,
        overrides: Mapping[Provider, Provider] | None = None,
        lifespan: bool = True,
    ) -> None:
        """`overrides` replace providers of dependencies; without `lifespan`, the app's startup does not run."""
        self.app = app
        self._overrides = dict(overrides or {})
        self._lifespan = contextlib.AsyncExitStack()
        self._with_lifespan = lifespan and bool(app.lifespan or app.startup_hooks or app.shutdown_hooks)
        self.clock = Clock(now)
        self.submitted: list[Submitted] = []  # all calls, in order
        self.workflows: list[InMemoryWorkflow] = []
        self._numbers = itertools.count(1)
        self._waiting: list[Submitted] = []
        self._limits = InMemoryLimits()
        self._next_due: dict[str, float | None] = {}  # of schedules
        self._started_at = self.clock.now  # intervals of schedules count from here
        self._last_run: dict[str, Submitted] = {}
        self._threads = DaemonThreads("geartrain-testing")
        self._runner = TaskRunner(app.around_runs, self._threads)
        self._before: Any = None  # the app's clock and transports before the block

    # The block

    def __enter__(self) -> Self:
        self._replace()
        if self._with_lifespan:
            self.app.wait(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._with_lifespan:
                self.app.wait(self._lifespan.aclose())
        finally:
            self._restore()

    async def __aenter__(self) -> Self:
        self._replace()
        if self._with_lifespan:
            await self._start()
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._lifespan.aclose()
        finally:
            self._restore()

    async def _start(self) -> None:
        try:
            await self._lifespan.enter_async_context(lifespan.running(self.app))
        except BaseException:
            self._restore()
            raise

    def _replace(self) -> None:
        """Put this, and the overrides, into the app."""
        app = self.app
        self._before = (app.now, app.connect, app.transports, app.dependency_overrides)
        app.now, app.connect, app.transports = self.clock, lambda: self, weakref.WeakKeyDictionary()
        app.dependency_overrides = {**app.dependency_overrides, **self._overrides}
        for schedule in app.schedules.values():
            self._next_due[schedule.name] = self._next_run(schedule, self.clock.now)

    def _restore(self) -> None:
        app = self.app
        app.now, app.connect, app.transports, app.dependency_overrides = self._before
        self._threads.close()

    # Assertions

    def of(self, task: Task[P, R]) -> list[Submitted]:
        """All submissions of a task, in order."""
        return [job for job in self.submitted if job.task.name == task.name]

    def assert_submitted(self, task: Task[P, R], *args: P.args, **kwargs: P.kwargs) -> Submitted:
        """Fail unless the task was submitted with these arguments; returns the last such submission."""
        arguments = task.parameters.named(args, kwargs)
        submissions = [job for job in self.of(task) if job.arguments == arguments]
        if not submissions:
            raise AssertionError(f"{task.name}({shown_arguments(arguments)}) was not submitted; {self._summary(task)}")
        return submissions[-1]

    def assert_not_submitted(self, task: Task[P, R]) -> None:
        """Fail if the task was submitted."""
        if self.of(task):
            raise AssertionError(f"{task.name} was submitted; {self._summary(task)}")

    def _summary(self, task: Task[P, R]) -> str:
        submissions = self.of(task)
        if submissions:
            return "submissions of this task: " + "; ".join(map(repr, submissions))
        return f"submissions of other tasks: {len(self.submitted)}"

    # Running

    async def drain(self, forward: bool = False) -> list[Submitted]:
        """Run all tasks that are due, and those that they submit; returns them in the order of their runs.

        `forward` also lets time pass until all delayed and retried tasks have run. Schedules do not count here, since
        they never end.
        """
        ran: list[Submitted] = []
        while True:
            self._run_schedules()
            job = self._next_job()
            if job is None:
                if not forward or not self._waiting:
                    return ran
                start_at = min(map(self._start_at, self._waiting))
                if start_at == math.inf:
                    return ran  # they wait for jobs that run
                self.clock.now = max(self.clock.now, start_at)
                continue
            if len(ran) >= _MOST_RUNS:
                raise AssertionError(f"more than {_MOST_RUNS} runs: does a task submit itself?")
            ran.append(job)
            await self._attempt(job)

    def drain_sync(self, forward: bool = False) -> list[Submitted]:
        """Like `drain`, for tests without an event loop."""
        return self.app.wait(self.drain(forward))

    async def run_until(self, job: Submitted) -> None:
        """Run tasks, and let time pass if needed, until this one is finished."""
        for _ in range(_MOST_RUNS):
            if job.state in FINISHED:
                return
            if job.state is JobState.RUNNING:
                raise AssertionError(f"{job!r} waits for its own result")
            await self.drain()
            if job.state is JobState.BLOCKED:
                await self.drain(forward=True)
            elif job in self._waiting:
                start_at = self._start_at(job)
                if start_at == math.inf:
                    await self._limits.wait_for_end(job)
                else:
                    self.clock.now = max(self.clock.now, start_at)

    def _start_at(self, job: Submitted) -> float:
        return max(job.due, self._limits.start_at(job))

    def _next_job(self) -> Submitted | None:
        for job in self._waiting:
            if 0 < job.submission.expires_at <= self.clock.now and job.state not in FINISHED:
                reason = "expired: no worker was free for it in time"
                job.news.append(Failed(reason, state="expired"))
                job.end(JobState.EXPIRED, reason)
        self._waiting = [job for job in self._waiting if job.state not in FINISHED]
        chosen = self._limits.choose(self._waiting, self.clock.now)
        if chosen is not None:
            self._waiting.remove(chosen)
        return chosen

    async def _attempt(self, job: Submitted) -> None:
        job.state = JobState.RUNNING
        job.tries += 1
        self._limits.started(job, self.clock.now)
        try:
            attempt = await self._runner.run(job.task, job)
        finally:
            self._limits.ended(job)
        job.logged += attempt.log if job.submission.background else ""
        if job.revoked:
            return
        if attempt.error is None:
            job.returned = attempt.result
            job.news.append(Completed(attempt.result))
            job.end(JobState.DONE)
            return
        job.reason, job.trace = retry.reason_of(attempt.error), retry.traceback_of(attempt.error)
        delay = job.task.retry_policy.delay_after(attempt.error, job.tries, lambda shortest, longest: longest)
        if delay is not None:
            job.state, job.due = JobState.SCHEDULED, self.clock.now + delay
            self._waiting.append(job)
            return
        job.news.append(Failed(job.reason, data=job.reason.encode()))
        waits_for_operator = job.submission.background and job.workflow is None
        job.end(JobState.DEAD if waits_for_operator else JobState.FAILED, job.reason)

    # Schedules

    def _run_schedules(self) -> None:
        for schedule in self.app.schedules.values():
            due = self._next_due.setdefault(schedule.name, self._next_run(schedule, self.clock.now))
            while due is not None and due <= self.clock.now:
                self._run_schedule(schedule)
                due = self._next_run(schedule, due)
            self._next_due[schedule.name] = due

    def _next_run(self, schedule: TaskSchedule, moment: float) -> float | None:
        return schedule.next_after(moment, start=self._started_at)

    def _run_schedule(self, schedule: TaskSchedule) -> None:
        last = self._last_run.get(schedule.name)
        if schedule.unique and last is not None and last.state not in FINISHED:
            return
        call = schedule.call
        if schedule.expires:
            call = dataclasses.replace(call, expires_at=self.clock.now + schedule.expires)
        self._last_run[schedule.name] = self._submit(call)

    # The transport

    async def submit(self, call: Call[Any]) -> SubmittedJob:
        return self._submit(call)

    async def submit_many(self, calls: Iterable[Call[Any]]) -> list[SubmittedJob]:
        return [self._submit(call) for call in calls]

    async def submit_workflow(self, name: str, nodes: Sequence[WorkflowNode[Any]]) -> SubmittedWorkflow:
        payloads = [node.call.payload() for node in nodes]
        workflow = InMemoryWorkflow(name, next(self._numbers), nodes)
        members = [
            Submitted(self, node.call, payload, next(self._numbers), workflow=workflow)
            for node, payload in zip(nodes, payloads, strict=True)
        ]
        self.workflows.append(workflow)
        self.submitted += members
        workflow.start(members)
        return workflow

    def workflow(self, handle: bytes, server: str) -> SubmittedWorkflow:
        found = (workflow for workflow in self.workflows if workflow.handle == handle)
        return next(found, UnknownWorkflow(handle))

    def wait_for_turn(self, job: Submitted) -> None:
        """Run a job when it is due and its turn."""
        if job not in self._waiting:
            self._waiting.append(job)

    def job(self, handle: bytes, function: bytes, server: str) -> SubmittedJob:
        for job in self.submitted:
            if job.handle == handle and (not function or job.task.function_name == function):
                return job
        return UnknownJob(handle)

    async def close(self) -> None:
        """Nothing: there is no connection."""

    def _submit(self, call: Call[Any]) -> Submitted:
        payload = call.payload()
        duplicate = self._duplicate(call)
        if duplicate is not None:
            return duplicate
        job = Submitted(self, call, payload, next(self._numbers), due=call.run_at or self.clock.now)
        if call.run_at > self.clock.now:
            job.state = JobState.SCHEDULED
        self.submitted.append(job)
        self._waiting.append(job)
        return job

    def _duplicate(self, call: Call[Any]) -> Submitted | None:
        """The unfinished job with the same unique key, if there is one."""
        if not call.unique:
            return None
        for other in self.submitted:
            same = other.task.name == call.task.name and other.submission.unique == call.unique
            if same and other.state not in FINISHED:
                return other
        return None
