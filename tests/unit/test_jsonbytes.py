"""Bytes survive the way through JSON, typed or not."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geartrain import jsonbytes
from geartrain.jsonbytes import JsonBytes


@given(st.binary() | st.text().map(str.encode))
def test_bytes_survive_the_way_through_json(data: bytes) -> None:
    line = msgspec.json.encode(jsonbytes.encode(data))
    assert jsonbytes.decode(msgspec.json.decode(line)) == data
    assert jsonbytes.decode(msgspec.json.decode(line, type=JsonBytes)) == data


@given(st.text(min_size=1), st.integers(1, 50))
def test_text_that_is_cut_stays_text(text: str, longest: int) -> None:
    cut = jsonbytes.encode(text.encode(), longest)
    assert isinstance(cut, str)
    assert text.startswith(cut)
    assert longest - 3 <= len(cut.encode()) <= longest or cut == text


@pytest.mark.parametrize("line", [b'{"base64":"!"}', b'{"base64":"","more":1}', b"{}", b"1", b"null"])
def test_other_json_is_refused(line: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(line, type=JsonBytes)
