"""What programs say, as an order has it."""

import datetime
import time

import pytest

from geartrain.client import arguments
from geartrain.model import Priority


def test_names_survive_being_decoded_whatever_bytes_they_are() -> None:
    for name in (b"reverse", "gr\u00fc\u00df".encode(), b"\xff\x00\xfe"):
        assert arguments.encoded(arguments.decoded(name)) == name
    assert arguments.encoded(bytearray(b"x")) == b"x"
    assert type(arguments.encoded(memoryview(b"x"))) is bytes  # type: ignore[arg-type]


def test_times() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=2))
    assert arguments.run_at(datetime.datetime(1970, 1, 1, 2, 0, 5, tzinfo=zone), None) == 5.0
    assert arguments.run_at(12.5, None) == 12.5
    assert arguments.run_at(None, None) == 0.0
    assert arguments.run_at(None, 0) == 0.0
    assert arguments.run_at(None, -5) == 0.0
    before = time.time()
    assert before + 60 <= arguments.run_at(None, datetime.timedelta(minutes=1)) <= time.time() + 60
    with pytest.raises(ValueError, match="not both"):
        arguments.run_at(1.0, 1.0)


def test_priorities() -> None:
    assert [arguments.priority(name) for name in ("high", "Normal", Priority.LOW)] == list(Priority)
    with pytest.raises(ValueError, match="'soon' is no priority"):
        arguments.priority("soon")


def test_an_unsupported_error_says_who_can() -> None:
    assert "gearman" in str(arguments.unsupported("priority", "danga"))
    assert str(arguments.unsupported("priority", "danga")).startswith("danga does not support priorities; ")
