"""Gearman: a worker's connection.

A worker sends GRAB_JOB, gets NO_JOB, sends PRE_SLEEP, is woken by NOOP, and grabs again. With slots for several jobs it
sends several GRAB_JOBs without waiting for the answers. The number of grabs under way doubles while jobs arrive, and
drops to one when there is none, so that an idle worker does not send a hundred grabs for one job.

A Geartrain server accepts an option with which the worker announces that it understands WORK_FAIL for a job that was
taken from it, and that it sends ECHO_REQ while it has jobs. Other servers refuse the option, and get neither.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from geartrain.address import Address
from geartrain.client.order import Capabilities
from geartrain.client.protocols.base import Assignment, JobRunner, Lost, WorkerProtocol, whole_numbers
from geartrain.client.protocols.connection import ServerConnection
from geartrain.client.protocols.gearman.authentication import Authentication
from geartrain.client.protocols.heartbeat import Heartbeat
from geartrain.errors import ForbiddenError, WireError
from geartrain.wire import gearman as wire
from geartrain.wire import gearman_client

CAPABILITIES: Final = Capabilities(
    background=True, priority=True, unique=True, run_at=True, expires=True, keep_for=True, partition=True, after=True,
    status=True, cancel=True, progress=True, data=True, failure=True,
)  # fmt: skip

# gearmand 1.1.20 does not wake a worker when a delayed job is due: a sleeping worker has to poll.
_POLL_SECONDS: Final = 10.0
# While a delayed job is the first of its queue, gearmand 1.1.20 wakes its workers without a job, at once and endlessly.
# After this many wake-ups without a job, each sooner than this after the sleep, a worker pauses before it sleeps again.
_EMPTY_WAKE_UPS: Final = 10
_EMPTY_WAKE_UP_SECONDS: Final = 0.01
_EMPTY_WAKE_UP_PAUSE: Final = 0.2

_NOT_ALLOWED: Final = ForbiddenError.code.encode()

_log = logging.getLogger("geartrain.worker")


class Worker(WorkerProtocol):
    """A worker's connection, with its grabs and the jobs it has."""

    capabilities = CAPABILITIES

    def __init__(self, address: Address, lost: Lost, runner: JobRunner, name: bytes, concurrency: int) -> None:
        super().__init__(address, lost, runner, name, concurrency)
        self._connection = ServerConnection(self._received, self._broken)
        self._authentication = Authentication(address, self._connection)
        self._answers = gearman_client.AnswerReader()
        self._held: set[Assignment] = set()  # jobs that are not answered
        self._leaving: set[bytes] = set()  # functions whose CANT_DO is sent when none of their jobs is held
        self._grabs = 0  # that are not answered
        self._window = 1  # how many grabs may be under way
        self._asleep = False
        self._wants_slot = False  # a callback waits for one
        self._usable = False  # between `open` and the end
        self._stopped_fetching = False
        self._grabs_answered: asyncio.Future[None] | None = None
        self._slept_at = 0.0
        self._empty_wake_ups = 0  # in a row
        self._attempt = 1  # the number of the attempt that the next assignment begins
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._heartbeat = Heartbeat(self._send_heartbeat, lambda: bool(self._held))

    @classmethod
    def unsupported_reason(cls, function: bytes) -> str:
        """Arguments of packets end with NUL."""
        return "a function of gearman contains no NUL" if b"\0" in function else ""

    async def open(self, functions: dict[bytes, float]) -> None:
        """Connect, send the name and the functions, and check that a Gearman server answers."""
        self.check_names(*functions)
        await self._connection.open(self.address, self.tls)
        await self._authentication.perform(self.token)
        if self.name:
            self._connection.write(
                wire.request(wire.SET_CLIENT_ID, self.name[: wire.MAX_CLIENT_ID].replace(b"\0", b""))
            )
        for function, timeout in functions.items():
            self.register(function, timeout)
        self._connection.write(wire.request(wire.OPTION_REQ, wire.GEARTRAIN_WORKER))
        self._connection.write(wire.request(wire.ECHO_REQ, b"geartrain"))
        await self._connection.answer()
        self._usable = True
        self._poll_later()
        self._grab()

    def register(self, function: bytes, timeout: float) -> None:
        """CAN_DO, or CAN_DO_TIMEOUT in milliseconds."""
        self.check_names(function)
        self._leaving.discard(function)
        if timeout > 0:
            packet = wire.request(wire.CAN_DO_TIMEOUT, function, b"%d" % max(round(timeout * 1000), 1))
        else:
            packet = wire.request(wire.CAN_DO, function)
        self._connection.write(packet)
        if self._asleep:
            self._wake()  # gearmand wakes no worker for jobs that were queued before CAN_DO

    def unregister(self, function: bytes) -> None:
        """CANT_DO, when none of its jobs is held: the server would take them back."""
        self._leaving.add(function)
        self._unregister_unheld()

    def stop_fetching(self) -> None:
        """Send no more GRAB_JOB."""
        self._stopped_fetching = True

    async def fetching_stopped(self) -> None:
        """Return when every grab is answered."""
        if self._grabs and self._usable:
            self._grabs_answered = asyncio.get_running_loop().create_future()
            await self._grabs_answered

    def progress(self, job: Assignment, numerator: float, denominator: float) -> None:
        """WORK_STATUS, in whole numbers."""
        numbers = b"%d\0%d" % whole_numbers(numerator, denominator)
        self._connection.write(gearman_client.about_job(wire.WORK_STATUS, job.handle, numbers))

    def data(self, job: Assignment, data: bytes) -> None:
        """WORK_DATA."""
        self._connection.write(gearman_client.about_job(wire.WORK_DATA, job.handle, data))

    def warn(self, job: Assignment, data: bytes) -> None:
        """WORK_WARNING."""
        self._connection.write(gearman_client.about_job(wire.WORK_WARNING, job.handle, data))

    def complete(self, job: Assignment, result: bytes) -> None:
        """WORK_COMPLETE."""
        self._connection.write(gearman_client.about_job(wire.WORK_COMPLETE, job.handle, result))
        self._over(job)

    def fail(self, job: Assignment, reason: str, data: bytes = b"", code: int = 1) -> None:
        """WORK_EXCEPTION with the data or the reason; WORK_FAIL if there is neither."""
        text = data or reason.encode("utf-8", "replace")
        if text:
            self._connection.write(gearman_client.about_job(wire.WORK_EXCEPTION, job.handle, text))
        else:
            self._connection.write(wire.request(wire.WORK_FAIL, job.handle))
        self._over(job)

    def release(self, job: Assignment) -> None:
        """Send nothing; grab the next job."""
        self._over(job)

    async def close(self) -> None:
        """Close the connection; the server gives held jobs to other workers."""
        self._end()
        await self._connection.close()

    # Requesting jobs

    def _over(self, job: Assignment) -> None:
        if job not in self._held:
            return
        self._held.discard(job)
        if self._leaving:
            self._unregister_unheld()
        self.slots.give()
        self._grab()

    def _grab(self) -> None:
        """Send as many grabs as slots and the window allow."""
        if self._asleep or self._stopped_fetching or not self._usable:
            return
        slots = self.slots
        count = 0
        while self._grabs < self._window:
            if not slots.take():
                if not self._wants_slot:
                    self._wants_slot = True
                    slots.wait(self._slot_free)
                break
            self._grabs += 1
            count += 1
        if count:
            self._connection.write(gearman_client.GRAB * count)

    def _slot_free(self) -> None:
        self._wants_slot = False
        if self._asleep or self._stopped_fetching or not self._usable or self._grabs >= self._window:
            self.slots.pass_on()
            return
        self._grab()

    def _sleep(self) -> None:
        """Sleep until the server wakes this worker."""
        if self._stopped_fetching or not self._usable:
            return
        if self._empty_wake_ups >= _EMPTY_WAKE_UPS:
            self._empty_wake_ups = 0
            self._asleep = True
            self._later("pause", _EMPTY_WAKE_UP_PAUSE, self._wake)
            return
        self._asleep = True
        self._slept_at = asyncio.get_running_loop().time()
        self._connection.write(gearman_client.PRE_SLEEP)

    def _wake(self) -> None:
        self._asleep = False
        self._grab()

    def _poll_later(self) -> None:
        self._later("poll", _POLL_SECONDS, self._poll)

    def _poll(self) -> None:
        """Grab without having been woken."""
        if self._asleep:
            self._wake()
        self._poll_later()

    def _send_heartbeat(self) -> None:
        self._connection.write(wire.request(wire.ECHO_REQ))

    def _later(self, name: str, seconds: float, call: Callable[[], None]) -> None:
        self._timers[name] = asyncio.get_running_loop().call_later(seconds, call)

    def _unregister_unheld(self) -> None:
        held = {job.function for job in self._held}
        for function in self._leaving - held:
            self._leaving.discard(function)
            self._connection.write(wire.request(wire.CANT_DO, function))

    # Called with what arrives

    def _received(self, data: bytes) -> None:
        answers = self._answers
        answers.feed(data)
        while True:
            kind = answers.next()
            if kind < 0:
                break
            if kind == wire.JOB_ASSIGN_UNIQ:
                self._assigned(answers.data[answers.start : answers.end])
            elif kind == wire.NO_JOB:
                self._no_job()
            elif kind == wire.NOOP:
                self._woken()
            elif kind == wire.ECHO_RES:
                self._connection.answered()
            elif kind == wire.WORK_FAIL:
                self._revoked(answers.data[answers.start : answers.end])
            elif kind == wire.OPTION_RES:
                self._announced(answers.data[answers.start : answers.end])
            elif self._authentication.pending:
                self._authentication.received(answers.data[answers.start : answers.end])
            elif kind == wire.ERROR:
                self._refused(answers.data[answers.start : answers.end])
        self._grab()

    def _refused(self, body: bytes) -> None:
        """Log a missing right. Other errors are about a job that the server took back meanwhile, or the option."""
        code, _, text = body.partition(b"\0")
        if code == _NOT_ALLOWED:
            _log.warning("%s refused: %s", self.address, text.decode("utf-8", "replace"))

    def _assigned(self, body: bytes) -> None:
        fields = body.split(b"\0", 3)
        if len(fields) < 4 or not self._grabs:
            raise WireError("INVALID_PACKET", "the server sent an invalid JOB_ASSIGN_UNIQ")
        handle, function, unique, payload = fields
        self._answered()
        self._empty_wake_ups = 0
        if self._window < self.slots.total:
            self._window = min(self._window * 2, self.slots.total)
        job = Assignment(function, payload, handle, unique)
        job.attempt, self._attempt = self._attempt, 1
        self._held.add(job)
        self._heartbeat.begin()
        self.runner.assigned(job)

    def _announced(self, body: bytes) -> None:
        option, _, value = body.partition(b"\0")
        if option == wire.GEARTRAIN_WORKER:
            self._heartbeat.set_lease(float(value))
        elif option == wire.GEARTRAIN_ATTEMPT:
            self._attempt = int(value)

    def _revoked(self, handle: bytes) -> None:
        for job in [job for job in self._held if job.handle == handle]:
            self.runner.revoked(job)

    def _no_job(self) -> None:
        if not self._grabs:
            return
        self._window = 1
        self._answered()
        if not self._grabs:
            self._sleep()
        self.slots.give()

    def _answered(self) -> None:
        self._grabs -= 1
        if not self._grabs and self._grabs_answered is not None and not self._grabs_answered.done():
            self._grabs_answered.set_result(None)

    def _woken(self) -> None:
        self._asleep = False
        soon = asyncio.get_running_loop().time() - self._slept_at < _EMPTY_WAKE_UP_SECONDS
        self._empty_wake_ups = self._empty_wake_ups + 1 if soon else 0

    def _broken(self, error: Exception) -> None:
        self._end()
        self.lost(error)

    def _end(self) -> None:
        """Request no more; give back the slots of grabs that will not be answered."""
        self._usable = False
        self._heartbeat.stop()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        grabs, self._grabs = self._grabs, 0
        for _ in range(grabs):
            self.slots.give()
        if self._grabs_answered is not None and not self._grabs_answered.done():
            self._grabs_answered.set_result(None)
