"""One GearMonkey program, or anything else that speaks Redis' protocol.

A command may have to wait: a pop for a job, a look at a finished job for its record. What comes after it is held back
until it is answered, since answers come in the order of the commands.
"""

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from geartrain.doors.connection import Connection
from geartrain.doors.gearmonkey import channel_commands, keys, table, transaction
from geartrain.doors.gearmonkey.waits import Wait
from geartrain.doors.gearmonkey.worker import GearmonkeyWorker
from geartrain.engine.job import LiveJob
from geartrain.engine.worker import Worker
from geartrain.errors import StoreError, WireError
from geartrain.wire import resp

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.door import GearmonkeyDoor
    from geartrain.doors.gearmonkey.table import Row

_NOT_DURABLE: Final = resp.error_reply("ERR", "the job could not be written to disk; it was not queued")
_MOST_RECORDS: Final = 1000  # looked up for one command
_ENDS: Final = (b"success", b"error")
# How a web page that was led here begins. Redis refuses these as well, before the page can go on.
_WEB: Final = frozenset({b"POST", b"HOST:"})


class GearmonkeyConnection(Connection):
    """Reads commands, and answers each in its turn."""

    SILENT: Final = resp.SimpleString(b"")  # what a handler returns that answers later, or by itself

    def __init__(self, door: "GearmonkeyDoor", number: int) -> None:
        super().__init__(door)
        self.monkey = door
        self.jobs = door.jobs
        self.number = number
        self.reader = resp.Reader(door.limits.max_packet)
        self.version = 2  # of the protocol
        self.name = b""
        self.came_at = time.monotonic()
        self.worker: GearmonkeyWorker | None = None  # made when it first pops from a queue
        self.wait: Wait | None = None  # its pop that waits
        self.must_be_durable = False  # what the current command has done, before it is answered
        self.drafts = 0  # how many ids it took and did not use
        self.counted: set[bytes] = set()  # functions whose workers it has counted
        self.channels: set[bytes] = set()
        self.patterns: set[bytes] = set()
        self.transaction: transaction.Transaction | None = None  # since MULTI
        self.in_transaction = False  # during EXEC
        self.watched: dict[bytes, object] = {}
        self._blocked = False  # a command waits for its answer
        self._unread: deque[bytes] = deque()  # what came since
        self._unread_size = 0
        self._inquiry: asyncio.Task[None] | None = None

    # Reading

    def feed(self, data: bytes) -> None:
        """Give what was read to the codec, or keep it while a command waits for its answer."""
        if not self._blocked:
            self.reader.feed(data)
            return
        self._unread.append(data)
        self._unread_size += len(data)
        if self._unread_size > self.door.limits.write_limit:
            self.drop("it goes on sending while a command of its own waits")

    def handle_packets(self) -> None:
        """Carry out every complete command, up to one that waits."""
        while not self._blocked and not self.input_ended and self.reader.next() == resp.COMMAND:
            self._handle(self.reader.arguments)

    def _resume(self) -> None:
        """The command that waited was answered: go on with what came since."""
        if self.input_ended:
            return
        self._blocked = False
        self.tick_loop.begin_tick()
        self.handle_input()
        while self._unread and not self._blocked and not self.input_ended:
            data = self._unread.popleft()
            self._unread_size -= len(data)
            self.reader.feed(data)
            self.handle_input()

    def _handle(self, arguments: list[bytes]) -> None:
        name = arguments[0].upper()
        row = table.COMMANDS.get(name)
        objection = self._objection(row, name, arguments)
        gathering = self.transaction
        if row is None or objection is not None:
            if gathering is not None:
                gathering.failed = True
            self.reply(objection)
        elif gathering is not None and not row.at_once:
            gathering.commands.append((row, arguments))
            self.write(b"+QUEUED\r\n")
        else:
            unknown = self._unknown_jobs(row, arguments)
            if unknown:
                self._inquire(unknown, row, arguments)
            else:
                self._perform(row, arguments)

    def _objection(self, row: "Row | None", name: bytes, arguments: list[bytes]) -> resp.ErrorReply | None:
        """What speaks against a command before it is looked at any closer."""
        word = keys.text(arguments[0])
        if row is None:
            if name in _WEB:
                raise WireError("ERR", "this is not a web server")
            shown = "".join(f"'{keys.text(argument)}' " for argument in arguments[1:10])
            return resp.ErrorReply("ERR", f"unknown command '{word}', with args beginning with: {shown}")
        if not row.least <= len(arguments) <= row.most:
            return resp.ErrorReply("ERR", f"wrong number of arguments for '{word.lower()}' command")
        if self.version == 2 and self.is_subscriber and not row.subscribers:
            allowed = "(P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET"
            return resp.ErrorReply("ERR", f"Can't execute '{word.lower()}': only {allowed} are allowed in this context")
        if self.transaction is not None and not row.at_once:
            self.transaction.size += sum(map(len, arguments))
            if not row.in_transaction:
                return resp.ErrorReply("ERR", "Command not allowed inside a transaction")
            too_much = self.transaction.size > self.door.limits.max_packet
            if too_much or len(self.transaction.commands) >= transaction.MOST_COMMANDS:
                return resp.ErrorReply("ERR", "the transaction is too large")
        return None

    def _perform(self, row: "Row", arguments: list[bytes]) -> None:
        self.must_be_durable = False
        value = self.value_of(row, arguments)
        if value is not self.SILENT:
            self.reply(value)

    def value_of(self, row: "Row", arguments: list[bytes]) -> resp.Value:
        """What a command gives; its objection is an answer too."""
        try:
            return row.handler(self, arguments)
        except WireError as error:
            if error.fatal:
                raise
            return resp.ErrorReply(error.code, error.text)

    # Jobs that only the records know

    def _unknown_jobs(self, row: "Row", arguments: list[bytes]) -> dict[bytes, None]:
        """Handles of the jobs that a command, or a whole transaction, asks for and nobody here knows."""
        unknown: dict[bytes, None] = {}
        if row.handler is transaction.execute and self.transaction is not None:
            for queued, words in self.transaction.commands:
                unknown.update(self._unknown_jobs(queued, words))
        elif row.keys is not table.Keys.NONE:
            for raw in arguments[row.keys.value][:_MOST_RECORDS]:
                handle = self._unknown_job(raw)
                if handle:
                    unknown[handle] = None
        return unknown

    def _unknown_job(self, raw: bytes) -> bytes:
        if not raw.startswith((b"job:", b"lock:")):
            return b""
        try:
            key = keys.parse(raw)
        except WireError:
            return b""
        return self.jobs.handle(key.id) if self.jobs.is_unknown(key) else b""

    def _inquire(self, handles: dict[bytes, None], row: "Row", arguments: list[bytes]) -> None:
        self._blocked = True
        inquiry = self._ask_archive(list(handles)[:_MOST_RECORDS], row, arguments)
        self._inquiry = self.tick_loop.loop.create_task(inquiry)

    async def _ask_archive(self, handles: list[bytes], row: "Row", arguments: list[bytes]) -> None:
        try:
            for handle in handles:
                record = await self.monkey.archive.find(handle)
                if record is not None:
                    self.jobs.endings.recall(record, self.tick_loop.begin_tick().now)
            if not self.input_ended:
                self.tick_loop.begin_tick()
                self._perform(row, arguments)
        except StoreError as error:
            self.reply(resp.ErrorReply("ERR", f"the records cannot be read: {error}"))
        except Exception:
            self.handle_bug()
        if self.wait is None:
            self._resume()

    # Waiting

    def wait_for(self, wanted: list[keys.Key], seconds: float) -> None:
        """A pop found nothing: wait."""
        self._blocked = True
        self.wait = wait = Wait(self, wanted)
        self.monkey.waits.add(wait, seconds)
        if wait.for_jobs:
            self.work().look()

    def answer_wait(self, value: resp.Value | WireError) -> None:
        """Its pop has waited long enough, or there is something for it. Called from inside engine verbs."""
        wait = self.wait
        if wait is None:
            return
        self.wait = None
        self.monkey.waits.end(wait)
        if self.worker is not None:
            self.engine.stop_sleeping(self.worker)
        self.must_be_durable = False
        if isinstance(value, WireError):
            self.write(resp.error_reply(value.code, value.text))
        else:
            self.reply(value)
        if self._unread or self.reader.has_more:
            self.tick_loop.loop.call_soon(self._resume)
        else:
            self._blocked = False

    # Saying

    def reply(self, value: resp.Value) -> None:
        """Answer the current command."""
        data = resp.encode(value, self.version)
        if self.must_be_durable:
            self.must_be_durable = False
            self.acknowledge(data, _NOT_DURABLE)
        else:
            self.write(data)

    def push(self, values: list[resp.Value]) -> None:
        """Tell a subscriber something."""
        self.write(resp.push(values, self.version))

    def send_error(self, error: WireError) -> None:
        """An error reply."""
        self.write(resp.error_reply(error.code, error.text))

    def internal_error(self) -> WireError:
        """What the peer is told of a bug."""
        return WireError("ERR", "internal error")

    # Who it is

    @property
    def is_subscriber(self) -> bool:
        """Whether it listens to anything."""
        return bool(self.channels or self.patterns)

    def rename(self, name: bytes) -> None:
        """What it calls itself."""
        self.name = name
        if self.worker is not None:
            self.worker.name = name

    def work(self) -> GearmonkeyWorker:
        """Its worker, made on first use."""
        if self.worker is None:
            self.worker = GearmonkeyWorker(self)
        return self.worker

    def keeper(self, job: LiveJob) -> Worker | None:
        """The worker for which this connection may report on a job.

        GearMonkey's workers may pop on one connection and report on another, so it is whoever popped it here.
        """
        if self.worker is not None and job.handle in self.worker.running:
            return self.worker
        return job.owner if isinstance(job.owner, GearmonkeyWorker) else None

    def is_excused(self, handle: bytes, fields: dict[bytes, bytes]) -> bool:
        """Whether this connection had the job and lost it through no fault of its own."""
        worker = self.worker
        if worker is None:
            return False
        if fields.get(b"status") in _ENDS:
            return worker.is_forgiven(handle)
        return handle in (worker.forgiven or ())

    # Ending

    def close(self) -> None:
        """It gets no more jobs, and is told what it still has to be told."""
        self._stop_waiting()
        super().close()

    def lost(self) -> None:
        """Its jobs go back to their queues, and its workers no longer count."""
        self._stop_waiting()
        self._unread.clear()
        if self._inquiry is not None:
            self._inquiry.cancel()
        channel_commands.forget(self)
        self.monkey.counts.forget(self)
        if self.worker is not None:
            self.worker.leave()

    def _stop_waiting(self) -> None:
        wait = self.wait
        if wait is not None:
            self.wait = None
            self.monkey.waits.end(wait)
            if self.worker is not None:
                self.engine.stop_sleeping(self.worker)

    def incomplete(self) -> tuple[int, int]:
        """Which incomplete command is arriving, and how many bytes of it are there."""
        return (self.reader.commands_begun + self.reader.split_packets, self.reader.incomplete_command_size)

    def timed_out(self) -> None:
        """The peer began a command and sent no more of it."""
        seconds = self.door.limits.stall_timeout
        self.refuse(WireError("ERR", f"no more of a command arrived for {seconds:g} seconds"))
