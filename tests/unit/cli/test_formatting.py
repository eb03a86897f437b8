"""Times and durations of options."""

import datetime

import pytest

from geartrain.cli import formatting
from geartrain.cli.parameters import UsageError

NOW = 1_789_000_000.0


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: NOW)


@pytest.mark.parametrize(
    ("text", "past", "future"),
    [
        ("", 0.0, 0.0),
        ("2h", NOW - 7200, NOW + 7200),
        ("@17.5", 17.5, 17.5),
        ("2026-11-15T18:30Z", 1_794_767_400.0, 1_794_767_400.0),
        ("2026-11-15", *[datetime.datetime(2026, 11, 15).timestamp()] * 2),
    ],
)
def test_times(text: str, past: float, future: float) -> None:
    assert formatting.parse_past_time(text, "--since") == past
    assert formatting.parse_future_time(text, "--at") == future


@pytest.mark.parametrize("text", ["12", "yesterday", "@", "2026-13-01", "2x"])
def test_wrong_times(text: str) -> None:
    with pytest.raises(UsageError, match="is not a time such as"):
        formatting.parse_past_time(text, "--since")


@pytest.mark.parametrize(("text", "seconds"), [("", 0.0), ("90", 90.0), ("1.5s", 1.5), ("10m", 600.0)])
def test_durations(text: str, seconds: float) -> None:
    assert formatting.parse_duration(text, "--delay") == seconds


def test_wrong_duration() -> None:
    with pytest.raises(UsageError, match="'soon' is not a duration"):
        formatting.parse_duration("soon", "--delay")


def test_control_characters_are_replaced_and_long_values_cut() -> None:
    assert formatting.value("a\nb") == "a\u00b7b"
    assert formatting.value("x" * 50, 10) == "xxxxxxx..."
