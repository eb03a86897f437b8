"""Types of arguments and results that msgspec does not know: models of pydantic, paths, addresses of networks.

pydantic is not imported here: a class is one of its models if it has the methods of one, so an app that has none does
not need the library.
"""

import ipaddress
import pathlib
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from geartrain.app.node import UNSENDABLE, WorkflowNode

# Types whose text is all of them, and which can be made from it.
_TEXTS: Final = (
    pathlib.PurePath,
    ipaddress.IPv4Address,
    ipaddress.IPv6Address,
    ipaddress.IPv4Network,
    ipaddress.IPv6Network,
)
NAMES: Final = (
    "a built-in type, date, UUID, Decimal, Enum, path, dataclass, attrs class, NamedTuple, TypedDict, msgspec.Struct "
    "or pydantic model"
)


def encode(value: Any) -> Any:
    """Called by msgspec for a value that it cannot encode: return one that it can.

    >>> encode(pathlib.PurePosixPath("/srv/a.txt"))
    '/srv/a.txt'
    """
    if isinstance(value, _TEXTS):
        return str(value)
    if _is_model(type(value)):
        return value.model_dump(mode="json")
    if isinstance(value, WorkflowNode):
        raise NotImplementedError(f"{value!r} cannot be sent: {UNSENDABLE}")
    raise NotImplementedError(f"objects of type {type(value).__name__} cannot be sent; use {NAMES}")


def decode(kind: type, value: Any) -> Any:
    """Called by msgspec for a type that it does not know: make an object of it. ValueError if the value does not fit.

    >>> decode(pathlib.PurePosixPath, "/srv/a.txt")
    PurePosixPath('/srv/a.txt')
    """
    if _is_model(kind):
        try:
            return kind.model_validate(value)  # type: ignore[attr-defined]
        except ValueError as error:
            raise ValueError(_model_errors(error)) from None
    if isinstance(value, kind):  # a codec that keeps Python's objects
        return value
    if not isinstance(value, str):
        raise ValueError(f"expected text, got {type(value).__name__}")
    return kind(value)


def are_known(kind: Any) -> bool:
    """Whether all classes in a type can be decoded: msgspec's own, and those of this module.

    >>> are_known(list[pathlib.Path]), are_known(dict[str, object])
    (True, False)
    """
    return all(_is_known(each) for each in _custom_classes(msgspec.inspect.type_info(kind), set()))


def _custom_classes(node: object, seen: set[int]) -> Iterator[type]:
    """The classes that msgspec does not know, in its description of a type."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, msgspec.inspect.CustomType):
        yield node.cls
    elif isinstance(node, tuple):
        for part in node:
            yield from _custom_classes(part, seen)
    elif isinstance(node, msgspec.inspect.Type | msgspec.inspect.Field):
        for name in node.__struct_fields__:
            yield from _custom_classes(getattr(node, name), seen)


def _is_known(kind: type) -> bool:
    return _is_model(kind) or issubclass(kind, _TEXTS)


def _is_model(kind: type) -> bool:
    """Whether it is a model of pydantic 2."""
    return hasattr(kind, "model_validate") and hasattr(kind, "model_dump")


def _model_errors(error: ValueError) -> str:
    """The errors of a model in one line: pydantic's own text has several for each."""
    errors = getattr(error, "errors", None)
    if errors is None:
        return str(error)
    return "; ".join(f"{'.'.join(map(str, each['loc'])) or 'value'}: {each['msg']}" for each in errors())
