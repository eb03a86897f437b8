"""Redis' patterns: `*`, `?`, `[a-c]`, `[^a]` and the backslash, on bytes.

They come from clients, so a match must not cost more than one pass over the name. The stars cut a pattern into segments
of a fixed length. The first and the last segment have fixed places; each of the others is searched for where the one
before it ended, and the first place is always good enough. A segment of plain bytes is searched for with `find`,
another one with a bit for each of its elements (Shift-And), so that no byte of the name is looked at twice.

>>> Glob(b"channel:*").matches(b"channel:reverse"), Glob(b"h[^a-c]llo").matches(b"hello"), Glob(b"a*b").matches(b"abc")
(True, True, False)
"""

from typing import Final

from geartrain.doors.gearmonkey import keys

LONGEST: Final = 512  # bytes of a pattern
MOST_STARS: Final = 32

_STAR, _ANY, _OPEN, _CLOSE, _ESCAPE, _NOT, _DASH = b"*?[]\\^-"
_EVERY_BYTE: Final = frozenset(range(256))

Element = frozenset[int]  # the bytes that fit one place


class GlobSegment:
    """What stands between two stars."""

    __slots__ = ("_elements", "_literal", "_masks", "length")

    def __init__(self, elements: list[Element]) -> None:
        self.length = len(elements)
        self._elements = elements
        self._literal: bytes | None = None
        self._masks: dict[int, int] = {}  # by byte that occurred: the elements that it fits, one bit each
        if all(len(element) == 1 for element in elements):
            self._literal = bytes(byte for element in elements for byte in element)

    def fits(self, name: bytes, position: int) -> bool:
        """Whether it fits at this position, where there are enough bytes."""
        if self._literal is not None:
            return name.startswith(self._literal, position)
        return all(name[position + number] in element for number, element in enumerate(self._elements))

    def find(self, name: bytes, start: int, end: int) -> int:
        """The position after its first occurrence within these bounds, or -1."""
        if self._literal is not None:
            found = name.find(self._literal, start, end)
            return found + self.length if found >= 0 else -1
        masks, complete = self._masks, 1 << (self.length - 1)
        fitting = 0  # bit n: the last bytes fit the elements up to n
        for position in range(start, end):
            byte = name[position]
            mask = masks.get(byte)
            fitting = (fitting << 1 | 1) & (mask if mask is not None else self._add_mask(byte))
            if fitting & complete:
                return position + 1
        return -1

    def _add_mask(self, byte: int) -> int:
        mask = sum(1 << number for number, element in enumerate(self._elements) if byte in element)
        self._masks[byte] = mask
        return mask


class Glob:
    """A parsed pattern. An error for one that is too long or has too many stars."""

    __slots__ = ("_first", "_last", "_middle", "_without_star")

    def __init__(self, pattern: bytes) -> None:
        if len(pattern) > LONGEST:
            raise keys.refusal(f"a pattern has at most {LONGEST} bytes")
        segments = _parse(pattern)
        if len(segments) - 1 > MOST_STARS:
            raise keys.refusal(f"a pattern has at most {MOST_STARS} stars")
        self._without_star = len(segments) == 1
        self._first = GlobSegment(segments[0])
        self._last = GlobSegment(segments[-1])
        self._middle = [GlobSegment(elements) for elements in segments[1:-1]]

    def matches(self, name: bytes) -> bool:
        """Whether the whole name matches."""
        first, last = self._first, self._last
        if self._without_star:
            return len(name) == first.length and first.fits(name, 0)
        position, end = first.length, len(name) - last.length
        if position > end or not first.fits(name, 0) or not last.fits(name, end):
            return False
        for segment in self._middle:
            position = segment.find(name, position, end)
            if position < 0:
                return False
        return True


def _parse(pattern: bytes) -> list[list[Element]]:
    """The elements of each segment; several stars in a row are one."""
    segments: list[list[Element]] = [[]]
    position = 0
    while position < len(pattern):
        here = pattern[position]
        if here == _STAR:
            if segments[-1] or len(segments) == 1:
                segments.append([])
            position += 1
        elif here == _ANY:
            segments[-1].append(_EVERY_BYTE)
            position += 1
        elif here == _OPEN:
            element, position = _class(pattern, position + 1)
            segments[-1].append(element)
        else:
            position += here == _ESCAPE and position + 1 < len(pattern)
            segments[-1].append(frozenset({pattern[position]}))
            position += 1
    return segments


def _class(pattern: bytes, position: int) -> tuple[Element, int]:
    """A set of bytes, and where the pattern goes on after it; one that is not closed ends with the pattern."""
    inverted = pattern[position : position + 1] == b"^"
    position += inverted
    found: set[int] = set()
    while position < len(pattern) and pattern[position] != _CLOSE:
        here = pattern[position]
        if here == _ESCAPE and position + 1 < len(pattern):
            position += 1
            found.add(pattern[position])
        elif position + 2 < len(pattern) and pattern[position + 1] == _DASH:
            low, high = sorted((here, pattern[position + 2]))
            found.update(range(low, high + 1))
            position += 2
        else:
            found.add(here)
        position += 1
    element = _EVERY_BYTE - found if inverted else frozenset(found)
    return element, min(position + 1, len(pattern))
