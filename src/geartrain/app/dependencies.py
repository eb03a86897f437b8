"""Dependencies of tasks: parameters that the worker fills, such as a connection to a database.

    async def get_db() -> AsyncIterator[Database]:
        async with connect() as database:
            yield database

    @app.task
    async def send(mail: Mail, db: Database = Depends(get_db)) -> None: ...

A provider is a plain function, a coroutine, or a generator of either kind, whose rest runs after the task. Providers
may have dependencies themselves. Each is called once per attempt, however many parameters use it. `Depends()` without
a provider goes by the type of the parameter: the provider that the app has for it, or else the class itself.
"""

import contextlib
import inspect
import types
import typing
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, overload

from geartrain.app.context import Running, current_task
from geartrain.errors import ArgumentsError

if TYPE_CHECKING:
    from geartrain.app.app import App

T = TypeVar("T")
Provider = Callable[..., Any]
# Runs a plain function somewhere else than on the event loop.
RunPlain = Callable[[Callable[[], Any]], Awaitable[Any]]

_GENERATORS: Final = frozenset(
    {"AsyncIterator", "AsyncIterable", "AsyncGenerator", "Iterator", "Iterable", "Generator"}
)


class Dependency:
    """The default of a parameter that the worker fills."""

    __slots__ = ("provider",)

    def __init__(self, provider: Provider | None) -> None:
        self.provider = provider  # None: by the parameter's type

    def __repr__(self) -> str:
        return f"Depends({_name(self.provider) if self.provider is not None else ''})"


@overload
def Depends(provider: Callable[..., AsyncIterator[T]]) -> T: ...


@overload
def Depends(provider: Callable[..., Iterator[T]]) -> T: ...


@overload
def Depends(provider: Callable[..., Coroutine[Any, Any, T]]) -> T: ...


@overload
def Depends(provider: Callable[..., T]) -> T: ...


@overload
def Depends() -> Any: ...


def Depends(provider: Provider | None = None) -> Any:  # noqa: N802  # it stands where a type or a value is expected
    """The default of a parameter that the worker fills with what the provider makes.

    >>> from geartrain.app import App
    >>> app = App("shop")
    >>> def get_greeting() -> str:
    ...     return "Hello"
    >>> @app.task
    ... def greet(name: str, greeting: str = Depends(get_greeting)) -> str:
    ...     return f"{greeting}, {name}"
    >>> greet("Ada"), greet("Ada", greeting="Good morning")
    ('Hello, Ada', 'Good morning, Ada')
    """
    return Dependency(provider)


class Step(NamedTuple):
    """One call of a provider."""

    provider: Provider
    needs: dict[str, Provider]  # by parameter: the provider of its value
    uses_task: tuple[str, ...]  # parameters that get the running task
    uses_app: tuple[str, ...]  # parameters that get the app

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.provider) or inspect.isasyncgenfunction(self.provider)

    def bound(self, app: "App", values: Mapping[Provider, Any]) -> Callable[[], Any]:
        """The call, with its arguments."""
        arguments = {name: values[provider] for name, provider in self.needs.items()}
        arguments |= {name: current_task() for name in self.uses_task}
        arguments |= dict.fromkeys(self.uses_app, app)
        if inspect.isasyncgenfunction(self.provider):
            return lambda: contextlib.asynccontextmanager(self.provider)(**arguments)
        if inspect.isgeneratorfunction(self.provider):
            return lambda: contextlib.contextmanager(self.provider)(**arguments)
        return lambda: self.provider(**arguments)


