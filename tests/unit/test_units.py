"""Sizes and durations as people write them."""

import pytest

from geartrain import units


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("0", 0),
        ("512b", 512),
        ("64MiB", 67108864),
        ("64mib", 67108864),
        ("64 MiB", 67108864),
        ("1.5KiB", 1536),
        ("500kB", 500_000),
        ("2MB", 2_000_000),
        ("1GB", 1_000_000_000),
        ("1GiB", 1073741824),
        (" 7 ", 7),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert units.parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("60", 60.0),
        ("0.5", 0.5),
        ("1ms", 0.001),
        ("250us", 0.00025),
        ("60s", 60.0),
        ("2m", 120.0),
        ("2min", 120.0),
        ("2h", 7200.0),
        ("1.5h", 5400.0),
        ("1d", 86400.0),
        ("0", 0.0),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert units.parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "MiB", "-1", "1e3", "1 000", "0x10", "1MiB2", "1,5s", "nan", "inf", "1.s"])
def test_invalid_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a number with a unit"):
        units.parse_size(text)
    with pytest.raises(ValueError, match="is not a number with a unit"):
        units.parse_duration(text)


def test_units_do_not_mix() -> None:
    with pytest.raises(ValueError, match="'60s'"):
        units.parse_size("60s")
    with pytest.raises(ValueError, match="'64MiB'"):
        units.parse_duration("64MiB")


def test_part_of_a_byte_is_refused() -> None:
    with pytest.raises(ValueError, match="not a whole number of bytes"):
        units.parse_size("0.3")


@pytest.mark.parametrize("text", ["1", "1000", "1KiB", "3MiB", "64MiB", "2GiB"])
def test_sizes_are_shown_as_they_are_written(text: str) -> None:
    assert units.show_size(units.parse_size(text)) == text


@pytest.mark.parametrize("text", ["0", "1ms", "50ms", "250us", "60s", "90s", "2h", "1d", "1500ms"])
def test_durations_are_shown_as_they_are_written(text: str) -> None:
    assert units.show_duration(units.parse_duration(text)) == text


def test_duration_that_fits_no_unit_is_shown_in_seconds() -> None:
    assert units.show_duration(1e-7) == "1e-07s"
