"""One peer of any door: the read loop, and the end of the connection. Who the peer is, is in `peer_identity.py`.

**Reading.** `data_received` is the only way in. It feeds what was read to the door's codec and has the door handle
every complete packet. A WireError is a mistake of the peer: it is sent to the peer, which is disconnected if the error
is fatal. Any other exception is a bug of ours: it is logged, and only this connection is closed for it.

**Turns.** Input is suspended when it has been handled for the time of one turn, when the peer's output is above the
high-water mark, and while a long answer is made. Packets that are left stay in the codec, the transport is not read,
and the tick loop continues the input after the other connections had their turn.

**Memory.** The incomplete packets of all peers are counted together, and a large one that would exceed their limit is
refused. Output is bounded too: see `peer_output.py`.
"""

import asyncio
import logging
from typing import Final

from mypy_extensions import i64, mypyc_attr

from geartrain.doors.door import Door
from geartrain.doors.peer_identity import PeerIdentity
from geartrain.doors.peer_output import HIGH_WATER
from geartrain.doors.refused_peer import RefusedPeer
from geartrain.errors import RequestError, WireError
from geartrain.wire.packet_buffer import PacketBuffer

# A door handles this many packets between two calls of `turn_over`, which reads the clock.
PACKETS_PER_CHECK: Final = 16
# A packet that arrives in parts has to bring this many bytes between two checks.
_LEAST_PROGRESS: Final = 1024
# An incomplete packet of this size is never refused: others must not be able to take this room from a peer.
_SMALL_PACKET: Final = 64 * 1024

_log = logging.getLogger("geartrain.doors")


