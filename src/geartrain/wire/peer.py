"""The protocol between the servers of a cluster.

A frame is a length of four bytes, a kind of one byte, and a MessagePack array, which the class of that kind describes.
Servers of different versions talk to each other during an upgrade: a frame of an unknown kind is skipped, fields that
are missing at the end have their default, and fields too many are ignored.

>>> reader = Reader(1024)
>>> reader.feed(encode(LinkPing(7)))
>>> reader.next(), reader.frame()
(True, LinkPing(number=7))
>>> reader.next()
False
"""

import hashlib
import hmac
from typing import Any, Final

import msgspec

from geartrain.errors import WireError
from geartrain.wire.packet_buffer import PacketBuffer

VERSION: Final = 1  # of this protocol; a server that speaks a newer one understands this one too
MAGIC: Final = b"geartrain peer"
NONCE_BYTES: Final = 32
_HEAD: Final = 5  # bytes: length and kind
_encoder: Final = msgspec.msgpack.Encoder()


class Frame(msgspec.Struct, array_like=True):
    """The base of all frames."""


# Handshake


class Hello(Frame):
    """The first frame from both sides."""

    magic: bytes
    version: int
    node: int
    name: str
    nonce: bytes


class Proof(Frame):
    """The second frame from both sides: its sender knows the secret of the cluster."""

    digest: bytes


class LinkPing(Frame):
    """Is answered by LinkPong with the same number."""

    number: int


class LinkPong(Frame):
    """The answer to LinkPing."""

    number: int


# Lending. `crew` is a number that the borrower has given to workers of its own that offer the same functions.


class CrewOffer(Frame):
    """From the borrower: a crew and its functions; `workers` is 0 when it is gone."""

    crew: int
    functions: list[bytes]
    broadcast: list[bool]  # by function: whether a job goes to every idle worker
    workers: int


class Room(Frame):
    """From the borrower: so many jobs of a crew it would take, beyond the first `received`."""

    crew: int
    received: int
    room: int


class Waiting(Frame):
    """From the home: the first of its jobs that wait, of functions that the borrower's workers offer.

    So the borrower can ask for those that come before its own.
    """

    functions: list[bytes]
    priorities: list[int]
    run_at: list[float]


class Lend(Frame):
    """From the home: a job for a crew."""

    crew: int
    id: int
    handle: bytes
    function: bytes
    payload: bytes
    priority: int
    run_at: float
    submitted_at: float
    attempts: int
    count: int = 0
    timeout: float = 0.0
    reducer: bytes = b""
    unique: bytes = b""
    door: str = ""
    returns: int = 0  # how often it was lent and came back


class Revoke(Frame):
    """From the home: the job was cancelled, or has been given to somebody else."""

    id: int


class Started(Frame):
    """From the borrower: a worker has the job."""

    id: int
    door: str
    worker: bytes


class ProgressFrame(Frame):
    """From the borrower: progress."""

    id: int
    numerator: int
    denominator: int
    seconds_left: int
    verbatim: bytes


class DataReport(Frame):
    """From the borrower: a part of the result."""

    id: int
    data: bytes


class WarningReport(Frame):
    """From the borrower: a warning of the worker."""

    id: int
    data: bytes


class Overdue(Frame):
    """From the borrower: the job has exceeded its time, and is about to be lost."""

    id: int


# Verdicts. The borrower keeps each until the home says that it is durable.


class DoneVerdict(Frame):
    """The job is done."""

    id: int
    result: bytes
    door: str
    worker: bytes


class FailedVerdict(Frame):
    """The job failed, and with `data`, its worker sent something about it. With `again`, it may run again."""

    id: int
    reason: str
    code: int
    data: bytes | None
    again: bool
    door: str
    worker: bytes


class LostVerdict(Frame):
    """The worker is gone."""

    id: int
    reason: str
    door: str
    worker: bytes


class BackVerdict(Frame):
    """The job comes back; the attempt does not count. It may have been started."""

    id: int
    started: bool


class RescheduleVerdict(Frame):
    """Its worker wants the job to run again at that time."""

    id: int
    run_at: float
    step: int
    reset_attempts: bool
    door: str = ""  # of the worker


class PostponeVerdict(Frame):
    """The attempt failed, and the job is to run again at that time."""

    id: int
    run_at: float
    reason: str
    door: str
    worker: bytes


