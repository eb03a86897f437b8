"""Arguments that stand for the result of a job that has failed.

A call with `on_failure="run"` runs although jobs failed whose results are its arguments. It gets a JobFailedError in
place of each such result, as `asyncio.gather(..., return_exceptions=True)` returns exceptions, if the annotation of the
parameter allows it: `def report(parts: list[bytes | JobFailedError])`.
"""

import types
import typing
from collections.abc import Sequence
from typing import Any, Final

from geartrain.app.codecs import Codec
from geartrain.errors import ArgumentsError, JobFailedError

_UNIONS: Final = (typing.Union, types.UnionType)
_WITH_ELEMENTS: Final = (list, tuple, Sequence)


def decodable(annotation: Any) -> Any:
    """The annotation without JobFailedError, which no codec decodes.

    >>> decodable(list[int | JobFailedError]), decodable(int)
    (list[int], <class 'int'>)
    """
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    is_union = origin in _UNIONS
    changed = tuple(decodable(each) for each in arguments if not (is_union and _is_failure(each)))
    if not changed or changed == arguments:
        return annotation
    return typing.Union[changed] if is_union else origin[changed]  # noqa: UP007  # of a tuple


def convert(codec: Codec, value: Any, annotation: Any) -> Any:
    """Convert a decoded argument in which there may be failures; ArgumentsError where the annotation allows none."""
    if isinstance(value, JobFailedError):
        if codec.checks_types and not _accepts(annotation):
            raise ArgumentsError(
                f"it is the result of a job that failed ({value}); annotate it with `| JobFailedError`"
            )
        return value
    if isinstance(value, list | tuple) and any(isinstance(each, JobFailedError) for each in value):
        elements = [convert(codec, each, _element(annotation, number)) for number, each in enumerate(value)]
        return tuple(elements) if typing.get_origin(annotation) is tuple else elements
    return codec.convert(value, decodable(annotation))


def _is_failure(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, JobFailedError)


def _accepts(annotation: Any) -> bool:
    parts = typing.get_args(annotation) if typing.get_origin(annotation) in _UNIONS else (annotation,)
    return any(part in (Any, object) or _is_failure(part) for part in parts)


def _element(annotation: Any, number: int) -> Any:
    """The annotation of an element; Any if there is none."""
    arguments = typing.get_args(annotation)
    if typing.get_origin(annotation) in _UNIONS:
        found = [each for each in arguments if typing.get_origin(each) in _WITH_ELEMENTS]
        return _element(found[0], number) if found else Any
    if not arguments:
        return Any
    if typing.get_origin(annotation) is tuple and ... not in arguments:
        return arguments[number] if number < len(arguments) else Any
    return arguments[0]
