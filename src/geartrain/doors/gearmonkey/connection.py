"""One GearMonkey program, or anything else that speaks Redis' protocol.

A command may have to wait: a blocking pop for a job, a read of a finished job for its record. Later commands are held
back until it is answered, since replies come in the order of the commands.
"""

import asyncio
import functools
import sys
import time
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final

from geartrain.doors.connection import PACKETS_PER_CHECK, Connection
from geartrain.doors.gearmonkey import channel_commands, command_rights, commands, keys, long_reply, transaction
from geartrain.doors.gearmonkey.blocked_pops import BlockedPop
from geartrain.doors.gearmonkey.worker import GearmonkeyWorker
from geartrain.doors.long_answer import StreamedAnswer
from geartrain.doors.peer_output import HIGH_WATER
from geartrain.doors.worker_lease import WorkerLease
from geartrain.engine.job import LiveJob
from geartrain.engine.worker import Worker
from geartrain.errors import ForbiddenError, StoreError, WireError
from geartrain.wire import resp

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.commands import Command
    from geartrain.doors.gearmonkey.door import GearmonkeyDoor

_NOT_DURABLE: Final = resp.error_reply("ERR", "the job could not be written to disk; it was not queued")
_MOST_RECORDS: Final = 1000  # looked up for one command
_ENDS: Final = (b"success", b"error")
_ARGUMENTS_PER_PACKET: Final = 8  # a command with this many more arguments counts as one more packet