class GiveUpVerdict(Frame):
    """The job is to be dead."""

    id: int
    reason: str
    door: str
    worker: bytes


class CancelVerdict(Frame):
    """Somebody cancelled the job at the borrower."""

    id: int
    reason: str


class Settled(Frame):
    """From the home: it has got so many verdicts over this connection, and what they changed is durable."""

    verdicts: int


# Takeover


class Loans(Frame):
    """From the borrower, after the handshake and as the answer to Adopted: jobs of others that it has."""

    ids: list[int]
    number: int = 0  # of the question; 0: there was none


class Entrusted(Frame):
    """From the new home of these jobs: they go on at the borrower, which has named them."""

    ids: list[int]


class Adopted(Frame):
    """The sender has become the home of these ids, and asks who runs some of them."""

    low: int
    high: int
    number: int


# Questions


class Ask(Frame):
    """A question about anything else; `what` names it."""

    number: int
    what: str
    content: bytes


class Answer(Frame):
    """The answer to the question of that number; `error` says why there is none."""

    number: int
    content: bytes
    error: str = ""


class Tell(Frame):
    """Something that needs no answer."""

    what: str
    content: bytes


# By kind. A number is never used again.
KINDS: Final[dict[int, type[Frame]]] = {
    1: Hello,
    2: Proof,
    3: LinkPing,
    4: LinkPong,
    10: CrewOffer,
    11: Room,
    12: Lend,
    13: Revoke,
    14: Started,
    15: ProgressFrame,
    16: DataReport,
    17: WarningReport,
    18: Overdue,
    19: Waiting,
    30: DoneVerdict,
    31: FailedVerdict,
    32: LostVerdict,
    33: BackVerdict,
    34: RescheduleVerdict,
    35: PostponeVerdict,
    36: GiveUpVerdict,
    37: CancelVerdict,
    38: Settled,
    50: Loans,
    51: Adopted,
    52: Entrusted,
    60: Ask,
    61: Answer,
    62: Tell,
}
_NUMBERS: Final = {kind: number for number, kind in KINDS.items()}
_DECODERS: Final[dict[int, Any]] = {number: msgspec.msgpack.Decoder(kind) for number, kind in KINDS.items()}


def encode(frame: Frame) -> bytes:
    """The bytes of a frame."""
    body = _encoder.encode(frame)
    return (len(body) + 1).to_bytes(4, "big") + bytes((_NUMBERS[type(frame)],)) + body


def proof(secret: bytes, prover: Hello, verifier: Hello, dials: bool) -> bytes:
    """What a server proves with that it knows the secret; `dials` tells the two sides apart."""
    text = b"".join(
        (
            b"dials" if dials else b"accepts",
            prover.nonce,
            verifier.nonce,
            b"%d %d %d" % (prover.node, verifier.node, min(prover.version, verifier.version)),
        )
    )
    return hmac.new(secret, text, hashlib.sha256).digest()


class Reader(PacketBuffer):
    """Cuts frames out of what arrives."""

    __slots__ = ("_kind", "_limit")

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit  # bytes of a frame
        self._kind = 0

    def use_limit(self, limit: int) -> None:
        """Accept larger frames, or smaller ones, from now on."""
        self._limit = limit

    def next(self) -> bool:
        """Whether there is another frame."""
        data, position = self.data, self._position
        available = len(data) - position
        if available < _HEAD:
            if available:
                self._keep(data, position, _HEAD)
            return False
        size = int.from_bytes(data[position : position + 4], "big")
        if not 1 <= size <= self._limit:
            raise WireError("FRAME", f"a frame of {size} bytes; from 1 to {self._limit} are allowed")
        if available < size + 4:
            self._keep(data, position, size + 4)
            return False
        self._kind = data[position + 4]
        self.start = position + _HEAD
        self.end = self._position = position + 4 + size
        return True

    def frame(self) -> Frame | None:
        """The current frame; None if its kind is unknown, so it is to be skipped."""
        decoder = _DECODERS.get(self._kind)
        if decoder is None:
            return None
        try:
            frame: Frame = decoder.decode(memoryview(self.data)[self.start : self.end])
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise WireError("FRAME", f"a frame of kind {self._kind} cannot be read: {error}") from None
        return frame
