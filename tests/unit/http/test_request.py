"""Query parameters."""

from typing import Annotated, Any, Literal

import msgspec
import pytest

from geartrain.doors.http import request
from geartrain.doors.http.problems import Refusal


class Query(msgspec.Struct, forbid_unknown_fields=True):
    function: str = ""
    search: str = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=10)] = 5
    since: float = 0.0
    state: Literal["queued", "dead"] = "queued"


def read(query: bytes, wanted: Any = Query) -> Any:
    return request.parameters(query, wanted)


def test_defaults() -> None:
    assert read(b"") == Query()
    assert read(b"", None) is None


def test_values() -> None:
    assert read(b"search=a+b%20c&limit=7&since=1.5") == Query("", "a b c", 7, 1.5)
    assert read(b"search=") == Query()


def test_the_name_of_a_function_may_be_any_bytes() -> None:
    assert request.raw(read(b"function=%FF%00").function) == b"\xff\0"
    assert request.raw(read("function=ü".encode()).function) == "ü".encode()
    assert request.raw(read(b"function=\xff").function) == b"\xff"


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (b"limit=11", "limit"),
        (b"limit=many", "limit"),
        (b"since=nan", "finite"),
        (b"since=inf", "finite"),
        (b"search=%FF", "UTF-8"),
        (b"limit=1%FF", "UTF-8"),
        (b"state=que%FF", "UTF-8"),
        (b"%FF=1", "UTF-8"),
        (b"colour=red", "colour"),
        (b"limit=1&limit=2", "duplicate parameter"),
    ],
)
def test_invalid_parameters_are_named(query: bytes, why: str) -> None:
    with pytest.raises(Refusal, match=why) as refused:
        read(query)
    assert refused.value.kind == "bad-request"


def test_unknown_parameters_are_refused() -> None:
    with pytest.raises(Refusal, match="unknown parameter x"):
        read(b"x=1", None)


def test_names_in_paths() -> None:
    assert request.quoted(b"a/b\xff?") == b"a%2Fb%FF%3F"
    assert request.quoted(b"H:lap-top.example:17") == b"H%3Alap-top.example%3A17"
