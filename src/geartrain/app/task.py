"""A task: a typed function that can be called directly, or submitted for a worker to run."""

import abc
import asyncio
import copy
import dataclasses
import datetime
import functools
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeVar, cast

from geartrain.app import task_log, unique_key
from geartrain.app.arguments import Parameters
from geartrain.app.call import Call
from geartrain.app.codecs import Codec
from geartrain.app.dependencies import DependencyPlan
from geartrain.app.envelope import EnvelopeReader
from geartrain.app.handle import SyncTaskHandle, TaskHandle
from geartrain.app.retry import RetryPolicy
from geartrain.app.task_limits import NO_LIMITS, TaskLimits
from geartrain.app.unique_key import PartitionRule, UniqueRule
from geartrain.client import arguments
from geartrain.client.arguments import Duration, Lifetime
from geartrain.model import Priority

if TYPE_CHECKING:
    from geartrain.app.app import App

P = ParamSpec("P")
R = TypeVar("R")

PriorityName = Priority | str


@dataclasses.dataclass(frozen=True, slots=True)
class SubmitOptions:
    """Options of one submission."""

    priority: Priority = Priority.NORMAL
    unique: UniqueRule = False
    delay: float = 0.0  # seconds from now
    at: datetime.datetime | float | None = None  # when to run; overrides the delay
    resubmit: bool = False  # submit again if the connection breaks, even if it then runs twice
    expires: Lifetime | None = None  # seconds from the submission, or when; no worker gets it from then on
    keep_for: Duration | None = None  # how long the server keeps the result of `submit` at least
    partition: PartitionRule = ""  # jobs of different partitions take turns; empty: none


@dataclasses.dataclass(frozen=True, slots=True)
class TaskOptions:
    """Options of a task that are the same for all submissions."""

    retry_policy: RetryPolicy
    codec: Codec
    timeout: float = 0.0  # of one attempt, in seconds; 0: no limit
    log_level: int = task_log.OFF  # from which on what the function logs is kept with the job
    limits: TaskLimits = NO_LIMITS
    max_share: float | None = None  # of a worker's slots; None: what the worker says