@mypyc_attr(allow_interpreted_subclasses=True)
class Connection(PeerIdentity):
    """An asyncio protocol without the base class, so that it can be compiled. Each door has a subclass."""

    def __init__(self, door: Door) -> None:
        super().__init__(door)
        self.admitted = False  # it was counted before this, with its TLS handshake
        self.input_ended = False  # nothing is read any more: the peer was refused, or has disconnected
        self.blocked = False  # set by a door: an earlier request must be answered before the next packet is handled
        self._refused: RefusedPeer | None = None  # set when a last error is sent: it must arrive
        self._left = False  # its workers and watchers are out of the engine
        self._unhandled: list[bytes] = []  # what arrived while no packet could be handled
        self._unhandled_size = 0
        self._buffer: PacketBuffer | None = None  # of the door's codec; see `count_input_of`
        self._inflight: i64 = 0  # bytes of an incomplete packet, as they are counted in `tick_loop.inflight_bytes`
        self._taken: i64 = 0  # bytes that the system had taken of them at the last check
        self._unread_checks = 0  # in which the peer has read nothing
        self._stalled_checks = 0
        self._incomplete = (0, 0)  # what the last check saw of an incomplete packet

    # What asyncio calls

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Remember the transport and the peer's address."""
        self.transport = transport
        transport.set_write_buffer_limits(high=HIGH_WATER)
        name = transport.get_extra_info("peername")
        self.peer = f"{name[0]}:{name[1]}" if isinstance(name, tuple) else (name or "unix socket")
        if self.door.is_closed:  # it was accepted just before
            self._refuse_surplus(b"")
            return
        limit = self.door.connection_limit
        if limit is not None and not self.admitted and not limit.admits(self.door.name, self.peer):
            self._refuse_surplus(self.surplus_error(limit.text()))
            return
        refusal = self.identify()
        if refusal:
            self._refuse_surplus(self.surplus_error(refusal))
            return
        self.door.connections.add(self)
        if _log.isEnabledFor(logging.DEBUG):
            self.log(logging.DEBUG, "peer connected")

    def data_received(self, data: bytes) -> None:
        """Handle every packet that is complete, as far as this turn goes."""
        if self.input_ended:
            if self._refused is not None:
                self._refused.discard(len(data))
            return
        is_tick = self.tick_loop.begin_read()
        try:
            if self.suspended or self.blocked:
                self._keep_unhandled(data)
                return
            self._turn_ends = 0.0
            self.feed(data)
            self.handle_input()
            buffer = self._buffer
            if buffer is not None and (self._inflight or buffer.incomplete_size):
                self.count_inflight(self.incomplete()[1])
        finally:
            if is_tick:
                self.tick_loop.end_read()

    def eof_received(self) -> bool:
        """Write what is left, then close; the peer may still read."""
        self.close()
        # With TLS neither side can read on, and the event loop would log a warning for each True.
        return self.transport.get_extra_info("ssl_object") is None

    def connection_lost(self, error: Exception | None) -> None:
        """Undo what depended on the peer."""
        self.closing = self.input_ended = True
        if self._refused is not None:
            self._refused.end()
        self._discard()
        self.tick_loop.inflight_bytes -= self._inflight
        self._inflight = 0
        self.door.connections.discard(self)
        self.count_for(None)
        self.tick_loop.begin_tick()
        self._leave()
        if _log.isEnabledFor(logging.DEBUG):
            self.log(logging.DEBUG, "peer disconnected", str(error) if error else "")

    def pause_writing(self) -> None:
        """The peer does not read what it is sent: do not read from it either."""
        self._paused = True
        if not self.closing:
            self.transport.pause_reading()

    def resume_writing(self) -> None:
        """The peer reads again."""
        self._paused = False
        self._stalled_checks = 0
        if self.suspended:
            self._continue_later()
        else:
            self.resume_reading()

    # What a door's connection overrides

    def feed(self, data: bytes) -> None:
        """Give what was read to the codec."""
        raise NotImplementedError

    def handle_packets(self) -> None:
        """Handle every packet that the codec has complete, until `turn_over`."""
        raise NotImplementedError

    def send_error(self, error: WireError) -> None:
        """Tell the peer what was wrong, in a protocol that has a word for it."""

    def internal_error(self) -> WireError:
        """The error that is sent to the peer after a bug."""
        return WireError("INTERNAL", "the server failed to handle this packet")

    def surplus_error(self, why: str) -> bytes:
        """What a peer is sent that is one too many, in a protocol that has a word for it."""
        return b""

    def lost(self) -> None:
        """The peer is gone: take its workers and watchers out of the engine."""

    def incomplete(self) -> tuple[int, int]:
        """Which incomplete packet is arriving (a number that changes with each), and how many bytes are there."""
        return (0, 0)

    def timed_out(self) -> None:
        """The peer began a packet and sent no more of it."""
        seconds = self.door.limits.stall_timeout
        self.refuse(WireError("TIMEOUT", f"no more of a packet arrived for {seconds:g} seconds"))

    # Reading

    def handle_input(self) -> None:
        """Handle what was fed, with the rights of this peer. Whatever goes wrong concerns only this connection."""
        engine = self.engine
        engine.actor = self.identity
        engine.peer = self
        while True:
            try:
                self.handle_packets()
                return
            except WireError as error:
                self.refuse(error)
                if error.fatal or self.turn_over():
                    return
            except RequestError as error:
                self.refuse_request(error)
                if self.turn_over():
                    return
            except Exception:
                self.handle_bug()
                return

    def turn_over(self) -> bool:
        """Suspend the input, and return true, if its turn is over or the peer must read first.

        A door calls it after every few packets, after one that may have cost much, and when `unsent` is above the
        high-water mark.
        """
        if self.suspended:
            return True
        if not (self.unsent > HIGH_WATER or self._paused or self._time_is_over()):
            return False
        self.suspend()
        return True

    def continue_input(self) -> None:
        """Handle the packets that were left, if the peer has read enough; otherwise wait until it has."""
        self._continuing = False
        if self.input_ended or not self.suspended or self._must_wait():
            return  # `flush`, `resume_writing` or `commit_ended` continues
        self._turn_ends = 0.0
        if self._long_answer is not None:
            try:
                if not self._make_answer(self._long_answer):
                    self._continue_later()
                    return
            except Exception:
                self.handle_bug()
                return
        self.suspended = False
        self.handle_rest()

    def _must_wait(self) -> bool:
        """Whether the peer, or the disk, must take output first. What waits for a long answer cannot be sent before."""
        if self._paused or self.unsent <= HIGH_WATER:
            return self._paused
        return self._behind_answer is None or self._held[0] is not self._behind_answer

    def handle_rest(self) -> None:
        """Handle what is left in the codec, then what arrived meanwhile, and read again."""
        self.handle_input()
        while self._unhandled and not (self.suspended or self.blocked or self.input_ended):
            data = b"".join(self._unhandled)
            self._unhandled.clear()
            self._unhandled_size = 0
            self.feed(data)
            self.handle_input()
        self.resume_reading()

    def unblock(self) -> None:
        """The request that the next packets waited for is answered: handle them."""
        self.blocked = False
        if self.suspended or self.input_ended:
            return
        if self._paused or self.unsent > HIGH_WATER:
            self.suspend()
            return
        self.begin_tick()
        self._turn_ends = 0.0
        self.handle_rest()

    def count_input_of(self, buffer: PacketBuffer) -> None:
        """Count the incomplete packets in this buffer, which is the door's codec."""
        self._buffer = buffer

    def count_inflight(self, size: int) -> None:
        """Count the bytes of an incomplete packet after a read, and refuse it if all peers together have too many."""
        if self.input_ended:
            size = 0
        tick_loop = self.tick_loop
        tick_loop.inflight_bytes += size - self._inflight
        self._inflight = size
        limit = self.door.limits.max_inflight_bytes
        if size > _SMALL_PACKET and tick_loop.inflight_bytes > limit:
            tick_loop.inflight_bytes -= size
            self._inflight = 0
            text = f"incomplete packets of all peers have more than {limit} bytes (max_inflight_bytes); try again later"
            self.refuse_inflight(text)

    def refuse_inflight(self, text: str) -> None:
        """Forget the packet that is arriving, and disconnect."""
        if self._buffer is not None:
            self._buffer.discard()
        self.refuse(WireError("LIMIT_REACHED", text))

    @property
    def has_unhandled(self) -> bool:
        """Whether something arrived that the codec has not seen."""
        return bool(self._unhandled)

    def _keep_unhandled(self, data: bytes) -> None:
        """Keep what arrives although no packet can be handled.

        A blocked peer is read, to notice that it is gone, until this much has arrived.
        """
        self._unhandled.append(data)
        self._unhandled_size += len(data)
        if self._unhandled_size > HIGH_WATER:
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Read from the transport again, if nothing is against it."""
        if not (self.suspended or self._paused or self.input_ended or self._unhandled_size > HIGH_WATER):
            self.transport.resume_reading()

    def handle_bug(self) -> None:
        """Log the exception that is being handled, and close this connection."""
        self.log(logging.ERROR, "packet handling failed", traceback=True)
        self.send_error(self.internal_error())
        self.close_refused()

    def refuse(self, error: WireError) -> None:
        """Tell the peer what was wrong, and close if the error is fatal."""
        if error.fatal:
            self.log(logging.WARNING, "peer refused", str(error))
        self.send_error(error)
        if error.fatal:
            self.close_refused()

    def refuse_request(self, error: RequestError) -> None:
        """Tell the peer why the engine refused what it asked for."""
        self.refuse(WireError(error.code, str(error), fatal=False))

    # Closing

    def close(self) -> None:
        """Read no more, write what has gathered, and close; acknowledgements that wait for the disk are waited for."""
        if self.closing:
            if self._refused is not None:
                self._refused.end()
            return
        self.input_ended = True
        self._end_answer()
        self.flush()
        if self._held:
            self._close_after_commit = True
            self.transport.pause_reading()
            return
        self.closing = True
        if self._refused is not None:
            self._refused.begin()
            self._leave()  # its jobs do not wait until it has closed its side
        else:
            self.transport.close()

    def _refuse_surplus(self, error: bytes) -> None:
        """Close a connection that is one too many at once: it must not keep its descriptor until the peer has read."""
        self.closing = self.input_ended = True
        if error:
            self.transport.write(error)
        self.transport.close()

    def close_refused(self) -> None:
        """Close so that the last error arrives, although the peer may still be sending."""
        if self._refused is None and not self.closing:
            self._refused = RefusedPeer(self.transport, self.tick_loop.timers)
        self.close()

    def _leave(self) -> None:
        if not self._left:
            self._left = True
            self.lost()

    def drop(self, why: str) -> None:
        """Close at once, without waiting for the peer to read."""
        self.closing = self.input_ended = True
        self._discard()
        # An error, since jobs may be lost with it: gearmand's default verbosity shows nothing less.
        self.log(logging.ERROR, "connection dropped", why)
        self.transport.abort()

    def _discard(self) -> None:
        """Forget what was to be written, and what was not handled."""
        self.out.clear()
        self.unsent = 0
        self._held.clear()
        self._long_answer = self._behind_answer = None
        self._unhandled.clear()
        self._unhandled_size = 0

    def check_reader(self, checks_per_timeout: int) -> None:
        """Drop a peer that has read nothing of what waits for it in as many checks."""
        if not self._paused or self.closing:
            self._unread_checks = 0
            return
        taken = self._written - self.transport.get_write_buffer_size()
        if taken != self._taken:
            self._taken = taken
            self._unread_checks = 0
            return
        self._unread_checks += 1
        if self._unread_checks >= checks_per_timeout:
            seconds = self.door.limits.slow_reader_timeout
            self.drop(f"it has read nothing of what it is sent for {seconds:g} seconds (slow_reader_timeout)")

    def check_progress(self, checks_per_timeout: int) -> None:
        """End a packet that does not go on, and a connection that closes and whose peer does not read.

        Called several times per stall timeout: a peer that makes no progress in all of them is timed out.
        """
        number, size = self.incomplete()
        last_number, last_size = self._incomplete
        self._incomplete = (number, size)
        stalled = size > 0 and number == last_number and size - last_size < _LEAST_PROGRESS and not self.blocked
        if not (stalled or (self.closing and self._paused)):
            self._stalled_checks = 0
            return
        self._stalled_checks += 1
        if self._stalled_checks < checks_per_timeout:
            return
        if self.closing:
            self.drop("it does not read what it is sent")
        else:
            self.timed_out()
