"""Answers that are made piece by piece, so that a long list neither stops the loop nor fills the memory.

In some protocols an answer begins with its size or with the number of its parts. Such an answer yields empty parts
while it gathers the others, and has a bound on what it gathers.
"""

import itertools
from collections.abc import Iterator
from typing import Final

from mypy_extensions import mypyc_attr

_PARTS: Final = 128  # of one piece
_PIECE: Final = 64 * 1024  # bytes of one piece, about


@mypyc_attr(allow_interpreted_subclasses=True)
class LongAnswer:
    """An answer that `Connection.answer_in_steps` asks for its pieces. What it lists may change between two of them."""

    def __init__(self) -> None:
        self.ended = False  # set with the last piece

    def next_piece(self) -> bytes:
        """The next bytes of the answer, which may be none."""
        raise NotImplementedError


class StreamedAnswer(LongAnswer):
    """Sends its parts as they are made; a part may be empty."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        super().__init__()
        self._parts = parts

    def next_piece(self) -> bytes:
        """Join some parts."""
        parts = []
        size = 0
        for part in itertools.islice(self._parts, _PARTS):
            parts.append(part)
            size += len(part)
            if size > _PIECE:
                return b"".join(parts)
        self.ended = len(parts) < _PARTS
        return b"".join(parts)