class Task(abc.ABC, Generic[P, R]):
    """The result of `@app.task`. Calling it runs the function directly; `submit` and `call` let a worker run it."""

    def __init__(
        self,
        app: "App",
        function: Callable[P, Any],
        name: str,
        task_options: TaskOptions,
        submit_options: SubmitOptions,
    ) -> None:
        functools.update_wrapper(cast(Callable[P, Any], self), function)
        self.app = app
        self.function = function
        self.name = name
        self.function_name = name.encode()  # on servers
        self.retry_policy = task_options.retry_policy
        self.codec = task_options.codec  # of arguments and results
        self.timeout = task_options.timeout
        self.log_level = task_options.log_level
        self.limits = task_options.limits
        self.max_share = task_options.max_share
        self.submit_options = submit_options
        self.parameters = Parameters(function, self.codec.checks_types)
        unique_key.check_partition(submit_options.partition, self.parameters)
        self.reader = EnvelopeReader(self.codec)
        self._read_result: Callable[[bytes], R] | None = None
        self._plan: DependencyPlan | None = None

    def __repr__(self) -> str:
        return f"<Task {self.name}>"

    def options(
        self,
        *,
        priority: PriorityName | None = None,
        unique: UniqueRule | None = None,
        delay: float | None = None,
        at: datetime.datetime | float | None = None,
        resubmit: bool | None = None,
        expires: Lifetime | None = None,
        keep_for: Duration | None = None,
        partition: PartitionRule | None = None,
    ) -> Self:
        """The same task with other options for submissions.

        >>> from geartrain.app import App
        >>> app = App("shop")
        >>> @app.task
        ... def greet(name: str) -> str:
        ...     return f"Hello, {name}"
        >>> greet.options(priority="high", unique="greet-{name}").bind("Ada").unique
        b'greet-Ada'

        `with_options` is the same method under its older name.
        """
        arguments.keep_seconds(keep_for)  # these raise a ValueError now, not at the submission
        if partition is not None:
            unique_key.check_partition(partition, self.parameters)
        options = {
            "unique": unique, "delay": delay, "at": at, "resubmit": resubmit, "expires": expires, "keep_for": keep_for,
            "partition": partition,
        }  # fmt: skip
        changes: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        if priority is not None:
            changes["priority"] = parse_priority(priority)
        other = copy.copy(self)
        other.submit_options = dataclasses.replace(self.submit_options, **changes)
        return other

    with_options = options

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """A call that is not submitted yet; `app.submit_many` submits it."""
        return self._bound(args, kwargs, background=True)

    async def submit(self, *args: P.args, **kwargs: P.kwargs) -> TaskHandle[R]:
        """Submit a background job; returns when the server has it on disk."""
        return await self.app.submit(self._bound(args, kwargs, background=True))

    async def call(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Let a worker run it, and wait for the result. The job is dropped if this program ends."""
        handle = await self.app.submit(self._bound(args, kwargs, background=False))
        return await handle.result()

    async def start(self, *args: P.args, **kwargs: P.kwargs) -> TaskHandle[R]:
        """Like `call`, but return at once; the handle has progress, data and the result."""
        return await self.app.submit(self._bound(args, kwargs, background=False))

    def submit_sync(self, *args: P.args, **kwargs: P.kwargs) -> SyncTaskHandle[R]:
        """Like `submit`, for programs without an event loop."""
        return self.app.sync_handle(self.submit(*args, **kwargs))

    def call_sync(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Like `call`, for programs without an event loop."""
        return self.app.wait(self.call(*args, **kwargs))

    def start_sync(self, *args: P.args, **kwargs: P.kwargs) -> SyncTaskHandle[R]:
        """Like `start`, for programs without an event loop."""
        return self.app.sync_handle(self.start(*args, **kwargs))

    def handle(self, id: str, server: str = "") -> TaskHandle[R]:
        """A call of this task that was submitted earlier, perhaps by another program, by its TaskHandle's `handle`.

        With several servers `server` is the URL of the one that has the job; the default is the first.
        """
        job = self.app.transport().job(id.encode("utf-8", "surrogateescape"), self.function_name, server)
        return TaskHandle(job, self.name, self.read_result)

    def handle_sync(self, id: str, server: str = "") -> SyncTaskHandle[R]:
        """Like `handle`, for programs without an event loop."""

        async def find() -> TaskHandle[R]:
            return self.handle(id, server)

        return self.app.sync_handle(find())

    def read_result(self, result: bytes) -> R:
        """Decode a result into the type that the function returns."""
        if self._read_result is None:
            self._read_result = self.codec.decoder(self.parameters.returns)
        return self._read_result(result)

    @property
    def plan(self) -> DependencyPlan | None:
        """What has to be called for the function's dependencies; None if it has none."""
        if not self.parameters.dependencies:
            return None
        if self.app.dependency_overrides:
            return DependencyPlan(self.app, self.function)  # only tests set them, and may change them
        if self._plan is None:
            self._plan = DependencyPlan(self.app, self.function)
        return self._plan

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any], background: bool) -> Call[R]:
        self.parameters.check(args, kwargs)
        options = self.submit_options
        rule = options.unique
        unique = unique_key.unique_key(rule, self.codec, self.parameters, args, kwargs) if rule else b""
        group = options.partition
        partition = unique_key.partition(group, self.parameters, args, kwargs) if group else b""
        run_at = self._run_at(options)
        return Call(
            task=self,
            args=args,
            kwargs=kwargs,
            background=background,
            priority=options.priority,
            unique=unique,
            run_at=run_at,
            resubmit=options.resubmit,
            expires_at=arguments.expires_at(options.expires, run_at, self.app.now()),
            keep_for=arguments.keep_seconds(options.keep_for) if background else 0.0,
            partition=partition,
        )

    def _run_at(self, options: SubmitOptions) -> float:
        at = options.at
        if at is not None:
            return at.timestamp() if isinstance(at, datetime.datetime) else float(at)
        return self.app.now() + options.delay if options.delay else 0.0


class CoroutineTask(Task[P, R]):
    """A task whose function is `async def`."""

    function: Callable[P, Coroutine[Any, Any, R]]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """Run the function directly, without a server."""
        plan = self.plan
        return self.function(*args, **kwargs) if plan is None else self._with_dependencies(plan, args, kwargs)

    async def _with_dependencies(self, plan: DependencyPlan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        function: Callable[..., Coroutine[Any, Any, R]] = self.function
        async with plan.resolved(kwargs, asyncio.to_thread) as values:
            return await function(*args, **kwargs, **values)


class PlainTask(Task[P, R]):
    """A task whose function is a plain `def`; workers run it in a thread."""

    function: Callable[P, R]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function directly, without a server."""
        plan = self.plan
        if plan is None:
            return self.function(*args, **kwargs)
        if plan.needs_loop(kwargs):
            raise TypeError(f"{self.name} has async dependencies: pass them, or let a worker run the task")
        function: Callable[..., R] = self.function
        with plan.resolved_sync(kwargs) as values:
            return function(*args, **kwargs, **values)


def parse_priority(priority: PriorityName) -> Priority:
    """A priority by its name.

    >>> parse_priority("high")
    <Priority.HIGH: 0>
    """
    if isinstance(priority, Priority):
        return priority
    try:
        return Priority[priority.upper()]
    except KeyError:
        raise ValueError(f"unknown priority {priority!r}; use high, normal or low") from None
