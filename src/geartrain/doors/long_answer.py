"""Answers that are made piece by piece, so that a long list neither stops the loop nor fills the memory."""

import itertools
from collections.abc import Callable, Iterator
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
    """Sends its parts as they are made."""

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


class GatheredAnswer(LongAnswer):
    """Gathers its parts, for a protocol in which an answer begins with its size or the number of its parts."""

    def __init__(self, parts: Iterator[bytes], finish: Callable[[list[bytes]], bytes]) -> None:
        super().__init__()
        self._parts = parts
        self._finish = finish  # makes the answer; a part that is empty was omitted
        self._gathered: list[bytes] = []

    def next_piece(self) -> bytes:
        """Nothing, until every part is there."""
        count = 0
        for part in itertools.islice(self._parts, _PARTS):
            count += 1
            if part:
                self._gathered.append(part)
        if count == _PARTS:
            return b""
        self.ended = True
        return self._finish(self._gathered)
