"""A task: a typed function that can be called here, or submitted to be run by a worker elsewhere."""

import abc
import copy
import dataclasses
import datetime
import functools
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeVar, cast

from geartrain.app import unique_key
from geartrain.app.arguments import Parameters
from geartrain.app.call import Call
from geartrain.app.codecs import Codec
from geartrain.app.envelope import Reader
from geartrain.app.handle import SyncTaskHandle, TaskHandle
from geartrain.app.retry import RetryPolicy
from geartrain.app.unique_key import UniqueRule
from geartrain.model import Priority

if TYPE_CHECKING:
    from geartrain.app.app import App

P = ParamSpec("P")
R = TypeVar("R")

PriorityWord = Priority | str


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """What may differ from one submission to the next."""

    priority: Priority = Priority.NORMAL
    unique: UniqueRule = False
    delay: float = 0.0  # seconds from now
    at: datetime.datetime | float | None = None  # when to run; overrules the delay
    resubmit: bool = False  # a call whose connection broke may be submitted again, though it may run twice then


@dataclasses.dataclass(frozen=True, slots=True)
class Terms:
    """What belongs to a task for good."""

    policy: RetryPolicy
    codec: Codec
    timeout: float = 0.0  # seconds that one attempt may take; 0: no limit


class Task(abc.ABC, Generic[P, R]):
    """Made by `@app.task`. Calling it runs the function here; `submit` and `call` have a worker run it."""

    def __init__(self, app: "App", function: Callable[P, Any], name: str, terms: Terms, options: Options) -> None:
        functools.update_wrapper(cast(Callable[P, Any], self), function)
        self.app = app
        self.function = function
        self.name = name
        self.function_name = name.encode()  # as servers know it
        self.terms = terms
        self.options = options
        self.parameters = Parameters(function, terms.codec.checks_types)
        self.reader = Reader(terms.codec)
        self._read_result: Callable[[bytes], R] | None = None

    def __repr__(self) -> str:
        return f"<Task {self.name}>"

    @property
    def codec(self) -> Codec:
        """How its arguments and results are written."""
        return self.terms.codec

    def with_options(
        self,
        *,
        priority: PriorityWord | None = None,
        unique: UniqueRule | None = None,
        delay: float | None = None,
        at: datetime.datetime | float | None = None,
        resubmit: bool | None = None,
    ) -> Self:
        """The same task, submitted with other options: `await task.with_options(delay=60).submit(...)`."""
        given = {"unique": unique, "delay": delay, "at": at, "resubmit": resubmit}
        changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if priority is not None:
            changes["priority"] = priority_of(priority)
        other = copy.copy(self)
        other.options = dataclasses.replace(self.options, **changes)
        return other

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """A call that is not submitted yet, for `app.submit_many`."""
        return self._bound(args, kwargs, background=True)

    async def submit(self, *args: P.args, **kwargs: P.kwargs) -> TaskHandle[R]:
        """Have it run by a worker, durably; returns when the server has it on disk."""
        return await self.app.submit(self._bound(args, kwargs, background=True))

    async def call(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Have it run by a worker and wait for the result. Nobody keeps it if this program goes away."""
        handle = await self.app.submit(self._bound(args, kwargs, background=False))
        return await handle.result()

    async def start(self, *args: P.args, **kwargs: P.kwargs) -> TaskHandle[R]:
        """As `call`, but go on while it runs: the handle tells of progress, data and the result."""
        return await self.app.submit(self._bound(args, kwargs, background=False))

    def submit_sync(self, *args: P.args, **kwargs: P.kwargs) -> SyncTaskHandle[R]:
        """As `submit`, for programs without an event loop."""
        return self.app.sync_handle(self.submit(*args, **kwargs))

    def call_sync(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """As `call`, for programs without an event loop."""
        return self.app.wait(self.call(*args, **kwargs))

    def start_sync(self, *args: P.args, **kwargs: P.kwargs) -> SyncTaskHandle[R]:
        """As `start`, for programs without an event loop."""
        return self.app.sync_handle(self.start(*args, **kwargs))

    def read_result(self, result: bytes) -> R:
        """A result as a worker sent it, in the type that the function returns."""
        if self._read_result is None:
            self._read_result = self.codec.decoder(self.parameters.returns)
        return self._read_result(result)

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any], background: bool) -> Call[R]:
        self.parameters.check(args, kwargs)
        options = self.options
        rule = options.unique
        unique = unique_key.unique_key(rule, self.codec, self.parameters, args, kwargs) if rule else b""
        return Call(self, args, kwargs, background, options.priority, unique, self._run_at(options), options.resubmit)

    def _run_at(self, options: Options) -> float:
        at = options.at
        if at is not None:
            return at.timestamp() if isinstance(at, datetime.datetime) else float(at)
        return self.app.now() + options.delay if options.delay else 0.0


class CoroutineTask(Task[P, R]):
    """A task whose function is `async def`."""

    function: Callable[P, Coroutine[Any, Any, R]]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """Run it here, without a server."""
        return self.function(*args, **kwargs)


class PlainTask(Task[P, R]):
    """A task whose function is a plain `def`; workers run it in a thread."""

    function: Callable[P, R]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run it here, without a server."""
        return self.function(*args, **kwargs)


def priority_of(asked: PriorityWord) -> Priority:
    """A priority by its word.

    >>> priority_of("high")
    <Priority.HIGH: 0>
    """
    if isinstance(asked, Priority):
        return asked
    try:
        return Priority[asked.upper()]
    except KeyError:
        raise ValueError(f"there is no priority {asked!r}; there are high, normal and low") from None
