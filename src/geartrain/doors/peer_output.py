"""What is sent to a peer: gathered in a tick, held until it is durable, made in steps where it is long.

`write` appends to a list, and the tick writes all of it with one call. `acknowledge` does the same, but holds the
answer, and everything after it, until the changes so far are durable. `answer_in_steps` makes a long answer piece by
piece; what is written meanwhile is held until the answer ends.

Output counts from `write` until the system has taken it. Above the high-water mark no packet of the peer is handled,
so it can cause no more answers. What others cause for it (results of its jobs) may still gather up to the write limit;
then the connection is dropped, and also if the peer reads nothing for the time of a slow reader.
"""

import time
from collections.abc import Callable
from typing import Any, Final

from mypy_extensions import i64, mypyc_attr

from geartrain.doors.door import Door
from geartrain.doors.long_answer import LongAnswer
from geartrain.engine.interfaces import KeyWaiter
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import RESERVING
from geartrain.runtime.tick import Writer

# Bytes of output above which no packet of the peer is handled.
HIGH_WATER: Final = 256 * 1024
# Larger output is handed over piece by piece instead of being copied into one.
_JOIN_UP_TO: Final = 256 * 1024
# The ticket of what is held until a long answer ends. No commit has such a number.
_NO_COMMIT: Final = 2**62
# What a place for a later answer counts as: so many of them, and no packet of the peer is handled.
_PLACE_BYTES: Final = 4096


class HeldOutput:
    """Output that waits for a ticket: acknowledgements, and everything that was written after the first of them.

    Also what is written after the beginning of a long answer, which waits for the end of it.
    """

    __slots__ = ("acknowledgements", "keys_left", "start", "ticket")

    def __init__(self, ticket: int, start: int) -> None:
        self.ticket = ticket
        self.keys_left = 0  # how many of the jobs may turn out to be another server's
        self.start = start  # the number of the first piece that waits
        # The number of each acknowledgement, and what is to be sent instead if the commit fails.
        self.acknowledgements: list[tuple[int, bytes]] = []

    def shift(self) -> None:
        """A piece was inserted before these."""
        self.start += 1
        self.acknowledgements = [(number + 1, instead) for number, instead in self.acknowledgements]


class _HeldHandle(KeyWaiter):
    """An acknowledgement that contains the handle of a job, which another server may turn out to have."""

    __slots__ = ("_encode", "_held", "_job", "_output", "_position")

    def __init__(self, output: "PeerOutput", held: HeldOutput, job: LiveJob, encode: Callable[[bytes], bytes]) -> None:
        self._output = output
        self._held = held
        self._job = job
        self._position = len(held.acknowledgements) - 1
        self._encode = encode
        held.keys_left += 1

    def key_taken(self, handle: bytes) -> None:
        """Send the handle of that job instead."""
        number, _ = self._held.acknowledgements[self._position]
        self._output.replace(number, self._encode(handle))
        self._settle()

    def key_free(self) -> None:
        """Send the acknowledgement as it is, unless a later commit has failed, and the job was retracted."""
        if self._held.ticket == _NO_COMMIT and not self._job.background:
            number, instead = self._held.acknowledgements[self._position]
            self._output.replace(number, instead)
        self._settle()

    def _settle(self) -> None:
        held = self._held
        held.keys_left -= 1
        if held.ticket == _NO_COMMIT and not held.keys_left:
            self._output.release(held)


class _DeferredHandle(KeyWaiter):
    """An answer with the handle of a job, which is held until it is certain which job has the unique key."""

    __slots__ = ("_encode", "_held", "_output")

    def __init__(self, output: "PeerOutput", held: HeldOutput, encode: Callable[[bytes], bytes]) -> None:
        self._output = output
        self._held = held
        self._encode = encode

    def key_taken(self, handle: bytes) -> None:
        """Send the handle of that job instead."""
        self._output.replace(self._held.start, self._encode(handle))
        self._output.release(self._held)

    def key_free(self) -> None:
        """Send the answer as it is."""
        self._output.release(self._held)


