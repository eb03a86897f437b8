"""The decorators `@app.task(...)` and `@app.cron(...)`: from a function to a task, with its types intact."""

import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from geartrain.app import codecs
from geartrain.app.codecs import Codec
from geartrain.app.crons import Cron
from geartrain.app.retry import RetryPolicy
from geartrain.app.task import CoroutineTask, Options, PlainTask, PriorityWord, Task, Terms, priority_of
from geartrain.app.unique_key import UniqueRule
from geartrain.backoff import Backoff
from geartrain.model import Priority

if TYPE_CHECKING:
    from geartrain.app.app import App

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=Task[..., Any])

AnyBackoff = Backoff | float
Exceptions = type[BaseException] | Sequence[type[BaseException]]
BACKOFF = Backoff()


class TaskMaker:
    """What `@app.task(...)` gives: it waits for the function."""

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
        priority: PriorityWord = "normal",
        unique: UniqueRule = False,
        resubmit: bool = False,
        codec: str | Codec | None = None,
    ) -> None:
        if retries < 0 or timeout < 0:
            raise ValueError("retries and timeout are not negative")
        self._app = app
        self._name = name
        policy = RetryPolicy(retries, as_backoff(backoff), _types(retry_on), _types(give_up_on))
        self._terms = Terms(policy, app.codec if codec is None else codecs.codec_of(codec), timeout)
        self._options = Options(priority_of(priority), unique, resubmit=resubmit)

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]]) -> CoroutineTask[P, R]: ...  # type: ignore[overload-overlap]

    @overload
    def __call__(self, function: Callable[P, R]) -> PlainTask[P, R]: ...

    def __call__(self, function: Callable[..., Any]) -> Task[Any, Any]:
        app = self._app
        name = self._name or f"{app.name}.{function.__name__}"
        if name in app.tasks:
            raise ValueError(f"the app {app.name!r} has a task {name!r} already; give one of them a name=")
        kind = CoroutineTask if inspect.iscoroutinefunction(function) else PlainTask
        task: Task[Any, Any] = kind(app, function, name, self._terms, self._options)
        app.tasks[name] = task
        return task


class CronMaker:
    """What `@app.cron(...)` gives: it waits for a task, or makes one of a function."""

    def __init__(
        self,
        app: "App",
        expression: str,
        timezone: str,
        name: str,
        unique: bool,
        priority: Priority,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> None:
        self._app = app
        self._expression = expression
        self._timezone = timezone
        self._name = name
        self._unique = unique
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
        task = function if isinstance(function, Task) else TaskMaker(app)(function)
        name = f"{app.name}/{self._name or task.function.__name__}"
        if name in app.crons:
            raise ValueError(f"the app {app.name!r} has a schedule {name!r} already; give one of them a name=")
        call = task.with_options(priority=self._priority).bind(*self._args, **self._kwargs)
        call.id = name  # the same for every run, so that telling the server again changes nothing
        app.crons[name] = Cron(name, self._expression, self._timezone, self._unique, call)
        return task


def as_backoff(backoff: AnyBackoff) -> Backoff:
    """A plain number is the base of a backoff with the default factor; the cap is never below it."""
    return backoff if isinstance(backoff, Backoff) else Backoff(base=float(backoff), cap=max(600.0, float(backoff)))


def _types(asked: Exceptions) -> tuple[type[BaseException], ...]:
    return (asked,) if isinstance(asked, type) else tuple(asked)
