"""One pipe: it may carry the requests of many clients and workers at once."""

import logging
from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from geartrain.doors.connection import PACKETS_PER_CHECK, Connection
from geartrain.doors.memodb import commands
from geartrain.doors.memodb.watcher import MemodbWatcher
from geartrain.doors.memodb.worker import MemodbWorker
from geartrain.doors.peer_output import HIGH_WATER
from geartrain.errors import WireError
from geartrain.wire import memodb as wire
from geartrain.wire import sp

if TYPE_CHECKING:
    import asyncio

    from geartrain.doors.memodb.door import MemodbDoor

_ANY_NUMBER: Final = 2**62


class MemodbConnection(Connection):
    """A pipe, and its requests that wait for an answer."""

    def __init__(self, door: "MemodbDoor", pipe: sp.MessagePipe) -> None:
        super().__init__(door)
        self.memodb = door
        self.pipe = pipe
        # The same one, but for WebSockets: compiled, its methods and attributes are found without looking them up.
        self._stream: sp.StreamPipe | None = None
        if isinstance(pipe, sp.StreamPipe):
            self._stream = pipe
            self.count_input_of(pipe)
        self.outstanding: dict[bytes, MemodbWatcher | MemodbWorker] = {}  # requests, by backtrace
        self.workers: set[MemodbWorker] = set()  # that sent READY over this pipe
        self.ready_requests: set[bytes] = set()  # backtraces of the READYs of its workers
        self._most = door.options.requests_per_pipe or _ANY_NUMBER
        # Parsing is `blocked` while the limit of waiting requests is reached.
        self._resuming = False  # one of them was answered: parsing goes on in the next turn of the loop
        self._ignored = 0  # invalid messages

    def connection_made(self, transport: "asyncio.Transport") -> None:
        """Send our greeting, without waiting for the peer's."""
        super().connection_made(transport)
        if self.pipe.greeting and not self.closing:
            self.write(self.pipe.greeting)

    def feed(self, data: bytes) -> None:
        """Give what was read to the codec."""
        self.pipe.feed(data)

    def handle_packets(self) -> None:
        """Hand every complete request to its handler, until too many wait for an answer."""
        outstanding = self.outstanding
        handlers = commands.HANDLERS
        left: i64 = PACKETS_PER_CHECK
        while not self.blocked:
            if not left or self.unsent > HIGH_WATER:
                if self.turn_over():
                    return
                left = PACKETS_PER_CHECK
            left -= 1
            if len(outstanding) >= self._most:
                self.blocked = True
                return
            stream = self._stream
            if stream is not None:
                if not stream.next():
                    return
                data, start, end = stream.data, stream.start, stream.end
            else:
                pipe = self.pipe
                more = pipe.next()
                if pipe.answers:
                    self._send_answers()
                if not more:
                    return
                data, start, end = pipe.data, pipe.start, pipe.end
            body = sp.body(data, start, end)
            backtrace = data[start:body]
            if backtrace in outstanding:
                continue  # the same request, repeated because the answer takes long
            message, payload = wire.parse(data, body, end)
            handlers[message.kind].handle(self, backtrace, message, data[payload:end])

    def _send_answers(self) -> None:
        for answer in self.pipe.answers:
            self.write(answer)
        self.pipe.answers.clear()

    def request_ended(self, backtrace: bytes) -> None:
        """A request no longer waits for an answer."""
        self.outstanding.pop(backtrace, None)
        if self.blocked and not self._resuming and len(self.outstanding) < self._most:
            # Later: the engine may be in the middle of the verb that ended this request.
            self._resuming = True
            self.tick_loop.loop.call_soon(self._resume)

    def _resume(self) -> None:
        self._resuming = False
        self.unblock()

    def reply(self, backtrace: bytes, header: bytes, payload: bytes = b"") -> None:
        """Answer the request with this backtrace."""
        stream = self._stream
        if stream is not None and len(payload) <= sp.COPY_UP_TO:
            self.write(stream.packet(backtrace, header, payload))
            return
        for part in self.pipe.framed(backtrace + header, payload):
            self.write(part)

    def close_if_unused(self) -> None:
        """Close the pipe, so that its peer repeats its request, if no other request and no worker uses it."""
        if not (self.outstanding or self.workers or self.blocked):
            self.close()

    def refuse(self, error: WireError) -> None:
        """Ignore an invalid message, or close the pipe if the error is fatal."""
        if error.fatal:
            peer_closed = error.code == "CLOSED"
            self.log(logging.DEBUG if peer_closed else logging.WARNING, "peer refused", str(error))
            self._send_answers()
            if peer_closed:
                self.close()
            else:
                self.close_refused()
            return
        # The first one is a warning; thousands of warnings would hide everything else.
        self.log(logging.DEBUG if self._ignored else logging.WARNING, "message ignored", str(error))
        self._ignored += 1

    def lost(self) -> None:
        """Requeue the jobs of its workers, and cancel jobs that only it waited for."""
        for request in list(self.outstanding.values()):
            if isinstance(request, MemodbWatcher):
                request.end()
                self.engine.unwatch_all(request)
        for worker in list(self.workers):
            worker.leave("its pipe closed")

    def incomplete(self) -> tuple[int, int]:
        """Which incomplete message is arriving, and how many bytes are there; a greeting is due from the start."""
        return (self.pipe.split_packets, self.pipe.incomplete_size + (not self.pipe.greeted))

    def timed_out(self) -> None:
        """A message or the greeting did not arrive."""
        what = "no more of a message" if self.pipe.greeted else "no greeting"
        seconds = self.door.limits.stall_timeout
        self.refuse(WireError("TIMEOUT", f"{what} arrived for {seconds:g} seconds"))
