"""One pipe: it may carry the requests of many clients and workers at once."""

import logging
from typing import TYPE_CHECKING, Final

from geartrain.doors.connection import Connection
from geartrain.doors.memodb import table
from geartrain.doors.memodb.watcher import MemodbWatcher
from geartrain.doors.memodb.worker import MemodbWorker
from geartrain.errors import WireError
from geartrain.wire import memodb as wire
from geartrain.wire import sp

if TYPE_CHECKING:
    import asyncio

    from geartrain.doors.memodb.door import MemodbDoor

_ANY_NUMBER: Final = 2**62


class MemodbConnection(Connection):
    """Reads requests, hands each to its handler, and knows which wait for an answer."""

    def __init__(self, door: "MemodbDoor", pipe: sp.MessagePipe) -> None:
        super().__init__(door)
        self.memodb = door
        self.pipe = pipe
        self.outstanding: dict[bytes, MemodbWatcher | MemodbWorker] = {}  # requests, by backtrace
        self.workers: set[MemodbWorker] = set()  # those who last spoke over this pipe
        self.births: set[bytes] = set()  # backtraces of the READYs of workers that are still there
        self._most = door.options.requests_per_pipe or _ANY_NUMBER
        self._held_back = False  # as many requests wait as may: what comes after them is not looked at
        self._going_on = False  # one of them was answered, and what comes after them will be
        self._unread: list[bytes] = []  # what arrived all the same
        self._ignored = 0  # messages that made no sense

    def connection_made(self, transport: "asyncio.Transport") -> None:
        """Say who we are, without waiting for the peer to do so."""
        super().connection_made(transport)
        if self.pipe.greeting:
            self.write(self.pipe.greeting)

    def feed(self, data: bytes) -> None:
        """Give what was read to the codec, unless too many requests wait."""
        if self._held_back:
            self._unread.append(data)
        else:
            self.pipe.feed(data)

    def resume_writing(self) -> None:
        """The peer reads again; that alone does not make room for its requests."""
        super().resume_writing()
        if self._held_back and not self.closing:
            self.transport.pause_reading()

    def handle_packets(self) -> None:
        """Hand every complete request to its handler, until too many wait for an answer."""
        pipe = self.pipe
        outstanding = self.outstanding
        while not self._held_back:
            if len(outstanding) >= self._most:
                self._hold_back()
                return
            more = pipe.next()
            if pipe.answers:
                self._say_answers()
            if not more:
                return
            data, end = pipe.data, pipe.end
            body = sp.body(data, pipe.start, end)
            backtrace = data[pipe.start : body]
            if backtrace in outstanding:
                continue  # the same request, sent again because its answer takes long
            message, payload = wire.parse(data, body, end)
            table.HANDLERS[message.kind](self, backtrace, message, data[payload:end])

    def _say_answers(self) -> None:
        for answer in self.pipe.answers:
            self.write(answer)
        self.pipe.answers.clear()

    def settled(self, backtrace: bytes) -> None:
        """A request does not wait any longer."""
        self.outstanding.pop(backtrace, None)
        if self._held_back and not self._going_on and len(self.outstanding) < self._most:
            # Not now: the engine may be in the middle of what has settled this one.
            self._going_on = True
            self.tick_loop.loop.call_soon(self._go_on)

    def _hold_back(self) -> None:
        if not self._held_back and not self.closing:
            self._held_back = True
            self.transport.pause_reading()

    def _go_on(self) -> None:
        """Look at what was read and not handled, then at what is still to come."""
        self._held_back = self._going_on = False
        if self.closing:
            return
        self.tick_loop.begin_tick()
        self.handle_input()
        if self._unread and not self._held_back:
            data = b"".join(self._unread)
            self._unread.clear()
            self.data_received(data)
        if not (self._held_back or self._paused or self.closing):
            self.transport.resume_reading()

    def reply(self, backtrace: bytes, header: bytes, payload: bytes = b"") -> None:
        """Answer the request that came with this backtrace."""
        for part in self.pipe.framed(backtrace + header, payload):
            self.write(part)

    def close_if_unused(self) -> None:
        """Close the pipe, so that its peer sends again, if no other request and no worker depends on it."""
        if not (self.outstanding or self.workers or self._held_back):
            self.close()

    def refuse(self, error: WireError) -> None:
        """Ignore a message, or close the pipe if the rules say so."""
        if error.fatal:
            level = logging.DEBUG if error.code == "CLOSED" else logging.WARNING
            self.log(level, "peer refused", str(error))
            self._say_answers()
            self.close()
            return
        # One line shows what a peer does wrong; thousands would hide everything else.
        self.log(logging.DEBUG if self._ignored else logging.WARNING, "message ignored", str(error))
        self._ignored += 1

    def lost(self) -> None:
        """Its workers' jobs are offered to others, and jobs that only it waited for are dropped."""
        for request in list(self.outstanding.values()):
            if isinstance(request, MemodbWatcher):
                request.over()
                self.engine.unwatch_all(request)
        for worker in list(self.workers):
            worker.leave("its pipe was closed")

    def incomplete(self) -> tuple[int, int]:
        """Which incomplete message is arriving, and how many bytes are there; a greeting is due from the start."""
        return (self.pipe.split_packets, self.pipe.incomplete_size + (not self.pipe.greeted))

    def timed_out(self) -> None:
        """A message or the greeting did not arrive."""
        what = "no more of a message" if self.pipe.greeted else "no greeting"
        seconds = self.door.limits.stall_timeout
        self.refuse(WireError("TIMEOUT", f"{what} arrived for {seconds:g} seconds"))
