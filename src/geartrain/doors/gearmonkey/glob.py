"""Redis' patterns: `*`, `?`, `[a-c]`, `[^a]` and the backslash.

They come from clients, so the time must not exceed the product of both lengths: after a mismatch only the last star is
tried again, one byte further, which is enough.

>>> matches(b"channel:*", b"channel:reverse"), matches(b"h[^a-c]llo", b"hello"), matches(b"a*b", b"abc")
(True, True, False)
"""


def matches(pattern: bytes, name: bytes) -> bool:
    """Whether the whole name matches the pattern."""
    p = n = 0
    star = -1  # where the pattern goes on after the last star
    tried = 0  # where the name was when that star was last tried
    while n < len(name):
        after = _step(pattern, p, name[n]) if p < len(pattern) and pattern[p] != _STAR else -1
        if after >= 0:
            p, n = after, n + 1
        elif p < len(pattern) and pattern[p] == _STAR:
            p += 1
            star, tried = p, n
        elif star >= 0:
            tried += 1
            p, n = star, tried
        else:
            return False
    return all(byte == _STAR for byte in pattern[p:])


_STAR, _ANY, _OPEN, _CLOSE, _ESCAPE, _NOT, _DASH = b"*?[]\\^-"


def _step(pattern: bytes, p: int, byte: int) -> int:
    """Where the pattern goes on if what stands at `p` fits this byte; -1 if it does not."""
    here = pattern[p]
    if here == _ANY:
        return p + 1
    if here == _OPEN:
        return _class(pattern, p + 1, byte)
    if here == _ESCAPE and p + 1 < len(pattern):
        p += 1
    return p + 1 if pattern[p] == byte else -1


def _class(pattern: bytes, p: int, byte: int) -> int:
    """The same for a set of bytes; one that is not closed ends with the pattern."""
    inverted = pattern[p : p + 1] == b"^"
    p += inverted
    found = False
    while p < len(pattern) and pattern[p] != _CLOSE:
        if pattern[p] == _ESCAPE and p + 1 < len(pattern):
            p += 1
            found |= pattern[p] == byte
        elif p + 2 < len(pattern) and pattern[p + 1] == _DASH:
            low, high = sorted((pattern[p], pattern[p + 2]))
            found |= low <= byte <= high
            p += 2
        else:
            found |= pattern[p] == byte
        p += 1
    return min(p + 1, len(pattern)) if found != inverted else -1
