"""Redis' patterns, and that strangers cannot make them slow."""

from collections.abc import Iterator
from typing import SupportsIndex, overload

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geartrain.doors.gearmonkey import glob
from geartrain.doors.gearmonkey.glob import Glob
from geartrain.errors import WireError
from tests.support import gearmonkey_door
from tests.support.examples import examples
from tests.support.gearmonkey_door import Bench


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
        (b"[]", b"]", False),
        (b"[^]", b"x", True),
        (b"[a-]", b"]", True),
        (b"[a-", b"-", True),
        (b"[\\", b"\\", True),
        (b"*[ab]?", b"xxbc", True),
        (b"*?b*[^c]", b"abac", False),
        (b"a*a", b"a", False),
        (b"\xff*\x00", b"\xff\x00", True),
    ],
)
def test_patterns(pattern: bytes, name: bytes, fits: bool) -> None:
    assert Glob(pattern).matches(name) is fits
    assert matches_by_trying(pattern, name) is fits


def matches_by_trying(pattern: bytes, name: bytes) -> bool:
    """Redis' rules, one byte at a time, with every length of every star."""
    if not pattern:
        return not name
    if pattern[:1] == b"*":
        return any(matches_by_trying(pattern[1:], name[taken:]) for taken in range(len(name) + 1))
    if not name:
        return False
    if pattern[:1] == b"?":
        return matches_by_trying(pattern[1:], name[1:])
    if pattern[:1] == b"[":
        fits, rest = class_by_trying(pattern[1:], name[:1])
        return fits and matches_by_trying(rest, name[1:])
    if pattern[:1] == b"\\" and len(pattern) > 1:
        pattern = pattern[1:]
    return pattern[:1] == name[:1] and matches_by_trying(pattern[1:], name[1:])


def class_by_trying(rest: bytes, byte: bytes) -> tuple[bool, bytes]:
    inverted, found = rest[:1] == b"^", False
    rest = rest[1:] if inverted else rest
    while rest and rest[:1] != b"]":
        if rest[:1] == b"\\" and len(rest) > 1:
            found, rest = found or rest[1:2] == byte, rest[2:]
        elif len(rest) > 2 and rest[1:2] == b"-":
            low, high = min(rest[:1], rest[2:3]), max(rest[:1], rest[2:3])
            found, rest = found or low <= byte <= high, rest[3:]
        else:
            found, rest = found or rest[:1] == byte, rest[1:]
    return found != inverted, rest[1:]


PIECES = st.sampled_from(
    [b"*", b"?", b"[", b"]", b"^", b"-", b"\\", b"a", b"b", b"c", b"[ab]", b"[^a]", b"[a-b]", b"ab"]
)


@examples(2000)
@given(pattern=st.lists(PIECES, max_size=10).map(b"".join), name=st.lists(st.sampled_from(b"abc]-"), max_size=10))
def test_same_as_trying_everything(pattern: bytes, name: list[int]) -> None:
    assert Glob(pattern).matches(bytes(name)) is matches_by_trying(pattern, bytes(name))


class CountingName(bytes):
    """Counts how often one of its bytes is looked at."""

    looks = 0

    @overload
    def __getitem__(self, key: SupportsIndex, /) -> int: ...
    @overload
    def __getitem__(self, key: slice, /) -> bytes: ...
    def __getitem__(self, key: SupportsIndex | slice, /) -> int | bytes:
        looked_at = super().__getitem__(key)
        type(self).looks += len(looked_at) if isinstance(looked_at, bytes) else 1
        return looked_at


@pytest.mark.parametrize("length", [100, 1000, 10_000])
@pytest.mark.parametrize("pattern", [b"*[ab]?" * 30 + b"c", b"*[ab]" + b"?" * 300 + b"c*", b"?*" * 32, b"*[^a][^b]*"])
def test_each_byte_is_looked_at_once(pattern: bytes, length: int) -> None:
    """Whatever the pattern. After a mismatch nothing is tried again."""
    CountingName.looks = 0
    Glob(pattern).matches(CountingName(b"a" * length))
    assert CountingName.looks <= length + len(pattern)


@pytest.mark.parametrize(
    ("pattern", "error"), [(b"a" * 513, "at most 512 bytes"), (b"*a" * 33, "at most 32 stars"), (b"?" * 513, "512")]
)
def test_bounds(pattern: bytes, error: str) -> None:
    with pytest.raises(WireError, match=error):
        Glob(pattern)
    Glob(b"*" * 512)


class TestTheDoor:
    @pytest.fixture
    def door(self) -> Iterator[Bench]:
        with gearmonkey_door.opened() as bench:
            yield bench

    @pytest.mark.parametrize("command", ["KEYS {}", "SCAN 0 MATCH {}", "PSUBSCRIBE channel:* {}"])
    def test_patterns_that_are_refused(self, door: Bench, command: str) -> None:
        peer = door.peer()
        assert peer.ask(command.format("*a" * 33)) == b"-ERR a pattern has at most 32 stars\r\n"
        assert not peer.connection.is_subscriber, "a part of the command was carried out"

    def test_patterns_of_one_connection(self, door: Bench) -> None:
        peer = door.peer()
        peer.ask("PSUBSCRIBE " + " ".join(f"channel:{number}*" for number in range(100)))
        assert peer.ask("PSUBSCRIBE more") == b"-ERR a connection can listen to 100 patterns\r\n"
        assert b"psubscribe" in peer.ask("PSUBSCRIBE channel:1*"), "it has that one already"

    def test_patterns_of_all_connections(self, door: Bench) -> None:
        door.door.channels.by_pattern.most_patterns = 2
        first, second = door.peer(), door.peer()
        first.ask("PSUBSCRIBE a* b*")
        assert b"psubscribe" in second.ask("PSUBSCRIBE a*")
        assert b"there are 2 patterns of all connections" in second.ask("PSUBSCRIBE c*")
        first.ask("PUNSUBSCRIBE b*")
        assert b"psubscribe" in second.ask("PSUBSCRIBE c*")

    def test_long_channel(self, door: Bench) -> None:
        for command in (f"PUBLISH channel:{'x' * 1017} hello", f"SUBSCRIBE channel:{'x' * 1017}"):
            assert door.ask(command) == b"-ERR the name of a channel has at most 1024 bytes\r\n"

    def test_event_of_a_known_channel_costs_a_look_up(self, door: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        """Until the patterns change."""
        matched: list[bytes] = []
        matches = Glob.matches
        monkeypatch.setattr(glob.Glob, "matches", lambda self, name: matched.append(name) or matches(self, name))
        peer = door.peer()
        peer.ask("PSUBSCRIBE channel:f* other*")
        first = door.submit()
        assert matched == [b"channel:f"] * 2
        second = door.submit()
        assert matched == [b"channel:f"] * 2, "its patterns were matched again"
        for number in (first, second):
            assert b"create:%d" % number in peer.transport.written
        peer.ask("PUNSUBSCRIBE other*", "PSUBSCRIBE *")
        door.submit()
        assert matched == [b"channel:f"] * 4
        assert peer.transport.written.count(b"create:%d" % (second + 1)) == 2
