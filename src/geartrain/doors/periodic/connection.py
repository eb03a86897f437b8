"""One Periodic peer. Whatever type it registered as, it may be a client and a worker."""

import logging
import os
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from geartrain.address import Address
from geartrain.audit import LOGIN, REFUSED
from geartrain.doors.connection import PACKETS_PER_CHECK, Connection
from geartrain.doors.long_answer import StreamedAnswer
from geartrain.doors.peer_output import HIGH_WATER
from geartrain.doors.periodic import commands, job_names
from geartrain.doors.periodic.watcher import RunWatcher
from geartrain.doors.periodic.worker import PeriodicWorker
from geartrain.engine import names
from geartrain.engine.job import LiveJob
from geartrain.errors import ForbiddenError, InvalidNameError, LimitError, WireError
from geartrain.rights import Identity
from geartrain.wire import periodic as wire

if TYPE_CHECKING:
    from geartrain.doors.periodic.door import PeriodicDoor

_OVERHEAD: Final = 64  # bytes of memory that a part of a list takes besides its content, about


class PeriodicConnection(Connection):
    """The protocol has no errors: what is wrong closes the connection."""

    def __init__(self, door: "PeriodicDoor", address: Address) -> None:
        super().__init__(door)
        self.periodic = door
        self.reader = wire.Reader(door.limits.max_packet)
        self.count_input_of(self.reader)
        self.dialect = wire.DOCUMENT
        self.quiet = door.is_quiet(address)
        self.is_worker = False  # as it registered
        self.registered = False
        self.name = b""
        self.heard_at = door.tick_loop.loop.time()  # by the loop's clock, which is never set
        self.worker: PeriodicWorker | None = None
        self.waiters: set[RunWatcher] = set()

    def feed(self, data: bytes) -> None:
        """Give what was read to the codec."""
        self.heard_at = self.tick_loop.loop.time()
        self.reader.feed(data)

    def handle_packets(self) -> None:
        """Hand every complete frame to its handler."""
        reader = self.reader
        left: i64 = PACKETS_PER_CHECK
        while not self.blocked and reader.next() == wire.FRAME:
            if self.registered:
                self._handle(reader.data, reader.start, reader.end)
            else:
                self._register(wire.Arguments(reader.data, reader.start, reader.end))
            left -= 1
            if not left or self.unsent > HIGH_WATER or self.suspended:
                if self.turn_over():
                    return
                left = PACKETS_PER_CHECK

    def _register(self, arguments: wire.Arguments) -> None:
        """Handle the first frame: the type of the peer. The answer is a connection id."""
        self.dialect = self.reader.dialect
        kind = arguments.kind()
        if kind in (wire.NAMED_CLIENT, wire.NAMED_WORKER):
            self.name, token = arguments.identity()
            self._check_name(self.name)
        elif kind in (wire.CLIENT, wire.WORKER):
            token = b""
        else:
            raise WireError("TYPE", f"there is no peer type {kind}")
        identity = self.door.access.by_token(token.decode("utf-8", "surrogateescape")) if token else None
        if identity is not None:
            self._log_in(identity)
        elif not self.periodic.admits(token):
            self.audit(LOGIN, REFUSED, why="wrong token")
            self._send(bytes((wire.NO_WORKER,)))
            raise WireError("TOKEN", "the token is wrong")
        self.is_worker = kind in (wire.WORKER, wire.NAMED_WORKER)
        self.registered = True
        # Node clients before 1.5 take the first four bytes for a message id, and fail on what follows them.
        self._send((b"" if self.quiet else self.dialect.data) + os.urandom(4))

    def _log_in(self, identity: Identity) -> None:
        try:
            self.use_identity(identity)
        except LimitError as error:
            self._send(bytes((wire.NO_WORKER,)))
            raise WireError(error.code, str(error)) from None

    def _check_name(self, name: bytes) -> None:
        try:
            names.check_worker(name)
        except InvalidNameError as error:
            self._send(bytes((wire.NO_WORKER,)))
            raise WireError(error.code, str(error)) from None

    def _handle(self, data: bytes, start: i64, end: i64) -> None:
        if end - start < 5:
            raise WireError("TRUNCATED", "a frame has a message id and a command")
        message_id = data[start : start + 4]
        command: i64 = data[start + 4]
        row = commands.BY_NUMBER[command] if command <= self.dialect.commands else None
        if row is None:
            self.answer(message_id, wire.UNKNOWN)
            return
        if row.confirmed_first and self.confirms(command, message_id):
            self.answer(message_id, wire.SUCCESS)
        try:
            row.handle(self, message_id, wire.Arguments(data, start + 5, end))
        except ForbiddenError as error:  # UNKNOWN, which no client takes for success
            self.log(logging.WARNING, "request refused", str(error))
            self.answer(message_id, wire.UNKNOWN)

    def confirms(self, command: int, message_id: bytes) -> bool:
        """Whether this command of a worker is answered with SUCCESS.

        Not with the message id of a grab that waits, whose client would take the answer for a job. A grab is not
        confirmed to a peer that registered as a client, nor if its message id is of the kind that only aio-periodic 0.2
        has: such workers predate this confirmation. Some never read it, and those of 0.2.1 take it for a job.
        """
        if not self.dialect.confirmed[command]:
            return False
        if self.quiet and command in wire.WORKERS_CONFIRMED:
            return False
        if command == wire.GRAB_JOB:
            return self.is_worker and not wire.is_hexadecimal(message_id)
        worker = self.worker
        if worker is None:
            return True
        return message_id not in worker.assigned and message_id not in worker.grabs

    def confirm(self, command: int, message_id: bytes) -> None:
        """Answer SUCCESS, if this dialect has it."""
        if self.confirms(command, message_id):
            self.answer(message_id, wire.SUCCESS)

    def work(self) -> PeriodicWorker:
        """Its worker, made on first use."""
        worker = self.worker
        if worker is None:
            worker = self.worker = PeriodicWorker(self)
            worker.name = self.name
        return worker

    def job_of(self, arguments: wire.Arguments) -> LiveJob | None:
        """The job that a worker reports on; None if the worker does not run it (any more)."""
        running = self.work().running
        if self.dialect.opaque_handle:
            return running.get(arguments.short())
        function, name = arguments.short(), arguments.short()
        single = running.single  # nearly always the one that is meant
        if single is not None and job_names.name(single) == name and single.function == function:
            return single
        job = job_names.find(self.engine, function, name)
        if job is not None and job.handle in running:
            return job
        return self._borrowed_job(function, name) if self.engine.borrowed else None

    def _borrowed_job(self, function: bytes, name: bytes) -> LiveJob | None:
        """The job of that name if its worker runs it and another server has lent it: its key is not known here."""
        jobs = [job for job in self.work().running.jobs() if job.function == function]
        return next((job for job in jobs if job.id in self.engine.borrowed and job_names.name(job) == name), None)

    def submit(self, request: wire.PeriodicJob) -> bool:
        """Submit a background job; false if it was refused."""
        return commands.submit(self, request, None) is not None

    def answer(self, message_id: bytes, command: int, arguments: bytes = b"") -> None:
        """Answer a message with a command."""
        self.write(wire.answer(self.dialect, message_id, command, arguments))

    def answer_data(self, message_id: bytes, data: bytes) -> None:
        """Answer a message with data."""
        self._send(b"%b%b%b" % (message_id, self.dialect.data, data))

    def answer_list(self, message_id: bytes, parts: Iterator[bytes], counted: bool = False) -> None:
        """Answer with data that is made of many parts, behind their number if they are counted.

        Empty parts are left out. A list of more bytes than the write limit is refused.
        """
        self.answer_in_steps(StreamedAnswer(self._framed_list(message_id, parts, counted)))

    def _framed_list(self, message_id: bytes, parts: Iterator[bytes], counted: bool) -> Iterator[bytes]:
        """The frame in parts. A frame begins with its size, so all of them are gathered first."""
        gathered: list[bytes] = []
        size = held = 0
        most = self.door.limits.write_limit
        for part in parts:
            if part:
                gathered.append(part)
                size += len(part)
                held += len(part) + _OVERHEAD
                if held > most:
                    self.log(logging.WARNING, "request refused", f"the list exceeds {most} bytes (write_limit)")
                    yield wire.frame(self.dialect, wire.RESPONSE, b"%b%c" % (message_id, wire.UNKNOWN))
                    return
            yield b""
        head = message_id + self.dialect.data + (wire.count(len(gathered)) if counted else b"")
        checksum = zlib.crc32(head)
        if self.dialect.crc:
            for part in gathered:
                checksum = zlib.crc32(part, checksum)
                yield b""
        yield wire.frame_header(self.dialect, wire.RESPONSE, len(head) + size, checksum) + head
        gathered.reverse()
        while gathered:  # from the end: the memory of each is released when it is sent
            yield gathered.pop()

    def answer_durably(self, message_id: bytes, word: int = wire.SUCCESS, otherwise: int = wire.UNKNOWN) -> None:
        """Answer SUCCESS when the change is on disk; UNKNOWN, which no client takes for success, if it cannot be."""
        dialect = self.dialect
        self.acknowledge(wire.answer(dialect, message_id, word), wire.answer(dialect, message_id, otherwise))

    def close(self) -> None:
        """Assign no more jobs, write what is left, and close."""
        worker = self.worker
        if worker is not None:
            worker.grabs.clear()
            self.engine.stop_sleeping(worker)
        super().close()

    def lost(self) -> None:
        """Requeue the jobs that it ran, and cancel foreground jobs that only it waited for."""
        worker = self.worker
        if worker is not None:
            worker.grabs.clear()
            jobs = worker.running.jobs()
            self.engine.remove_worker(worker)
            for job in jobs:
                self.periodic.locks.release_all(job)
        for waiter in list(self.waiters):
            waiter.cancel_timer()
            self.engine.unwatch_all(waiter)
        if self.waiters:
            self.waiters.clear()
            self.periodic.forget_expected(self)

    def incomplete(self) -> tuple[int, int]:
        """Which incomplete frame is arriving, and how many bytes of it are there."""
        return (self.reader.split_packets, self.reader.incomplete_size)

    def _send(self, payload: bytes) -> None:
        self.write(wire.frame(self.dialect, wire.RESPONSE, payload))
