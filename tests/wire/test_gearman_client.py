"""A server's answers are cut the same however they arrive."""

import itertools

import pytest

from geartrain.errors import WireError
from geartrain.wire import gearman as wire
from geartrain.wire import gearman_client

ANSWERS = (
    wire.response(wire.JOB_CREATED, b"H:a:1")
    + b"OK\r\n"
    + wire.response(wire.NO_JOB)
    + wire.about_job(wire.WORK_COMPLETE, b"H:a:1", b"\0\n\xff")
    + b"ERR UNKNOWN_JOB\r\n"
)
EXPECTED = [
    (wire.JOB_CREATED, b"H:a:1"),
    (wire.TEXT, b"OK\r"),
    (wire.NO_JOB, b""),
    (wire.WORK_COMPLETE, b"H:a:1\0\0\n\xff"),
    (wire.TEXT, b"ERR UNKNOWN_JOB\r"),
]


def cut(*pieces: bytes) -> list[tuple[int, bytes]]:
    answers = gearman_client.AnswerReader()
    found = []
    for piece in pieces:
        answers.feed(piece)
        while (kind := answers.next()) != wire.MORE:
            found.append((kind, answers.data[answers.start : answers.end]))
    return found


def test_whole_and_byte_by_byte_and_at_every_split() -> None:
    assert cut(ANSWERS) == EXPECTED
    assert cut(*(ANSWERS[n : n + 1] for n in range(len(ANSWERS)))) == EXPECTED
    for at in range(1, len(ANSWERS)):
        assert cut(ANSWERS[:at], ANSWERS[at:]) == EXPECTED


@pytest.mark.parametrize(
    "rubbish", [wire.request(wire.JOB_CREATED, b"x"), b"\0XYZ" + b"\0" * 8, b"\0RES\0\0\0\x63\0\0\0\0", b"x" * 9000]
)
def test_what_no_server_says(rubbish: bytes) -> None:
    with pytest.raises(WireError):
        cut(rubbish)


def test_requests_are_those_of_the_wire() -> None:
    for function, unique, payload in itertools.product((b"", b"f"), (b"", b"u"), (b"", b"\0p")):
        expected = wire.request(wire.SUBMIT_JOB, function, unique, payload)
        assert gearman_client.submission(wire.SUBMIT_JOB, function, unique, payload) == expected
    assert gearman_client.about_job(wire.WORK_DATA, b"H:1", b"x") == wire.request(wire.WORK_DATA, b"H:1", b"x")
