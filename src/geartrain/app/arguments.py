"""The parameters of a task's function: checking calls, and decoding arguments into the annotated types."""

import inspect
import typing
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import msgspec

from geartrain.app import custom_types, failed_results
from geartrain.app.codecs import Codec
from geartrain.app.dependencies import Dependency
from geartrain.errors import ArgumentsError, CodecError

_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

Convert = Callable[[Codec, Any, Any], Any]  # of a value to an annotation


class Parameters:
    """The signature of a task's function. Annotations are evaluated at the first use, when all names are defined."""

    def __init__(self, function: Callable[..., Any], checks_types: bool = True) -> None:
        self._function = function
        self._checks_types = checks_types
        signature = inspect.signature(function)
        parameters = [each for each in signature.parameters.values() if not isinstance(each.default, Dependency)]
        self.dependencies = signature.parameters.keys() - {parameter.name for parameter in parameters}
        self._signature = signature.replace(parameters=parameters)  # without what the worker fills
        self._check_order(signature)
        self._positional = [parameter for parameter in parameters if parameter.kind in _POSITIONAL]
        required = [parameter for parameter in self._positional if parameter.default is inspect.Parameter.empty]
        keywords = [parameter for parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY]
        # A call with this many positional arguments, and no others, is complete; other calls take a slower path.
        self._fewest = len(required)
        self._most = len(self._positional)
        if any(parameter.default is inspect.Parameter.empty for parameter in keywords):
            self._fewest = self._most + 1
        self._types: dict[str, Any] | None = None
        self._annotations: dict[str, Any] = {}  # those that `types` is made of
        self._tuples: dict[int, Any] = {}

    def _check_order(self, signature: inspect.Signature) -> None:
        """Refuse a dependency before a positional parameter: its position would differ from that of the argument."""
        positional = [parameter.name for parameter in signature.parameters.values() if parameter.kind in _POSITIONAL]
        behind = [name for name in positional if name not in self.dependencies]
        if positional[: len(behind)] != behind:
            name = self._function.__qualname__
            raise ValueError(f"the parameters of {name} with Depends must come after the others, or after a *")

    @property
    def names(self) -> Collection[str]:
        """The names of the parameters, without those that the worker fills."""
        return self._signature.parameters.keys()

    def check(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Raise the TypeError that the function itself would raise for these arguments."""
        if kwargs or not self._fewest <= len(args) <= self._most:
            self._signature.bind(*args, **kwargs)

    def named(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """All arguments by name, with defaults."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)

    @property
    def returns(self) -> Any:
        """The annotated type of the result, or Any."""
        return self.types.get("return", Any)

    @property
    def types(self) -> dict[str, Any]:
        """The annotated types by parameter name, and that of the result as `return`."""
        if self._types is None:
            try:
                hints = typing.get_type_hints(self._function, include_extras=True)
            except NameError as error:
                name = self._function.__qualname__
                raise ArgumentsError(f"cannot evaluate an annotation of {name}: {error}") from error
            self._annotations = {
                name: Any if hint is object else hint for name, hint in hints.items() if name not in self.dependencies
            }
            types = {name: failed_results.decodable(hint) for name, hint in self._annotations.items()}
            if self._checks_types:
                for name, annotation in types.items():
                    _check_decodable(self._function, name, annotation)
            self._types = types
        return self._types

    def read(self, codec: Codec, args: list[Any], kwargs: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        """Convert decoded arguments to the annotated types; ArgumentsError names the one that does not fit."""
        if not kwargs and self._fewest <= len(args) <= self._most:
            if not args:
                return (), kwargs
            try:
                return codec.convert(args, self._tuple(len(args))), kwargs
            except CodecError:
                pass  # the slower path finds the argument that does not fit
        return self._read_each(codec, args, kwargs)

    def read_with_failures(
        self, codec: Codec, args: list[Any], kwargs: dict[str, Any]
    ) -> tuple[Sequence[Any], dict[str, Any]]:
        """Like `read`, if some of the arguments are, or contain, a JobFailedError."""
        return self._read_each(codec, args, kwargs, failed_results.convert)

    def read_single(self, codec: Codec, payload: bytes) -> tuple[Any, ...]:
        """Use a payload that is not an envelope as the only argument.

        A `bytes` parameter gets the payload, a `str` parameter its text, any other type is decoded with the codec. A
        parameter without annotation gets the decoded value if there is one, else the text, else the bytes.
        """
        name = self._function.__qualname__
        if not self._positional or self._fewest > 1:
            raise ArgumentsError(f"the payload is not an envelope, and {name} does not take a single argument")
        parameter = self._positional[0].name
        annotation = self.types.get(parameter, Any)
        if annotation is bytes:
            return (payload,)
        if annotation is str:
            return (_text(payload, parameter),)
        try:
            return (codec.decode(payload, annotation),)
        except CodecError as error:
            if annotation is Any:
                return (_text_or_bytes(payload),)
            raise ArgumentsError(f"the payload does not fit argument {parameter!r} of {name}: {error}") from error

    def _tuple(self, count: int) -> Any:
        tuple_type = self._tuples.get(count)
        if tuple_type is None:
            types = tuple(self.types.get(parameter.name, Any) for parameter in self._positional[:count])
            tuple_type = self._tuples[count] = tuple[types] if types else tuple[()]  # type: ignore[valid-type]
        return tuple_type

    def _read_each(
        self, codec: Codec, args: list[Any], kwargs: dict[str, Any], convert: Convert | None = None
    ) -> tuple[Sequence[Any], dict[str, Any]]:
        name = self._function.__qualname__
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentsError(f"the arguments do not fit {name}: {error}") from error
        types = self.types  # which evaluates the annotations
        if convert is not None:
            types = self._annotations
        for parameter, value in bound.arguments.items():
            annotation = _bound_type(self._signature.parameters[parameter], types.get(parameter, Any))
            try:
                bound.arguments[parameter] = (
                    codec.convert(value, annotation) if convert is None else convert(codec, value, annotation)
                )
            except (CodecError, ArgumentsError) as error:
                raise ArgumentsError(f"argument {parameter!r} of {name} does not fit: {error}") from error
        return bound.args, bound.kwargs


def _bound_type(parameter: inspect.Parameter, annotation: Any) -> Any:
    """The type of a bound argument: `*args: int` is a tuple of int, `**kwargs: int` a dictionary."""
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        return tuple[annotation, ...]
    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
        return dict[str, annotation]
    return annotation


def _check_decodable(function: Callable[..., Any], name: str, annotation: Any) -> None:
    """Refuse types that cannot be decoded when the worker starts, not at the first job."""
    value = "the result" if name == "return" else f"argument {name!r}"
    try:
        msgspec.json.Decoder(annotation)
    except TypeError as error:
        raise ArgumentsError(f"{value} of {function.__qualname__} cannot be decoded: {error}") from None
    if not custom_types.are_known(annotation):
        raise ArgumentsError(
            f"{value} of {function.__qualname__} cannot be decoded: {annotation!r} is or contains a class that is not "
            f"{custom_types.NAMES}"
        )


def _text(payload: bytes, parameter: str) -> str:
    try:
        return payload.decode()
    except UnicodeDecodeError as error:
        raise ArgumentsError(f"argument {parameter!r} must be text, but the payload is not UTF-8: {error}") from error


def _text_or_bytes(payload: bytes) -> str | bytes:
    try:
        return payload.decode()
    except UnicodeDecodeError:
        return payload
