"""What a campaign needs to know about one codec, and the loop that reads a stream with any of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from campaigns.mutation import Wrap, unwrapped
from geartrain.errors import WireError


class Refusal(NamedTuple):
    """A WireError: the reader refused what it was fed."""

    code: str
    fatal: bool
    text: str


Packet = tuple[Any, ...]  # a packet with its fields; the first one tells its type
Outcome = Packet | Refusal
# Cuts the next packet out of what was fed: its type and fields, or None if more bytes are needed.
NextPacket = Callable[[], Packet | None]


class Stream(NamedTuple):
    """A new reader, as the campaign uses it."""

    feed: Callable[[bytes], None]
    next: NextPacket


class Codec(NamedTuple):
    """One codec of `wire/`."""

    name: str
    bodies: Sequence[bytes]  # what the mutations begin with
    open: Callable[[], Stream]
    wrap: Wrap = unwrapped
    tokens: Sequence[bytes] = ()  # bytes that mean something in this protocol
    openings: Sequence[bytes] = (b"",)  # what a stream begins with, such as a greeting
    in_messages: bool = False  # it reads whole messages, so a stream is not cut into pieces
    keeps_packets_before_error: bool = True  # also of the chunk that has the error

    def read(self, chunks: Iterable[bytes]) -> list[Outcome]:
        """What a new reader makes of these chunks, up to a fatal error. Anything but a WireError is a fault."""
        stream = self.open()
        outcomes: list[Outcome] = []
        for chunk in chunks:
            stream.feed(chunk)
            while True:
                try:
                    packet = stream.next()
                except WireError as error:
                    outcomes.append(Refusal(error.code, error.fatal, error.text))
                    if error.fatal:
                        return outcomes
                    continue
                if packet is None:
                    break
                outcomes.append(packet)
        return outcomes


def comparable(outcomes: Iterable[Outcome]) -> Iterator[Outcome | tuple[str, bool]]:
    """Outcomes without the texts of errors, which may tell how much had arrived."""
    return (outcome[:2] if isinstance(outcome, Refusal) else outcome for outcome in outcomes)
