"""A function's parameters: what a caller may hand over, and how a worker reads it back into their types."""

import inspect
import typing
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from geartrain.app.codecs import Codec
from geartrain.errors import ArgumentsError, CodecError

_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Parameters:
    """The signature of a task's function. Annotations are read at the first use, when all names are defined."""

    def __init__(self, function: Callable[..., Any], checks_types: bool = True) -> None:
        self._function = function
        self._checks_types = checks_types
        self._signature = inspect.signature(function)
        parameters = list(self._signature.parameters.values())
        self._positional = [each for each in parameters if each.kind in _POSITIONAL]
        needed = [each for each in self._positional if each.default is inspect.Parameter.empty]
        keywords = [each for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY]
        # How many plain positional arguments make a whole call; others are bound the slow way.
        self._fewest = len(needed)
        self._most = len(self._positional)
        if any(each.default is inspect.Parameter.empty for each in keywords):
            self._fewest = self._most + 1
        self._kinds: dict[str, Any] | None = None
        self._tuples: dict[int, Any] = {}

    def check(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """TypeError, as the function itself would raise it, if this is no call of it."""
        if kwargs or not self._fewest <= len(args) <= self._most:
            self._signature.bind(*args, **kwargs)

    def named(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Every argument by its name, defaults included."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)

    @property
    def returns(self) -> Any:
        """The type of the result; anything, if the function does not say."""
        return self.kinds.get("return", Any)

    @property
    def kinds(self) -> dict[str, Any]:
        """The annotated types by parameter."""
        if self._kinds is None:
            try:
                kinds = typing.get_type_hints(self._function, include_extras=True)
            except NameError as error:
                name = self._function.__qualname__
                raise ArgumentsError(f"an annotation of {name} cannot be understood: {error}") from error
            kinds = {name: Any if kind is object else kind for name, kind in kinds.items()}
            if self._checks_types:
                for name, kind in kinds.items():
                    _check_readable(self._function, name, kind)
            self._kinds = kinds
        return self._kinds

    def read(self, codec: Codec, args: list[Any], kwargs: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        """The arguments in the function's own types; ArgumentsError says which one does not fit, and why."""
        if not kwargs and self._fewest <= len(args) <= self._most:
            if not args:
                return (), kwargs
            try:
                return codec.convert(args, self._tuple(len(args))), kwargs
            except CodecError:
                pass  # the slow way finds out whose fault it is
        return self._read_each(codec, args, kwargs)

    def read_single(self, codec: Codec, payload: bytes) -> tuple[Any, ...]:
        """A payload that is no envelope, as the only argument.

        `bytes` gets it as it is and `str` its text; any other type is read with the codec. A parameter without a
        type gets what the codec makes of it, or else its text, or else the bytes.
        """
        name = self._function.__qualname__
        if not self._positional or self._fewest > 1:
            raise ArgumentsError(f"its payload is no call of {name}, which does not take a single argument")
        parameter = self._positional[0].name
        kind = self.kinds.get(parameter, Any)
        if kind is bytes:
            return (payload,)
        if kind is str:
            return (_text(payload, parameter),)
        try:
            return (codec.decode(payload, kind),)
        except CodecError as error:
            if kind is Any:
                return (_anything(payload),)
            raise ArgumentsError(f"its payload does not fit {parameter!r} of {name}: {error}") from error

    def _tuple(self, count: int) -> Any:
        kind = self._tuples.get(count)
        if kind is None:
            kinds = tuple(self.kinds.get(each.name, Any) for each in self._positional[:count])
            kind = self._tuples[count] = tuple[kinds] if kinds else tuple[()]  # type: ignore[valid-type]
        return kind

    def _read_each(self, codec: Codec, args: list[Any], kwargs: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        name = self._function.__qualname__
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentsError(f"this is no call of {name}: {error}") from error
        for parameter, value in bound.arguments.items():
            kind = _whole_kind(self._signature.parameters[parameter], self.kinds.get(parameter, Any))
            try:
                bound.arguments[parameter] = codec.convert(value, kind)
            except CodecError as error:
                raise ArgumentsError(f"argument {parameter!r} of {name} does not fit: {error}") from error
        return bound.args, bound.kwargs


def _whole_kind(parameter: inspect.Parameter, kind: Any) -> Any:
    """`*args: int` is a tuple of them, `**kwargs: int` a dictionary."""
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        return tuple[kind, ...]
    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
        return dict[str, kind]
    return kind


def _check_readable(function: Callable[..., Any], name: str, kind: Any) -> None:
    """A type that nobody can make from plain data would only be noticed by the first job."""
    try:
        msgspec.json.schema(kind)  # the one place where msgspec minds types that it cannot make
    except TypeError:
        what = "the result" if name == "return" else f"argument {name!r}"
        raise ArgumentsError(
            f"{what} of {function.__qualname__} cannot be read from a payload: {kind!r} is, or has in it, a class "
            "that is neither built in nor a dataclass, NamedTuple, TypedDict, Enum or msgspec.Struct"
        ) from None


def _text(payload: bytes, parameter: str) -> str:
    try:
        return payload.decode()
    except UnicodeDecodeError as error:
        raise ArgumentsError(f"argument {parameter!r} is text, and its payload is not: {error}") from error


def _anything(payload: bytes) -> str | bytes:
    try:
        return payload.decode()
    except UnicodeDecodeError:
        return payload
