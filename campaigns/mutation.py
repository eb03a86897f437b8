"""Mutated frames: valid ones, with a few bytes changed where parsers make mistakes.

A *body* is what a peer means to say, and `wrap` makes a frame of it, with its lengths and checksums. A mutated body in
a correct frame reaches the code behind the framing; a mutated frame tests the framing itself.
"""

import random
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

LIMIT = 2000  # bytes: what readers are told to accept in one frame, so that frames beyond it are cheap
_NUMBERS = (0, 1, 2, 127, 128, 255, 256, LIMIT - 1, LIMIT, LIMIT + 1, 32767, 32768, 65535, 65536)
_LARGE_NUMBERS = (2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
BORDERS = tuple(
    number.to_bytes(width, "big")
    for width in (1, 2, 4, 8)
    for number in (*_NUMBERS, *_LARGE_NUMBERS)
    if number < 1 << 8 * width
)
# The same for protocols that write numbers as text.
DIGITS = tuple(str(sign * number).encode() for number in (*_NUMBERS, *_LARGE_NUMBERS) for sign in (1, -1))
_ODD_DIGITS = (b"", b"-", b"+1", b" 1", b"007", b"1e3", b"0x10", b"9" * 20, b"9" * 30, b"1_0", "\u0664".encode())
_DIGIT_RUN = re.compile(rb"-?[0-9]+")
_HEADER_SIZE = 16  # most length fields lie in the first bytes of a frame
MOST_FRAMES = 24  # in one stream
_LONGEST_FRAME = 3 * LIMIT

T = TypeVar("T")
Wrap = Callable[[bytes], bytes]


def unwrapped(body: bytes) -> bytes:
    """For protocols whose frames are their bodies."""
    return body


class Mutator:
    """Makes streams of frames from bodies. All chance comes from `chance`, so a seed repeats them."""

    def __init__(
        self, chance: random.Random, bodies: Sequence[bytes], wrap: Wrap = unwrapped, tokens: Sequence[bytes] = ()
    ) -> None:
        self._random = chance.random
        self._bytes = chance.randbytes
        self._wrap = wrap
        self.bodies = list(bodies)
        self.tokens = [*tokens, *BORDERS]
        self.used: list[bytes] = []  # the mutated bodies of the last stream
        self._in_header = 0.0  # how many of the changes are made in the first bytes
        self._operations = (
            self._flip,
            self._flip,
            self._put_border,
            self._put_border,
            self._put_token,
            self._insert_token,
            self._remove,
            self._repeat,
            self._cut_off,
            self._put_digits,
            self._put_digits,
            self._insert_noise,
            self._splice,
        )

    def stream(self, most: int = MOST_FRAMES) -> list[bytes]:
        """Some frames, most of them mutated."""
        self.used.clear()
        return [self.frame() for _ in range(1 + self.below(most))]

    def frame(self) -> bytes:
        """One frame: as it should be, with a mutated body, or mutated as a whole."""
        body = self.pick(self.bodies)
        kind = self._random()
        if kind < 0.15:
            return self._wrap(body)
        if kind < 0.75:
            body = self.mutated(body)
            self.used.append(body)
            return self._wrap(body)
        if kind < 0.97:
            return self.mutated(self._wrap(body), in_header=0.5)
        return self._bytes(self.below(40))

    def mutated(self, data: bytes, in_header: float = 0.0) -> bytes:
        """The bytes after one to three changes, so many of them in the header."""
        self._in_header = in_header
        changed = bytearray(data)
        for _ in range(1 + self.below(3)):
            self.pick(self._operations)(changed)
        return bytes(changed[:_LONGEST_FRAME])

    def chunks(self, stream: bytes) -> list[bytes]:
        """The stream in pieces, as a network might deliver it."""
        size = len(stream)
        style = self._random()
        if style < 0.2 or size < 2:
            return [stream] if stream else []
        if style < 0.3 and size < 200:
            return [stream[at : at + 1] for at in range(size)]
        edges = sorted(self.below(size) for _ in range(1 + self.below(8)))
        edges.append(size)
        pieces = []
        begin = 0
        for end in edges:
            if end > begin:
                pieces.append(stream[begin:end])
                begin = end
        return pieces

    def pick(self, choices: Sequence[T]) -> T:
        return choices[int(self._random() * len(choices))]

    def below(self, number: int) -> int:
        """A number from 0 to one below; 0 if there is none."""
        return int(self._random() * number)

    # What can happen to the bytes of a frame

    def _place(self, data: bytearray) -> int:
        size = len(data)
        return self.below(min(size, _HEADER_SIZE) if self._random() < self._in_header else size)

    def _flip(self, data: bytearray) -> None:
        if data:
            data[self._place(data)] ^= 1 << self.below(8)

    def _put_border(self, data: bytearray) -> None:
        at = self._place(data)
        border = self.pick(BORDERS)
        data[at : at + len(border)] = border

    def _put_token(self, data: bytearray) -> None:
        at = self._place(data)
        token = self.pick(self.tokens)
        data[at : at + len(token)] = token

    def _insert_token(self, data: bytearray) -> None:
        at = self._place(data)
        data[at:at] = self.pick(self.tokens)

    def _remove(self, data: bytearray) -> None:
        at = self._place(data)
        del data[at : at + 1 + self.below(8)]

    def _repeat(self, data: bytearray) -> None:
        at = self._place(data)
        data[at:at] = data[at : at + 1 + self.below(32)] * (1 + self.below(8))

    def _cut_off(self, data: bytearray) -> None:
        del data[self.below(len(data)) :]

    def _put_digits(self, data: bytearray) -> None:
        runs = list(_DIGIT_RUN.finditer(data))
        if runs:
            begin, end = self.pick(runs).span()
            data[begin:end] = self.pick(_ODD_DIGITS if self._random() < 0.3 else DIGITS)

    def _insert_noise(self, data: bytearray) -> None:
        at = self._place(data)
        size = self.below(LIMIT) if self._random() < 0.02 else self.below(16)
        data[at:at] = self._bytes(size)

    def _splice(self, data: bytearray) -> None:
        other = self.pick(self.bodies)
        data[self.below(len(data)) :] = other[self.below(len(other)) :]
