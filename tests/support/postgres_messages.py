"""Just enough of PostgreSQL's protocol to see which message a program or the server sends.

The chapter "Message Formats" of PostgreSQL's manual: a kind of one byte, a length of four that counts itself, and the
body. What a connection begins with has no kind, and is answered with a single byte where it asks for encryption.
"""

import enum
import struct
from collections.abc import Iterator
from typing import NamedTuple

_ENCRYPTION = frozenset({80877103, 80877104})  # SSLRequest and GSSENCRequest
_LENGTH = struct.Struct("!I")


class Side(enum.Enum):
    """Who sends."""

    CLIENT = enum.auto()
    SERVER = enum.auto()


class Message(NamedTuple):
    """One message as it is on the wire."""

    side: Side
    kind: bytes  # empty: the beginning of a connection, or the answer to it
    data: bytes  # with kind and length
    commits: bool = False  # when PostgreSQL has it, nothing more is needed for a commit

    @property
    def statement(self) -> str:
        """The SQL of a Query or Parse message, in upper case and without its semicolon."""
        if self.side is not Side.CLIENT or self.kind not in (b"Q", b"P"):
            return ""
        body = self.data[5:]
        if self.kind == b"P":  # the name of the prepared statement comes first
            body = body.partition(b"\0")[2]
        return body.partition(b"\0")[0].decode(errors="replace").strip().rstrip(";").rstrip().upper()

    @property
    def tag(self) -> str:
        """What a CommandComplete message says was done, such as `COMMIT` or `COPY 5`."""
        done = self.side is Side.SERVER and self.kind == b"C"
        return self.data[5:].partition(b"\0")[0].decode(errors="replace") if done else ""


class Reader:
    """Cuts the bytes of one side of a connection into messages."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self.questions = 0  # about encryption: seen if this is the client, to be answered if it is the server
        self._begun = side is Side.SERVER  # the server's messages always have a kind
        self._received = bytearray()
        self._copies = 0  # whose rows come before the COMMIT of a text with several statements

    def feed(self, data: bytes) -> Iterator[Message]:
        """The messages that are complete."""
        self._received += data
        while (size := self._size()) and len(self._received) >= size:
            message = bytes(self._received[:size])
            del self._received[:size]
            yield self._framed(message)

    def _size(self) -> int:
        """Of the first message; 0: not known yet."""
        if self.side is Side.SERVER and self.questions:
            return 1
        head = 1 if self._begun else 0
        if len(self._received) < head + _LENGTH.size:
            return 0
        return head + int(_LENGTH.unpack_from(self._received, head)[0])

    def _framed(self, message: bytes) -> Message:
        if self.side is Side.SERVER and self.questions:
            self.questions -= 1
            return Message(self.side, b"", message)
        if self._begun:
            framed = Message(self.side, message[:1], message)
            return framed._replace(commits=self._completes_commit(framed))
        if _LENGTH.unpack_from(message, 4)[0] in _ENCRYPTION:
            self.questions += 1
        else:
            self._begun = True
        return Message(self.side, b"", message)

    def _completes_commit(self, message: Message) -> bool:
        """Whether this is a COMMIT, or the end of the rows of the last COPY before it."""
        text = message.statement
        if text.rpartition(";")[2] == "COMMIT":
            self._copies = text.count(" FROM STDIN ")
            return not self._copies
        if message.side is Side.CLIENT and message.kind == b"c" and self._copies:
            self._copies -= 1
            return not self._copies
        return False
