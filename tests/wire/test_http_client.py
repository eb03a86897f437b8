"""Answers as a client reads them, whole, byte by byte and at every split; httptools reads the same in them."""

import itertools
from collections.abc import Iterable

import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geartrain.errors import WireError
from geartrain.wire.http_client import HEAD_LIMIT, AnswerReader

Answer = tuple[int, bytes, bool]  # the status, the body, and whether the connection is kept

VECTORS: dict[bytes, list[Answer]] = {
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi": [(200, b"hi", True)],
    b"HTTP/1.1 200 OK\r\ncontent-length:2 \r\nconnection: Close\r\n\r\nhi": [(200, b"hi", False)],
    b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 201\r\nContent-Length: 0\r\n\r\n": [(204, b"", True), (201, b"", True)],
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\nx": [(404, b"x", True)],
    b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx": [(200, b"x", False)],
    b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx": [(200, b"x", True)],
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\nA;x=y\r\n0123456789\r\n0\r\nA: b\r\n\r\n": [
        (200, b"hi0123456789", True)
    ],
    b"HTTP/1.1 200 OK\r\nX: content-length: 9\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx": [(200, b"x", True)],
}

BAD = (
    (b"SSH-2.0-OpenSSH\r\n", "does not begin an answer"),
    (b"HTTP/2 200\r\n\r\n", "does not begin an answer"),
    (b"HTTP/1.1 999 OK\r\n\r\n", "does not begin an answer"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "the length of a body is b'-1'"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "the length of a body is b'2'"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "a length and chunks"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "unknown encoding b'gzip'"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxy\r\n", "b'xy' is not the size of a chunk"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n", "a chunk is longer than its size"),
    (b"HTTP/1.1 200 OK\r\nX: " + bytes(HEAD_LIMIT), f"more than {HEAD_LIMIT} bytes"),
    (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * (HEAD_LIMIT + 1),
        f"more than {HEAD_LIMIT} bytes",
    ),
)


def read(pieces: Iterable[bytes], ends: bool = False) -> list[Answer]:
    """The answers in these bytes."""
    reader = AnswerReader()
    answers: list[Answer] = []
    body: list[bytes] = []
    for piece in (*pieces, b""):
        reader.feed(piece)
        if ends and not piece:
            reader.end_input()
        while (part := reader.next_part()) is not None:
            body.append(part)
            if not part:
                answers.append((reader.status, b"".join(body), reader.keeps_connection))
                body.clear()
    assert body == []
    return answers


@pytest.mark.parametrize(("data", "answers"), VECTORS.items())
def test_answers_whole_byte_by_byte_and_at_every_split(data: bytes, answers: list[Answer]) -> None:
    assert read([data]) == answers
    assert read(data[at : at + 1] for at in range(len(data))) == answers
    for at in range(1, len(data)):
        assert read([data[:at], data[at:]]) == answers


def test_a_part_can_be_had_before_the_rest_has_arrived() -> None:
    reader = AnswerReader()
    reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe")
    assert (reader.next_part(), reader.next_part()) == (b"he", None)
    reader.feed(b"llo")
    assert (reader.next_part(), reader.next_part(), reader.next_part()) == (b"llo", b"", None)


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    data = b"HTTP/1.1 200 OK\r\n\r\nto the end"
    assert read([data, b"!"], ends=True) == [(200, b"to the end!", False)]
    reader = AnswerReader()
    reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
    assert reader.next_part() is None
    reader.end_input()
    assert reader.next_part() is None, "a body that was cut off is no answer"


@pytest.mark.parametrize(("data", "said"), BAD)
def test_what_is_no_answer_is_an_error(data: bytes, said: str) -> None:
    with pytest.raises(WireError, match=said):
        read([data])


class Collector:
    """What httptools calls."""

    def __init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.answers: list[Answer] = []
        self.body = b""

    def on_body(self, part: bytes) -> None:
        self.body += part

    def on_message_complete(self) -> None:
        self.answers.append((self.parser.get_status_code(), self.body, self.parser.should_keep_alive()))
        self.body = b""


headers = st.sampled_from(
    (b"Connection: close", b"Connection: keep-alive", b"X-Y:z", b"Date: Thu, 01 Jan 1970 00:00:00 GMT")
)


@st.composite
def answer(draw: st.DrawFn) -> bytes:
    body = draw(st.binary(max_size=40))
    lines = draw(st.lists(headers, max_size=2, unique=True))
    if draw(st.booleans()):
        lines.append(b"Transfer-Encoding: chunked")
        cuts = sorted(draw(st.lists(st.integers(0, len(body)), max_size=3)))
        parts = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True) if a < b]
        body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    else:
        lines.append(b"Content-Length: %d" % len(body))
    status = draw(st.sampled_from((b"200 OK", b"201", b"404 Not Found", b"503 x y")))
    return b"\r\n".join((b"HTTP/1.1 " + status, *draw(st.permutations(lines)), b"", b"")) + body


@given(answer(), st.lists(st.integers(0, 300), max_size=4))
def test_httptools_reads_the_same(data: bytes, cuts: list[int]) -> None:
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    other = Collector()
    other.parser.feed_data(data)
    assert read(data[a:b] for a, b in itertools.pairwise(places)) == other.answers
