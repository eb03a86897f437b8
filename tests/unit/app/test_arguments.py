"""Decoding arguments into the parameters of a function."""

import dataclasses
import datetime
from typing import Annotated, Any

import msgspec
import pytest

from geartrain.app.arguments import Parameters
from geartrain.app.codecs import JSON
from geartrain.errors import ArgumentsError


@dataclasses.dataclass
class Address:
    street: str
    number: int = 0


def post(to: Address, weight: float, when: datetime.date | None = None, *, express: bool = False) -> None: ...
def total(*amounts: int, **named: float) -> None: ...
def untyped(first, second=2): ...  # type: ignore[no-untyped-def]
def forced(*, key: int) -> None: ...
def nothing() -> None: ...
def picky(count: Annotated[int, msgspec.Meta(ge=1)]) -> None: ...


def read(function: Any, *args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    found, named = Parameters(function).read(JSON, list(args), kwargs)
    return tuple(found), named


def test_arguments_are_converted_to_the_annotated_types() -> None:
    day = datetime.date(2026, 11, 15)
    assert read(post, {"street": "Elm"}, 2, "2026-11-15") == ((Address("Elm"), 2.0, day), {})


def test_keyword_arguments() -> None:
    assert read(post, {"street": "Elm"}, weight=2, express=True) == ((Address("Elm"), 2.0), {"express": True})


def test_variable_arguments() -> None:
    assert read(total, 1, 2, tax=1) == ((1, 2), {"tax": 1.0})


def test_parameters_without_annotation() -> None:
    assert read(untyped, {"a": 1}, [2]) == (({"a": 1}, [2]), {})


def test_no_arguments() -> None:
    assert read(nothing) == ((), {})


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "complaint"),
    [
        (post, [{"street": "Elm"}, "heavy"], {}, "argument 'weight' of post does not fit: Expected `float`, got `str`"),
        (post, [{"street": 5}, 1.0], {}, r"argument 'to' of post .* at `\$.street`"),
        (post, [{"street": "Elm"}, 1.0], {"express": "yes"}, "argument 'express'"),
        (post, [], {}, "the arguments do not fit post: missing a required argument: 'to'"),
        (post, [1, 2, 3, 4], {}, "too many positional arguments"),
        (post, [{"street": "Elm"}, 1.0], {"colour": 1}, "unexpected keyword argument 'colour'"),
        (total, [1, "two"], {}, "argument 'amounts'"),
        (total, [], {"tax": "much"}, "argument 'named'"),
        (forced, [1], {}, "the arguments do not fit forced"),
        (forced, [], {}, "'key'"),
        (picky, [0], {}, "Expected `int` >= 1"),
    ],
)
def test_error_names_the_argument_that_does_not_fit(
    function: Any, args: list[Any], kwargs: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ArgumentsError, match=complaint):
        Parameters(function).read(JSON, args, kwargs)


def test_wrong_call_is_a_type_error_of_the_caller() -> None:
    parameters = Parameters(post)
    parameters.check((Address("Elm"), 1.0), {})
    with pytest.raises(TypeError):
        parameters.check((), {})
    with pytest.raises(TypeError):
        Parameters(forced).check((1,), {})


def test_named_arguments_include_defaults() -> None:
    assert Parameters(untyped).named((1,), {}) == {"first": 1, "second": 2}


def one(kind: Any) -> Parameters:
    def function(value, more=1): ...  # type: ignore[no-untyped-def]

    function.__annotations__ = {} if kind is None else {"value": kind}
    return Parameters(function)


@pytest.mark.parametrize(
    ("kind", "payload", "value"),
    [
        (bytes, b'\xff"', b'\xff"'),
        (str, b'"as it is"', '"as it is"'),
        (int, b"7", 7),
        (dict[str, int], b'{"a":1}', {"a": 1}),
        (Address, b'{"street":"Elm"}', Address("Elm")),
        (None, b'{"v":1}', {"v": 1}),
        (None, b"plain words", "plain words"),
        (None, b"\xff", b"\xff"),
    ],
)
def test_payload_without_envelope_is_the_only_argument(kind: Any, payload: bytes, value: object) -> None:
    assert one(kind).read_single(JSON, payload) == (value,)


@pytest.mark.parametrize(("kind", "payload"), [(int, b"seven"), (str, b"\xff"), (Address, b"{}")])
def test_payload_without_envelope_that_does_not_fit(kind: Any, payload: bytes) -> None:
    with pytest.raises(ArgumentsError, match="value"):
        one(kind).read_single(JSON, payload)


@pytest.mark.parametrize("function", [nothing, post, forced])
def test_payload_without_envelope_needs_one_parameter(function: Any) -> None:
    with pytest.raises(ArgumentsError, match="does not take a single argument"):
        Parameters(function).read_single(JSON, b"hello")


def deep(value: list[Parameters]) -> None: ...
def result() -> Parameters | None: ...


@pytest.mark.parametrize(("function", "what"), [(deep, "argument 'value' of deep"), (result, "the result of result")])
def test_type_that_cannot_be_decoded(function: Any, what: str) -> None:
    with pytest.raises(ArgumentsError, match=f"{what} cannot be decoded"):
        _ = Parameters(function).types


def test_codec_that_does_not_check_types() -> None:
    assert Parameters(deep, checks_types=False).types["value"] == list[Parameters]


def test_object_is_any() -> None:
    def function(value: object) -> None: ...

    assert read(function, [1]) == (([1],), {})


def test_undefined_annotation() -> None:
    def function(value: "Missing") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(ArgumentsError, match="Missing"):
        _ = Parameters(function).types