@mypyc_attr(allow_interpreted_subclasses=True)
class PeerOutput(Writer):
    """The output of one connection, and whether its input has to wait for it. `Connection` is the rest."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self.tick_loop = door.tick_loop
        self.engine = door.tick_loop.engine
        self.transport: Any = None
        self.closing = False  # nothing is written any more
        self.out: list[bytes] = []  # pieces that are to be written
        self.unsent: i64 = 0  # bytes in these pieces
        self.suspended = False  # packets are left in the codec, and the tick loop will continue them
        self._sent: i64 = 0  # how many pieces have left: the first in `out` has this number
        self._held: list[HeldOutput] = []
        self._close_after_commit = False
        self._paused = False  # the peer does not read fast enough
        self._continuing = False  # the tick loop was asked to continue
        self._long_answer: LongAnswer | None = None  # that is being made
        self._behind_answer: HeldOutput | None = None  # what was written after it began
        self._turn_ends = 0.0  # by the monotonic clock; 0: the clock was not read in this turn
        self._written: i64 = 0  # bytes that the transport was given

    def close(self) -> None:
        """Read no more, write what has gathered, and close."""
        raise NotImplementedError

    def drop(self, why: str) -> None:
        """Close at once, without waiting for the peer to read."""
        raise NotImplementedError

    def write(self, data: bytes) -> None:
        """Send at the end of the tick."""
        out = self.out
        if not out:
            self.tick_loop.flush_later(self)
        out.append(data)
        self.unsent += len(data)

    def acknowledge(self, data: bytes, instead: bytes) -> None:
        """Send when every change so far is durable; `instead` if that fails.

        What is written after it waits as well: protocols match answers to requests by their order.
        """
        ticket = self.tick_loop.durability.ticket(self)
        if ticket:
            self._hold(ticket, instead)
        self.write(data)

    def _hold(self, ticket: int, instead: bytes) -> HeldOutput:
        """Hold the acknowledgement that is written next, with others that wait for the same commit."""
        number = self._sent + len(self.out)
        if not self._held or self._held[-1].ticket != ticket or ticket == _NO_COMMIT:
            self._held.append(HeldOutput(ticket, number))
        held = self._held[-1]
        held.acknowledgements.append((number, instead))
        return held

    def acknowledge_job(self, job: LiveJob, encode: Callable[[bytes], bytes], instead: bytes) -> None:
        """As `acknowledge`, with an answer that contains the handle of the job.

        If another server of the cluster has a job with its unique key, the answer contains the handle of that one.
        """
        if job.state is not RESERVING:
            self.acknowledge(encode(job.handle), instead)
            return
        # Without a ticket, the store has answered, and another server is being asked.
        held = self._hold(self.tick_loop.durability.ticket(self) or _NO_COMMIT, instead)
        self.engine.wait_for_key(job, _HeldHandle(self, held, job, encode))
        self.write(encode(job.handle))

    def write_handle(self, job: LiveJob, encode: Callable[[bytes], bytes]) -> None:
        """As `write`, with an answer that contains the handle of a foreground job.

        While another server of the cluster may have a job with its unique key, the answer waits, and all that follows.
        """
        if job.state is RESERVING:
            held = HeldOutput(_NO_COMMIT, self._sent + len(self.out))
            self._held.append(held)
            self.engine.wait_for_key(job, _DeferredHandle(self, held, encode))
        self.write(encode(job.handle))

    def release(self, held: HeldOutput) -> None:
        """Send what was held for `write_handle` or `answer_later`."""
        if held not in self._held:
            return  # the peer is gone
        self._held.remove(held)
        self.tick_loop.flush_later(self)
        if self._close_after_commit and not self._held:
            self.close()

    def replace(self, number: int, data: bytes) -> None:
        """Send something else instead of a piece that is held."""
        at = number - self._sent
        if 0 <= at < len(self.out):  # else the peer is gone
            self.unsent += len(data) - len(self.out[at])
            self.out[at] = data

    def commit_ended(self, ticket: int, failed: bool) -> None:
        """Send the acknowledgements that waited for this ticket, or what is to be sent instead of them."""
        ended = [held for held in self._held if held.ticket <= ticket]
        for held in ended:
            if held.keys_left and not failed:  # another server is being asked
                held.ticket = _NO_COMMIT
        self._held = [held for held in self._held if held.ticket > ticket]
        for held in ended:
            if failed:
                for number, instead in held.acknowledgements:
                    at = number - self._sent
                    self.unsent += len(instead) - len(self.out[at])
                    self.out[at] = instead
        self.flush()
        if self.suspended:
            self._continue_later()
        if self._close_after_commit and not self._held:
            self.close()

    def answer_later(self) -> HeldOutput:
        """Keep a place for an answer that is not known yet; what is written after it waits. `answer_now` fills it."""
        place = HeldOutput(_NO_COMMIT, self._sent + len(self.out))
        self._held.append(place)
        self.write(b"")
        self.unsent += _PLACE_BYTES
        return place

    def answer_now(self, place: HeldOutput, data: bytes) -> None:
        """Send what a place was kept for, and what has waited behind it."""
        if place in self._held:  # else the peer is gone
            self.unsent -= _PLACE_BYTES
            self.replace(place.start, data)
            self.release(place)

    def answer_in_steps(self, answer: LongAnswer) -> None:
        """Make an answer piece by piece, in this turn as far as it goes. No packet is handled until it ends."""
        self._long_answer = answer
        if not self._make_answer(answer):
            # Others may write to this peer meanwhile, and must not write into the answer.
            self._behind_answer = HeldOutput(_NO_COMMIT, self._sent + len(self.out))
            self._held.append(self._behind_answer)
            self.suspend()
        elif self._time_is_over():
            self.suspend()

    def _make_answer(self, answer: LongAnswer) -> bool:
        """Make pieces of a long answer for one turn; whether it has ended."""
        size = 0
        while size <= HIGH_WATER:
            piece = answer.next_piece()
            if piece:
                size += len(piece)
                self._write_piece(piece)
            if answer.ended:
                self._end_answer()
                return True
            if self._time_is_over():
                break
        return False

    def _write_piece(self, piece: bytes) -> None:
        """Write a piece of a long answer before everything that was written since it began."""
        behind = self._behind_answer
        if behind is None:
            self.write(piece)
            return
        self.tick_loop.flush_later(self)
        self.out.insert(behind.start - self._sent, piece)
        self.unsent += len(piece)
        for held in self._held[self._held.index(behind) :]:
            held.shift()

    def _end_answer(self) -> None:
        """Send what has waited for the end of a long answer."""
        self._long_answer = None
        behind = self._behind_answer
        if behind is not None:
            self._behind_answer = None
            self._held.remove(behind)
            self.tick_loop.flush_later(self)

    def flush(self) -> None:
        """Write what has gathered, with one call. After `close` it is discarded."""
        out = self.out
        if not out:
            return
        size = self.unsent
        if self._held:
            free = self._held[0].start - self._sent
            if not free:
                if size > self.door.limits.write_limit:
                    self.drop("more than write_limit waits for the disk")
                return
            self.out = out[free:]
            out = out[:free]
            size = _size(out)
        else:
            self.out = []
        self._sent += len(out)
        self.unsent -= size
        if self.suspended:
            self._continue_later()
        if self.closing:
            return
        transport = self.transport
        self._written += size
        if self._paused and transport.get_write_buffer_size() > self.door.limits.write_limit:
            self.drop(f"it has left more than {self.door.limits.write_limit} bytes unread (write_limit)")
            return
        try:
            if len(out) == 1:
                transport.write(out[0])
            elif size <= _JOIN_UP_TO:
                transport.write(b"".join(out))
            else:
                transport.writelines(out)
        except RuntimeError:  # uvloop: it is closed, and says so next
            self.closing = True

    def suspend(self) -> None:
        """Handle no more packets and read nothing until the tick loop continues this connection."""
        self.suspended = True
        if not self.closing:
            self.transport.pause_reading()
        self._continue_later()

    def _time_is_over(self) -> bool:
        """Whether this turn has lasted long enough. Its time begins when this is called first."""
        now = time.monotonic()
        if not self._turn_ends:
            self._turn_ends = now + self.door.limits.turn
        return now >= self._turn_ends

    def _continue_later(self) -> None:
        if not self._continuing:
            self._continuing = True
            self.tick_loop.continue_later(self)


def _size(pieces: list[bytes]) -> int:
    size = 0
    for piece in pieces:
        size += len(piece)
    return size
