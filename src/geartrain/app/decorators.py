"""The decorators `@app.task(...)` and `@app.cron(...)`: they make tasks of functions and keep their types."""

import datetime
import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from geartrain.app import codecs, task_limits, task_log
from geartrain.app.codecs import Codec
from geartrain.app.retry import RetryPolicy
from geartrain.app.schedules import MissedPolicy, TaskSchedule
from geartrain.app.task import (
    CoroutineTask,
    PlainTask,
    PriorityName,
    SubmitOptions,
    Task,
    TaskOptions,
    parse_priority,
)
from geartrain.app.task_limits import TaskLimits
from geartrain.app.unique_key import PartitionRule, UniqueRule
from geartrain.backoff import Backoff
from geartrain.client.arguments import Duration, keep_seconds, lifetime_seconds, share
from geartrain.model import Priority

if TYPE_CHECKING:
    from geartrain.app.app import App

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=Task[..., Any])

AnyBackoff = Backoff | float
Exceptions = type[BaseException] | Sequence[type[BaseException]]
BACKOFF = Backoff()


class TaskDecorator:
    """The result of `@app.task(...)`; called with the function, it makes and registers the task."""

    def __init__(
        self,
        app: "App",
        *,
        name: str = "",
        retries: int = 0,
        backoff: AnyBackoff = BACKOFF,
        retry_on: Exceptions = (Exception,),
        give_up_on: Exceptions = (),
        timeout: float = 0.0,
        priority: PriorityName = "normal",
        unique: UniqueRule = False,
        resubmit: bool = False,
        expires: Duration | None = None,
        keep_for: Duration | None = None,
        partition: PartitionRule = "",
        partition_from_unique: str | None = None,
        max_running: int | None = None,
        max_running_per_partition: int | None = None,
        rate: str | None = None,
        burst: int | None = None,
        rate_per_partition: str | None = None,
        burst_per_partition: int | None = None,
        max_share: float | None = None,
        codec: str | Codec | None = None,
        keep_logs: task_log.Level = None,
    ) -> None:
        lifetime_seconds(expires)  # these raise a ValueError now, not at the first submission
        keep_seconds(keep_for)
        limits = TaskLimits(
            max_running, max_running_per_partition, rate, burst, rate_per_partition, burst_per_partition,
            partition_from_unique,
        )  # fmt: skip
        task_limits.check(limits)
        if max_share is not None:
            share(max_share)
        if retries < 0 or timeout < 0:
            raise ValueError("retries and timeout must not be negative")
        self._app = app
        self._name = name
        self._task_options = TaskOptions(
            retry_policy=RetryPolicy(retries, as_backoff(backoff), _types(retry_on), _types(give_up_on)),
            codec=app.codec if codec is None else codecs.find_codec(codec),
            timeout=timeout,
            log_level=app.log_level if keep_logs is None else task_log.parse_level(keep_logs),
            limits=limits,
            max_share=max_share,
        )
        self._submit_options = SubmitOptions(
            parse_priority(priority), unique, resubmit=resubmit, expires=expires, keep_for=keep_for,
            partition=partition,
        )  # fmt: skip

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]]) -> CoroutineTask[P, R]: ...  # type: ignore[overload-overlap]

    @overload
    def __call__(self, function: Callable[P, R]) -> PlainTask[P, R]: ...

    def __call__(self, function: Callable[..., Any]) -> Task[Any, Any]:
        app = self._app
        name = self._name or f"{app.name}.{function.__name__}"
        if name in app.tasks:
            raise ValueError(f"app {app.name!r} already has a task {name!r}; set name= to make them differ")
        task_class = CoroutineTask if inspect.iscoroutinefunction(function) else PlainTask
        task: Task[Any, Any] = task_class(app, function, name, self._task_options, self._submit_options)
        app.tasks[name] = task
        return task


class ScheduleDecorator:
    """The result of `@app.cron(...)`; called with a task or a function, it declares the schedule."""

    def __init__(
        self,
        app: "App",
        *,
        expression: str,
        timezone: str,
        name: str,
        unique: bool,
        missed: MissedPolicy,
        priority: Priority,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> None:
        self._app = app
        self._expression = expression
        self._timezone = timezone
        self._name = name
        self._unique = unique
        self._missed: MissedPolicy = missed
        self._priority = priority
        self._args = tuple(args)
        self._kwargs = dict(kwargs)

    @overload
    def __call__(self, function: T) -> T: ...

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]]) -> CoroutineTask[P, R]: ...  # type: ignore[overload-overlap]

    @overload
    def __call__(self, function: Callable[P, R]) -> PlainTask[P, R]: ...

    def __call__(self, function: Any) -> Any:
        app = self._app
        task = function if isinstance(function, Task) else TaskDecorator(app)(function)
        name = f"{app.name}/{self._name or task.function.__name__}"
        if name in app.schedules:
            raise ValueError(f"app {app.name!r} already has a schedule {name!r}; set name= to make them differ")
        call = task.with_options(priority=self._priority).bind(*self._args, **self._kwargs)
        call.expires_at = 0.0  # each run has its own
        call.id = name  # the same for every run, so that registering again changes nothing
        app.schedules[name] = TaskSchedule(
            name=name,
            expression=self._expression,
            timezone=self._timezone,
            unique=self._unique,
            missed=self._missed,
            expires=_schedule_expiry(task),
            call=call,
        )
        return task


def _schedule_expiry(task: Task[..., Any]) -> float:
    """The time to live of each job of a schedule."""
    expires = task.submit_options.expires
    if isinstance(expires, datetime.datetime):
        raise ValueError("a schedule submits many jobs: give the time to live in seconds, not as a datetime")
    return lifetime_seconds(expires)


def as_backoff(backoff: AnyBackoff) -> Backoff:
    """A plain number is the base of a backoff with the default factor; the cap is never below it."""
    return backoff if isinstance(backoff, Backoff) else Backoff(base=float(backoff), cap=max(600.0, float(backoff)))


def _types(exceptions: Exceptions) -> tuple[type[BaseException], ...]:
    return (exceptions,) if isinstance(exceptions, type) else tuple(exceptions)
