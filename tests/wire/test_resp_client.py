"""Answers of a Redis, however they are cut into pieces."""

from typing import Any

import pytest

from geartrain.errors import WireError
from geartrain.wire.resp import ErrorReply
from geartrain.wire.resp_client import MORE, ReplyReader

VECTORS: list[tuple[bytes, Any]] = [
    (b"+OK\r\n", b"OK"),
    (b":-7\r\n", -7),
    (b"$5\r\na\r\nbc\r\n", b"a\r\nbc"),
    (b"$0\r\n\r\n", b""),
    (b"$-1\r\n", None),
    (b"*-1\r\n", None),
    (b"*0\r\n", []),
    (b"-NOSCRIPT no\r\n", ErrorReply("NOSCRIPT", "no")),
    (b"*3\r\n:1\r\n*2\r\n$1\r\na\r\n*0\r\n$-1\r\n", [1, [b"a", []], None]),
    (b"*1\r\n*1\r\n*1\r\n-ERR x\r\n", [[[ErrorReply("ERR", "x")]]]),
]


def read(pieces: list[bytes]) -> list[Any]:
    replies, found = ReplyReader(), []
    for piece in pieces:
        replies.feed(piece)
        while (value := replies.next()) is not MORE:
            found.append(value)
    return found


def test_whole() -> None:
    assert read([b"".join(data for data, _ in VECTORS)]) == [value for _, value in VECTORS]


def test_byte_by_byte() -> None:
    data = b"".join(data for data, _ in VECTORS)
    assert read([data[at : at + 1] for at in range(len(data))]) == [value for _, value in VECTORS]


@pytest.mark.parametrize(("data", "value"), VECTORS)
def test_at_every_split(data: bytes, value: Any) -> None:
    for at in range(len(data) + 1):
        assert read([data[:at], data[at:]]) == [value]


def test_long_stream_is_not_kept() -> None:
    replies, answer = ReplyReader(), b"$60000\r\n" + b"x" * 60000 + b"\r\n"
    for _ in range(10):
        # One and a half answers at a time, so that there always is a rest.
        replies.feed(answer + answer[:30000])
        assert replies.next() == b"x" * 60000
        replies.feed(answer[30000:])
        assert replies.next() == b"x" * 60000
    assert len(replies._data) < 3 * len(answer)


@pytest.mark.parametrize(
    "data", [b"HTTP/1.1 200 OK\r\n", b"\r\n", b":x\r\n", b"$\r\n", b"*1e3\r\n", b"*1\r\n" * 40, b"+" + b"x" * 70000]
)
def test_what_is_no_answer(data: bytes) -> None:
    with pytest.raises(WireError, match="invalid reply of a Redis"):
        read([data])
