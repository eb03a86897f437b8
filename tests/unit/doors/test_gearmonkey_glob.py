"""Redis' patterns, and that strangers cannot make them slow."""

import pytest

from geartrain.doors.gearmonkey import glob


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        (b"", b"", True),
        (b"", b"a", False),
        (b"*", b"", True),
        (b"a*c", b"abbc", True),
        (b"a*c", b"abcb", False),
        (b"**b**", b"abc", True),
        (b"h?llo", b"hello", True),
        (b"h?llo", b"hllo", False),
        (b"h[ae]llo", b"hallo", True),
        (b"h[^e]llo", b"hello", False),
        (b"h[^e]llo", b"hbllo", True),
        (b"h[a-c]llo", b"hbllo", True),
        (b"h[c-a]llo", b"hbllo", True),
        (b"h\\*llo", b"h*llo", True),
        (b"h\\*llo", b"hello", False),
        (b"[\\]]", b"]", True),
        (b"[a", b"a", True),
        (b"x\\", b"x\\", True),
    ],
)
def test_patterns(pattern: bytes, name: bytes, fits: bool) -> None:
    assert glob.matches(pattern, name) is fits


def test_many_stars_take_no_time() -> None:
    """Tried naively this would not end in a lifetime."""
    assert not glob.matches(b"*a" * 50 + b"b", b"a" * 2000)
