"""Server-sent events: the format's rules, whole, byte by byte and split anywhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geartrain.errors import WireError
from geartrain.wire.event_stream import EventStream, ServerSentEvent

CASES = [
    pytest.param(b"event: job\ndata: 1\n\n", [("job", "1")], id="name and data"),
    pytest.param(b"data: 1\n\n", [("message", "1")], id="an event without a name is a message"),
    pytest.param(b"data: a\ndata: b\n\n", [("message", "a\nb")], id="several lines of data"),
    pytest.param(b"data:a\n\ndata:  b\n\n", [("message", "a"), ("message", " b")], id="one space after the colon"),
    pytest.param(b"data\n\n", [("message", "")], id="a field without a colon is empty"),
    pytest.param(b": comment\n\n", [], id="comment"),
    pytest.param(b"retry: 2000\n\nid: 7\nx: y\ndata: 1\n\n", [("message", "1")], id="other fields"),
    pytest.param(b"event: job\n\ndata: 1\n\n", [("message", "1")], id="an event without data is none, name included"),
    pytest.param(b"data: 1\n", [], id="an event without its blank line is not complete"),
    pytest.param(b"event: a\r\ndata: 1\r\n\r\nevent: b\rdata: 2\r\r", [("a", "1"), ("b", "2")], id="all line ends"),
    pytest.param(b"\xef\xbb\xbfdata: 1\n\n", [("message", "1")], id="byte order mark"),
    pytest.param("data: \u20ac\n\n".encode(), [("message", "\u20ac")], id="UTF-8"),
    pytest.param(b"data: \xff\n\n", [("message", "\ufffd")], id="not UTF-8"),
    pytest.param(b"", [], id="nothing"),
]


def feed_byte_by_byte(stream: EventStream, data: bytes) -> list[ServerSentEvent]:
    return [event for byte in data for event in stream.feed(bytes([byte]))]


@pytest.mark.parametrize(("data", "events"), CASES)
def test_events(data: bytes, events: list[tuple[str, str]]) -> None:
    assert EventStream().feed(data) == events
    assert feed_byte_by_byte(EventStream(), data) == events
    for cut in range(len(data)):
        stream = EventStream()
        assert stream.feed(data[:cut]) + stream.feed(data[cut:]) == events


def test_an_event_that_is_too_large_is_refused() -> None:
    assert EventStream(max_event=10).feed(b"data: 1234\n\n" * 5) == [ServerSentEvent("message", "1234")] * 5
    for large in (b"data: 12345\n", b"data: 1\ndata: 2\n", b"data: 1\ndata"):
        with pytest.raises(WireError, match="larger than 10 bytes"):
            EventStream(max_event=10).feed(large)
        with pytest.raises(WireError, match="larger than 10 bytes"):
            feed_byte_by_byte(EventStream(max_event=10), large)


def test_a_line_that_never_ends_is_refused() -> None:
    with pytest.raises(WireError):
        feed_byte_by_byte(EventStream(max_event=100), b"x" * 200)


@given(st.lists(st.binary(max_size=20), max_size=20))
def test_any_bytes_give_the_same_events_however_they_are_cut(pieces: list[bytes]) -> None:
    stream = EventStream()
    assert [event for piece in pieces for event in stream.feed(piece)] == EventStream().feed(b"".join(pieces))