class DependencyPlan:
    """The providers that a function needs, each after those that it needs itself."""

    def __init__(self, app: "App", function: Callable[..., Any]) -> None:
        self._app = app
        self._steps: dict[Provider, Step] = {}
        self._needs = self._visit(function, (function,)).needs
        self.is_async = self.needs_loop({})

    def needs_loop(self, given: Mapping[str, Any]) -> bool:
        """Whether a provider is async, of those for the parameters that are not given."""
        return any(step.is_async for step in self._wanted(given))

    @contextlib.asynccontextmanager
    async def resolved(self, given: Mapping[str, Any], run_plain: RunPlain) -> AsyncIterator[dict[str, Any]]:
        """The values of the parameters, except those that are given; `run_plain` calls plain providers."""
        values: dict[Provider, Any] = {}
        async with contextlib.AsyncExitStack() as stack:
            for step in self._wanted(given):
                values[step.provider] = await _enter(stack, step, step.bound(self._app, values), run_plain)
            yield self._arguments(given, values)

    @contextlib.contextmanager
    def resolved_sync(self, given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The same in this thread, without async providers."""
        values: dict[Provider, Any] = {}
        with contextlib.ExitStack() as stack:
            for step in self._wanted(given):
                value = step.bound(self._app, values)()
                if inspect.isgeneratorfunction(step.provider):
                    value = stack.enter_context(value)
                values[step.provider] = value
            yield self._arguments(given, values)

    def _wanted(self, given: Mapping[str, Any]) -> list[Step]:
        """The steps for the parameters that are not given, and for what they need."""
        wanted: set[Provider] = set()
        open_ = [provider for name, provider in self._needs.items() if name not in given]
        while open_:
            provider = open_.pop()
            if provider not in wanted:
                wanted.add(provider)
                open_ += self._steps[provider].needs.values()
        return [step for provider, step in self._steps.items() if provider in wanted]

    def _arguments(self, given: Mapping[str, Any], values: Mapping[Provider, Any]) -> dict[str, Any]:
        return {name: values[provider] for name, provider in self._needs.items() if name not in given}

    def _visit(self, function: Callable[..., Any], path: tuple[Callable[..., Any], ...]) -> Step:
        needs: dict[str, Provider] = {}
        specials: dict[type, list[str]] = {Running: [], type(self._app): []}
        types_ = _types(function)
        for name, parameter in inspect.signature(function).parameters.items():
            if isinstance(parameter.default, Dependency):
                needs[name] = self._provider(function, name, parameter.default, types_)
                self._add(needs[name], path)
            elif types_.get(name) in specials and len(path) > 1:
                specials[types_[name]].append(name)
            elif len(path) > 1 and parameter.default is parameter.empty and parameter.kind in _NAMED:
                raise ArgumentsError(f"parameter {name!r} of {_name(function)} has no default: use Depends there")
        return Step(function, needs, tuple(specials[Running]), tuple(specials[type(self._app)]))

    def _provider(
        self, function: Callable[..., Any], name: str, dependency: Dependency, types_: Mapping[str, Any]
    ) -> Provider:
        provider = dependency.provider
        if provider is None:
            kind = types_.get(name)
            if not isinstance(kind, type) or kind is Any:
                raise ArgumentsError(f"Depends() of parameter {name!r} of {_name(function)} needs a class as its type")
            provider = self._app.providers.get(kind, kind)
        return self._app.dependency_overrides.get(provider, provider)

    def _add(self, provider: Provider, path: tuple[Callable[..., Any], ...]) -> None:
        if provider in path:
            circle = " -> ".join(map(_name, (*path, provider)))
            raise ArgumentsError(f"dependencies need each other: {circle}")
        if provider not in self._steps:
            step = self._visit(provider, (*path, provider))
            self._steps[provider] = step


_NAMED: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


async def _enter(stack: contextlib.AsyncExitStack, step: Step, call: Callable[[], Any], run_plain: RunPlain) -> Any:
    """Call a provider; the rest of a generator runs when the stack ends."""
    provider = step.provider
    if inspect.isasyncgenfunction(provider):
        return await stack.enter_async_context(call())
    if inspect.iscoroutinefunction(provider):
        return await call()
    if not inspect.isgeneratorfunction(provider):
        return await run_plain(call)
    context = call()

    async def leave(*error: Any) -> bool:
        return bool(await run_plain(lambda: context.__exit__(*error)))

    value = await run_plain(context.__enter__)
    stack.push_async_exit(leave)
    return value


def provided_type(provider: Provider) -> type:
    """The type that a provider makes, from its annotation; of a generator, what it yields."""
    kind: Any = provider if isinstance(provider, type) else _types(provider).get("return")
    if getattr(typing.get_origin(kind), "__name__", "") in _GENERATORS:
        kind = typing.get_args(kind)[0]
    if not isinstance(kind, type) or kind is types.NoneType:
        raise ValueError(f"the annotation of {_name(provider)} must say which class it returns or yields")
    return kind


def _types(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function.__init__ if isinstance(function, type) else function)  # type: ignore[misc]
    except (NameError, TypeError):
        return {}


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", repr(function))