class GearmonkeyConnection(Connection):
    """A connection of the GearMonkey door."""

    NO_REPLY: Final = resp.SimpleString(b"")  # returned by handlers that reply later, or by themselves

    def __init__(self, door: "GearmonkeyDoor", number: int) -> None:
        super().__init__(door)
        self.gearmonkey = door
        self.jobs = door.jobs
        self.number = number
        self.reader = resp.Reader(door.limits.max_packet)
        self.count_input_of(self.reader)
        self.version = 2  # of the protocol
        self.name = b""
        self.connected_at = time.monotonic()
        self.worker: GearmonkeyWorker | None = None  # made with its first pop from a queue
        self.lease: WorkerLease | None = None  # of a worker that sends heartbeats
        self.grace = door.detached.grace  # seconds that its jobs stay with its worker after it has closed
        self.wants_input = False  # of the jobs that it pops, with the reply of the pop
        self.adopted: set[GearmonkeyWorker] = set()  # of closed connections, that have reported over this one
        self.blocked_pop: BlockedPop | None = None  # that waits
        self.must_be_durable = False  # the changes of the current command, before its reply
        self.prepared = 0  # ids that it took and has not used
        self.counted: set[bytes] = set()  # functions whose workers it has counted
        self.channels: set[bytes] = set()
        self.patterns: set[bytes] = set()
        self.transaction: transaction.Transaction | None = None  # since MULTI
        self.in_transaction = False  # during EXEC
        self.jobs_listed = 0  # by the commands of the transaction: how many they looked at
        self.ends: list[int] = []  # jobs that end with the transaction if they wait for their output
        self.watched: dict[bytes, object] = {}
        self._lookup: asyncio.Task[None] | None = None

    # Reading

    def feed(self, data: bytes) -> None:
        """Give what was read to the codec."""
        self.reader.feed(data)

    def handle_packets(self) -> None:
        """Run every complete command, up to one that waits."""
        left = PACKETS_PER_CHECK
        while not self.blocked and not self.input_ended and self.reader.next() == resp.COMMAND:
            arguments = self.reader.arguments
            self._handle(arguments)
            left -= 1 + len(arguments) // _ARGUMENTS_PER_PACKET
            if left <= 0 or self.unsent > HIGH_WATER or self.suspended:
                if self.turn_over():
                    return
                left = PACKETS_PER_CHECK

    def _handle(self, arguments: list[bytes]) -> None:
        row = commands.COMMANDS.get(arguments[0])
        if row is None:
            row = commands.COMMANDS.get(arguments[0].upper())
        queued = self.transaction
        error: resp.ErrorReply | None = None
        if row is None or queued is not None or self.is_subscriber or not row.takes(len(arguments)):
            error = self._error_of(row, arguments)
        if row is None or error is not None:
            if queued is not None:
                queued.failed = True
            self.reply(error)
        elif queued is not None and not row.inside_multi:
            queued.commands.append((row, arguments))
            self.write(b"+QUEUED\r\n")
        else:
            if row.keys != commands.NONE or queued is not None:
                unknown = self._unknown_jobs(row, arguments)
                if unknown is not None:
                    self._look_up(unknown, row, arguments)
                    return
            self._run(row, arguments)

    def _error_of(self, row: "Command | None", arguments: list[bytes]) -> resp.ErrorReply | None:
        """Why a command cannot run, as far as the table tells."""
        if row is None:
            shown = "".join(f"'{keys.text(argument)}' " for argument in arguments[1:10])
            word = keys.text(arguments[0])
            return resp.ErrorReply("ERR", f"unknown command '{word}', with args beginning with: {shown}")
        if not row.takes(len(arguments)):
            return resp.ErrorReply("ERR", f"wrong number of arguments for '{keys.text(arguments[0]).lower()}' command")
        if self.version == 2 and self.is_subscriber and not row.subscribers:
            word = keys.text(arguments[0]).lower()
            allowed = "(P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET"
            return resp.ErrorReply("ERR", f"Can't execute '{word}': only {allowed} are allowed in this context")
        if self.transaction is not None and not row.inside_multi:
            self.transaction.size += sum(map(len, arguments))
            self.transaction.words += len(arguments)
            if not row.in_transaction:
                return resp.ErrorReply("ERR", "Command not allowed inside a transaction")
            if self.transaction.size > self.door.limits.max_packet or self.transaction.is_too_large:
                return resp.ErrorReply("ERR", "the transaction is too large")
        return None

    def _run(self, row: "Command", arguments: list[bytes]) -> None:
        self.must_be_durable = False
        value = self.value_of(row, arguments)
        if value is not self.NO_REPLY:
            self.reply(value)

    def value_of(self, row: "Command", arguments: list[bytes]) -> resp.Value:
        """The reply of a command; a refusal is a reply too."""
        try:
            if self.identity is not None:
                command_rights.check(self, arguments)
            return row.handler(self, arguments)
        except WireError as error:
            if error.fatal:
                raise
            return resp.ErrorReply(error.code, error.text)
        except ForbiddenError as error:
            return resp.ErrorReply("NOPERM", str(error))

    # Jobs that only the records have

    def _unknown_jobs(self, row: "Command", arguments: list[bytes]) -> dict[bytes, keys.Key] | None:
        """By handle, the jobs that a command, or a whole transaction, names and that only the records may have."""
        unknown: dict[bytes, keys.Key] | None = None
        if row.handler is transaction.execute and self.transaction is not None:
            for command, words in self.transaction.commands:
                unknown = self._add_unknown_jobs(command, words, unknown)
            return unknown
        return self._add_unknown_jobs(row, arguments, None)

    def _add_unknown_jobs(
        self, row: "Command", arguments: list[bytes], unknown: dict[bytes, keys.Key] | None
    ) -> dict[bytes, keys.Key] | None:
        if row.keys == commands.NONE:
            return unknown
        for raw in row.job_keys(arguments)[:_MOST_RECORDS]:
            key = self._unknown_job(raw)
            if key is not None:
                if unknown is None:
                    unknown = {}
                unknown[self.jobs.handle(key.id)] = key
        return unknown

    def _unknown_job(self, raw: bytes) -> keys.Key | None:
        if not (raw.startswith(b"job:") or raw.startswith(b"lock:")):  # noqa: PIE810 (a tuple is slower here)
            return None
        try:
            key = keys.parse(raw)
        except WireError:
            return None
        return key if self.jobs.is_unknown(key) or self.jobs.cold(key) is not None else None

    def _look_up(self, unknown: dict[bytes, keys.Key], row: "Command", arguments: list[bytes]) -> None:
        self.blocked = True
        lookup = self._read_records(list(unknown.items())[:_MOST_RECORDS], row, arguments)
        self._lookup = self.tick_loop.loop.create_task(lookup)

    async def _read_records(self, jobs: list[tuple[bytes, keys.Key]], row: "Command", arguments: list[bytes]) -> None:
        try:
            try:
                await self._add_records([handle for handle, key in jobs if self.jobs.cold(key) is None])
                elsewhere = await self.gearmonkey.hashes.read(self, jobs, row, arguments)
                cold_inputs = await self._read_inputs([key for _, key in jobs])
            finally:
                self.blocked = False  # the command may block again
            if not self.input_ended:
                self.begin_tick()
                self.jobs.elsewhere, self.jobs.cold_inputs = elsewhere, cold_inputs
                try:
                    self._run(row, arguments)
                finally:
                    self.jobs.elsewhere, self.jobs.cold_inputs = {}, {}
            self.jobs.finished.trim()
        except StoreError as error:
            self.reply(resp.ErrorReply("ERR", f"the records cannot be read: {error}"))
        except WireError as error:
            self.reply(resp.ErrorReply(error.code, error.text))
        except Exception:
            self.handle_bug()
        if not self.blocked:
            self.unblock()

    def reply_later(self, reply: Coroutine[Any, Any, resp.Value]) -> resp.Value:
        """Reply with what a coroutine returns. The next commands wait for it."""
        self.blocked = True
        self._lookup = self.tick_loop.loop.create_task(self._reply_after(reply, self.must_be_durable))
        return self.NO_REPLY

    async def _reply_after(self, reply: Coroutine[Any, Any, resp.Value], must_be_durable: bool) -> None:
        try:
            value = await reply
            self.begin_tick()
            self.must_be_durable = must_be_durable
            self.reply(value)
        except Exception:
            self.handle_bug()
        self.blocked = False
        self.unblock()

    async def _read_inputs(self, job_keys: list[keys.Key]) -> dict[int, bytes]:
        """The inputs of those of these jobs that are cold, by id."""
        jobs = [job for key in job_keys if (job := self.jobs.cold(key)) is not None]
        if not jobs:
            return {}
        if sum(job.payload_size for job in jobs) > self.door.limits.write_limit:
            raise keys.refusal("the inputs of these jobs exceed write_limit; read fewer of them at once")
        return await self.gearmonkey.archive.cold_payloads(jobs, sys.maxsize)

    async def _add_records(self, handles: list[bytes]) -> None:
        size = 0
        for handle in handles:
            record = await self.gearmonkey.archive.find(handle)
            if record is None:
                continue
            size += record.kept_size
            if size > self.door.limits.write_limit:
                raise keys.refusal("the outputs of these jobs exceed write_limit; read fewer of them at once")
            result = await self.gearmonkey.archive.result(record)
            self.jobs.finished.add_record(record, result, self.begin_tick().now)

    # Blocking pops

    def block_pop(self, popped_keys: list[keys.Key], seconds: float) -> None:
        """Wait for a value of one of these keys."""
        self.blocked = True
        self.blocked_pop = pop = BlockedPop(self, popped_keys)
        self.gearmonkey.blocked_pops.add(pop, seconds)
        if pop.for_jobs:
            self.work().try_pop()
        self.gearmonkey.hashes.check_locks(pop)

    def answer_pop(self, value: resp.Value | WireError) -> None:
        """End the blocking pop with this reply. Called inside verbs of the engine."""
        pop = self.blocked_pop
        if pop is None:
            return
        self.blocked_pop = None
        self.gearmonkey.blocked_pops.end(pop)
        if self.worker is not None:
            self.engine.stop_sleeping(self.worker)
        self.must_be_durable = False
        if isinstance(value, WireError):
            self.write(resp.error_reply(value.code, value.text))
        else:
            self.reply(value)
        if self.has_unhandled or self.reader.has_more:
            self.tick_loop.loop.call_soon(self.unblock)
        else:
            self.blocked = False

    # Replies

    def reply(self, value: resp.Value) -> None:
        """Reply to the current command, when its changes are durable."""
        if isinstance(value, (list, dict)) and long_reply.is_long(value):
            self._reply_in_steps(value)
            return
        data = resp.encode(value, self.version)
        if self.must_be_durable:
            self.must_be_durable = False
            self.acknowledge(data, _NOT_DURABLE)
        else:
            self.write(data)

    def _reply_in_steps(self, value: resp.Value) -> None:
        """Reply with a long list, after its changes are durable if they must be."""
        if not self.must_be_durable:
            self.answer_in_steps(StreamedAnswer(long_reply.parts(value, self.version)))
            return
        self.must_be_durable = False
        self.blocked = True
        self.tick_loop.durability.call_when_durable(functools.partial(self._reply_when_durable, value))

    def _reply_when_durable(self, value: resp.Value, failed: bool) -> None:
        if self.input_ended:
            return
        self.tick_loop.begin_tick()
        if failed:
            self.write(_NOT_DURABLE)
        else:
            self.answer_in_steps(StreamedAnswer(long_reply.parts(value, self.version)))
        self.tick_loop.loop.call_soon(self.unblock)

    def push(self, values: list[resp.Value]) -> None:
        """Send a message to a subscriber."""
        self.write(resp.push(values, self.version))

    def send_error(self, error: WireError) -> None:
        """An error reply."""
        self.write(resp.error_reply(error.code, error.text))

    def surplus_error(self, why: str) -> bytes:
        """Redis' own text."""
        return resp.error_reply("ERR", "max number of clients reached")

    def internal_error(self) -> WireError:
        """The error that is sent to the peer after a bug."""
        return WireError("ERR", "internal error")

    # The peer

    @property
    def is_subscriber(self) -> bool:
        """Whether it has subscribed to a channel or a pattern."""
        return bool(self.channels or self.patterns)

    def rename(self, name: bytes) -> None:
        """Set the name of the connection and of its worker."""
        self.name = name
        if self.worker is not None:
            self.worker.name = name

    def work(self) -> GearmonkeyWorker:
        """Its worker, made on first use."""
        if self.worker is None:
            self.worker = GearmonkeyWorker(self)
        return self.worker

    def heartbeat(self) -> float:
        """Its worker is alive, and will say so while it has jobs; return for how many seconds it may be silent."""
        seconds = self.door.limits.worker_lease
        if self.lease is not None:
            self.lease.renew()
        elif seconds:
            self.lease = WorkerLease(self, self.work(), seconds)
        return seconds

    def worker_of(self, job: LiveJob) -> Worker | None:
        """The worker whose job this is, if this connection may report on it.

        GearMonkey's workers may pop on one connection and report on another, so any worker of this door counts.
        """
        if self.worker is not None and job.handle in self.worker.running:
            return self.worker
        return job.owner if isinstance(job.owner, GearmonkeyWorker) else None

    def adopt(self, worker: Worker) -> None:
        """A worker has reported over this connection."""
        if worker is not self.worker and isinstance(worker, GearmonkeyWorker):
            self.gearmonkey.detached.adopt(worker, self)

    def is_forgiven_report(self, handle: bytes, fields: dict[bytes, bytes]) -> bool:
        """Whether a report on a job that was taken from its worker is to be ignored."""
        final = fields.get(b"status") in _ENDS
        worker = self.worker
        if worker is not None and worker.forgiven is not None and handle in worker.forgiven:
            return worker.is_forgiven(handle) if final else True
        return self.gearmonkey.detached.is_forgiven(handle, final)

    def end_waiting(self, key: keys.Key) -> None:
        """End a job that waits for its output; in a transaction at its end, since the output may follow there."""
        ending = self.gearmonkey.ending
        if key.id in ending and self.jobs.live(key) is not None:
            if self.in_transaction:
                self.ends.append(key.id)
            else:
                ending.end_waiting(key.id)

    # Closing

    def close(self) -> None:
        """Assign no more jobs, write what is left, and close."""
        self._stop_waiting()
        super().close()

    def lost(self) -> None:
        """Detach its worker if it has jobs, and undo its subscriptions and counts."""
        self._stop_waiting()
        if self.lease is not None:
            self.lease.end()
        if self._lookup is not None:
            self._lookup.cancel()
        channel_commands.forget(self)
        self.gearmonkey.counts.forget(self)
        self.gearmonkey.detached.connection_lost(self)

    def _stop_waiting(self) -> None:
        pop = self.blocked_pop
        if pop is not None:
            self.blocked_pop = None
            self.gearmonkey.blocked_pops.end(pop)
            if self.worker is not None:
                self.engine.stop_sleeping(self.worker)

    def incomplete(self) -> tuple[int, int]:
        """Which incomplete command is arriving, and how many bytes of it are there."""
        return (self.reader.incomplete_command, self.reader.incomplete_command_size)

    def timed_out(self) -> None:
        """The peer began a command and sent no more of it."""
        seconds = self.door.limits.stall_timeout
        self.refuse(WireError("ERR", f"no more of a command arrived for {seconds:g} seconds"))
