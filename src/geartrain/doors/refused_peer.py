"""A peer that was refused: what it still sends is discarded until it has read why.

A socket that is closed while the peer's bytes are unread sends a reset, and the reset destroys the answer that the peer
has not read yet. So we close only our side, which ends the peer's stream after the error, and read on without
looking at it until the peer closes too. Bytes and time are bounded.
"""

from typing import Any, Final

from geartrain.runtime.timers import DelayedCall, Timers

MOST_BYTES: Final = 1024**3
CHECK_INTERVAL: Final = 5.0  # seconds; a peer that sends nothing for so long has stopped
MOST_CHECKS: Final = 12


class RefusedPeer:
    """Discards the input of one transport, and closes it in the end."""

    __slots__ = ("_checks", "_discarded", "_discarded_before", "_next_check", "_timers", "_transport")

    def __init__(self, transport: Any, timers: Timers) -> None:
        self._transport = transport
        self._timers = timers
        self._discarded = 0
        self._discarded_before = 0  # at the last check
        self._checks = 0
        self._next_check: DelayedCall | None = None

    def begin(self) -> None:
        """End our side of the stream after what is written, and read on."""
        transport = self._transport
        if transport.can_write_eof():  # TLS has no half-closed streams
            transport.write_eof()
        transport.resume_reading()
        self._check_later()

    def discard(self, size: int) -> None:
        """This many bytes have arrived."""
        self._discarded += size
        if self._discarded > MOST_BYTES:
            self.end()

    def end(self) -> None:
        """Close: the peer has closed its side, is gone, or has had its time."""
        if self._next_check is not None:
            self._next_check.cancel()
            self._next_check = None
        self._transport.close()

    def _check_later(self) -> None:
        self._next_check = self._timers.call_later(CHECK_INTERVAL, self._check)

    def _check(self) -> None:
        self._checks += 1
        if self._discarded == self._discarded_before or self._checks >= MOST_CHECKS:
            self.end()
            return
        self._discarded_before = self._discarded
        self._check_later()
