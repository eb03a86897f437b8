"""Reading payloads of cold jobs from the store, in a thread of its own: neither reads nor commits wait for the others.

If a read fails, the jobs keep their places and their queue waits; other queues go on. It is read again every second.
"""

import logging
from collections.abc import Callable
from typing import Final

from geartrain.engine.interfaces import PayloadReader
from geartrain.engine.job import LiveJob
from geartrain.engine.queue import JobQueue
from geartrain.runtime.tick import TickLoop
from geartrain.runtime.timers import DelayedCall
from geartrain.runtime.work_thread import WorkThread
from geartrain.store.payload_store import PayloadStore

_RETRY_SECONDS: Final = 1.0

_log = logging.getLogger("geartrain.store")


class StorePayloads(PayloadReader):
    """Reads for the engine. `start` it before the first job can become cold."""

    def __init__(self, store: PayloadStore, tick_loop: TickLoop, thread: WorkThread | None = None) -> None:
        self._store = store
        self._tick_loop = tick_loop
        self._read_thread = thread if thread is not None else WorkThread("payloads")
        self._retries: list[DelayedCall] = []
        self._is_stopped = False
        self.failing = False  # the last read failed
        self.reads = 0
        self.bytes_read = 0

    def start(self, budget: int) -> None:
        """Let jobs become cold when the payloads in memory exceed so many bytes."""
        self._read_thread.start()
        payloads = self._tick_loop.engine.payloads
        payloads.budget = budget
        payloads.reader = self

    def stop(self) -> None:
        """Read no more."""
        self._is_stopped = True
        self._tick_loop.engine.payloads.reader = None
        for retry in self._retries:
            retry.cancel()
        self._read_thread.end()

    def read(self, queue: JobQueue, jobs: list[LiveJob]) -> None:
        """Read the payloads of cold jobs of a queue."""
        self._read_thread.put(lambda: self._read(queue, jobs))

    def _read(self, queue: JobQueue, jobs: list[LiveJob]) -> None:
        """Runs in the thread. If not all can be read, those before the first one that cannot are."""
        try:
            payloads: list[bytes | None] = self._payloads(jobs)
        except Exception as error:
            why = str(error) or type(error).__name__
            payloads = self._first_payloads(jobs)
            if not payloads:
                self._call(lambda: self._failed(queue, jobs[0], why))
                return
        self._call(lambda: self._arrived(queue, jobs[: len(payloads)], payloads))

    def _payloads(self, jobs: list[LiveJob]) -> list[bytes | None]:
        read = self._store.job_payloads([job.id for job in jobs])
        return [read.get(job.id) for job in jobs]

    def _first_payloads(self, jobs: list[LiveJob]) -> list[bytes | None]:
        payloads: list[bytes | None] = []
        for job in jobs:
            try:
                payloads += self._payloads([job])
            except Exception:  # it is reported when this job is the first
                break
        return payloads

    def _call(self, function: Callable[[], None]) -> None:
        if not self._is_stopped:
            self._tick_loop.loop.call_soon_threadsafe(function)

    def _arrived(self, queue: JobQueue, jobs: list[LiveJob], payloads: list[bytes | None]) -> None:
        if self._is_stopped:
            return
        if self.failing:
            self.failing = False
            _log.warning("payloads can be read again")
        self.reads += 1
        self.bytes_read += sum([len(payload) for payload in payloads if payload is not None])
        engine = self._tick_loop.begin_tick()
        for job in engine.payloads.arrived(queue, jobs, payloads):
            fields = {"job": job.handle.decode("utf-8", "backslashreplace")}
            _log.error("payload is gone; job cancelled", extra={"fields": fields})
        self._tick_loop.schedule_tick()

    def _failed(self, queue: JobQueue, job: LiveJob, why: str) -> None:
        if self._is_stopped:
            return
        if not self.failing:
            self.failing = True
            fields = {
                "job": job.handle.decode("utf-8", "backslashreplace"),
                "function": job.function.decode("utf-8", "backslashreplace"),
                "why": why,
            }
            _log.error("payloads cannot be read; jobs wait", extra={"fields": fields})
        self._retries = [retry for retry in self._retries if retry.callback is not None]
        self._retries.append(self._tick_loop.timers.call_later(_RETRY_SECONDS, lambda: self._read_again(queue, job)))

    def _read_again(self, queue: JobQueue, job: LiveJob) -> None:
        self._tick_loop.begin_tick().payloads.failed(queue, job.function)
        self._tick_loop.schedule_tick()
