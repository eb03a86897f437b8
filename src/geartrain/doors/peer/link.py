"""The link to one other server: it outlives its connections."""

from typing import TYPE_CHECKING, Any

from geartrain.doors.peer.borrowing import LinkLoan
from geartrain.doors.peer.lending import Lending
from geartrain.runtime.timers import DelayedCall
from geartrain.wire import peer as wire

if TYPE_CHECKING:
    from geartrain.doors.peer.connection import PeerConnection
    from geartrain.doors.peer.door import PeerDoor


class PeerLink:
    """What this server has of another one, and the other way round."""

    def __init__(self, door: "PeerDoor", node: int, name: str) -> None:
        self.door = door
        self.node = node
        self.name = name
        self.engine = door.tick_loop.engine
        self.durability = door.tick_loop.durability
        self.timers = door.tick_loop.timers
        self.round_trip: float | None = None  # seconds, as measured last
        self.lending = Lending(self)
        self.loan = LinkLoan(self)
        self._connection: PeerConnection | None = None
        self._settled = 0  # verdicts over this connection that the other server has made durable
        self._grace: DelayedCall | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self._connection is not None

    def send(self, frame: wire.Frame) -> None:
        """Send a frame, if there is a connection. What must not be lost is sent again over the next one."""
        if self._connection is not None:
            self._connection.write(wire.encode(frame))

    def open(self, connection: "PeerConnection") -> None:
        """There is a connection. The older one, if there is one left, has been lost without a word."""
        older, self._connection = self._connection, None
        if older is not None:
            older.drop("the other server has connected anew")
        if self._grace is not None:
            self._grace.cancel()
            self._grace = None
        self._connection = connection
        self._settled = 0
        self.lending.begin()
        self.loan.begin()
        self.door.offers.announce(self)
        self.send(wire.Loans(self.loan.held()))
        self.door.offers.announce_room(self)
        self.door.mirrors.resumed(self)
        for call in self.door.on_link:
            call(self)

    def lose(self, connection: "PeerConnection") -> None:
        """The connection is lost. Jobs that were lent are somebody else's if there is no new one soon."""
        if self._connection is not connection:
            return
        self._connection = None
        self.round_trip = None
        self.lending.suspend()
        self.door.mirrors.interrupted(self)
        self.door.fail_questions(self)
        self._grace = self.timers.call_later(self.door.options.grace, self._end_grace)

    def close(self, why: str) -> None:
        """The other server is no member of the cluster any more: its loans are somebody else's at once."""
        if self._connection is not None:
            self._connection.drop(why)
            self.lose(self._connection)
        if self._grace is not None:
            self._grace.cancel()
            self._grace = None
        self.lending.end()
        self.door.mirrors.lost(self)

    def _end_grace(self) -> None:
        self._grace = None
        self.lending.end()
        self.door.mirrors.lost(self)

    def settle(self, verdicts: int) -> None:
        """What the other server has said of its loans is durable."""
        self.send(wire.Settled(verdicts))

    # What arrives

    def handle(self, frame: Any) -> None:
        """Handle a frame of the other server."""
        if self.lending.report(frame):
            return
        handler = _HANDLERS.get(type(frame))
        if handler is not None:
            handler(self, frame)

    def _lend(self, frame: wire.Lend) -> None:
        self.door.offers.received(self, frame.crew)
        self.loan.borrow(frame)

    def _revoke(self, frame: wire.Revoke) -> None:
        self.loan.revoke(frame.id)

    def _waiting(self, frame: wire.Waiting) -> None:
        self.door.offers.waits(self, frame)

    def _settle(self, frame: wire.Settled) -> None:
        self.loan.settle(frame.verdicts, self._settled)
        self._settled = frame.verdicts

    def _loans(self, frame: wire.Loans) -> None:
        if frame.number:
            self.door.take_answer(self, frame.number, frame)
        else:
            self.lending.resume(frame.ids)

    def _adopted(self, frame: wire.Adopted) -> None:
        self.send(wire.Loans(self.door.loans_in(frame.low, frame.high), frame.number))

    def _entrusted(self, frame: wire.Entrusted) -> None:
        for id in frame.ids:
            # Its old home, which did not know yet that it was fenced, may have settled or revoked it meanwhile. Then
            # nobody has it, and the new home would wait for its end for ever.
            if not self.door.move_loan(id, self):
                self.loan.verdict(wire.BackVerdict(id, False))

    def _offer(self, frame: wire.CrewOffer) -> None:
        self.lending.offer(frame)

    def _allow(self, frame: wire.Room) -> None:
        self.lending.allow(frame)

    def _ask(self, frame: wire.Ask) -> None:
        self.door.answer(self, frame)

    def _answer(self, frame: wire.Answer) -> None:
        self.door.take_answer(self, frame.number, frame)

    def _tell(self, frame: wire.Tell) -> None:
        self.door.hear(self, frame)


_HANDLERS: dict[type, Any] = {
    wire.CrewOffer: PeerLink._offer,
    wire.Room: PeerLink._allow,
    wire.Waiting: PeerLink._waiting,
    wire.Lend: PeerLink._lend,
    wire.Revoke: PeerLink._revoke,
    wire.Settled: PeerLink._settle,
    wire.Loans: PeerLink._loans,
    wire.Adopted: PeerLink._adopted,
    wire.Entrusted: PeerLink._entrusted,
    wire.Ask: PeerLink._ask,
    wire.Answer: PeerLink._answer,
    wire.Tell: PeerLink._tell,
}
