"""One peer that speaks the draft: an application, a worker, or both at once.

The draft has no packet for errors. A peer that sends an invalid packet is disconnected, and the log says why.
"""

import asyncio
import logging
from typing import TYPE_CHECKING

from mypy_extensions import i64

from geartrain.doors.connection import PACKETS_PER_CHECK, Connection
from geartrain.doors.danga import commands, completion, request_order
from geartrain.doors.danga.watcher import DangaWatcher
from geartrain.doors.danga.worker import DangaWorker
from geartrain.doors.peer_output import HIGH_WATER
from geartrain.errors import RequestError, StoreError, WireError
from geartrain.model import Record, unpack_progress
from geartrain.runtime.other_servers import DistantJob, JobName
from geartrain.wire import danga as wire

if TYPE_CHECKING:
    from geartrain.doors.danga.door import DangaDoor


class DangaConnection(Connection):
    """A connection of the Danga door."""

    def __init__(self, door: "DangaDoor") -> None:
        super().__init__(door)
        self.danga = door
        self.reader = wire.Reader(door.limits.max_packet)
        self.count_input_of(self.reader)
        self.requests = request_order.RequestOrder(door.limits.write_limit)
        self.watcher: DangaWatcher | None = None  # made with its first sync job
        self.worker: DangaWorker | None = None  # made with its first packet of a worker
        self._lookup: asyncio.Task[None] | None = None

    def feed(self, data: bytes) -> None:
        """Give what was read to the codec."""
        self.reader.feed(data)

    def handle_packets(self) -> None:
        """Carry out the requests that have waited, and hand every complete packet to its handler."""
        reader, requests = self.reader, self.requests
        handlers = commands.BY_TYPE
        left: i64 = PACKETS_PER_CHECK
        while not (self.input_ended or self.blocked):
            if not (requests.size and requests.run_next()):
                kind = reader.next()
                if kind < 0:
                    return
                worker = self.worker
                if worker is not None and worker.is_lingering:
                    worker.end_linger()
                handlers[kind].handle(self, reader.body)
            left -= 1
            if not left or self.unsent > HIGH_WATER:
                if self.turn_over():
                    return
                left = PACKETS_PER_CHECK

    def watch(self) -> DangaWatcher:
        """Its watcher, made on first use."""
        if self.watcher is None:
            self.watcher = DangaWatcher(self)
        return self.watcher

    def work(self) -> DangaWorker:
        """Its worker, made on first use."""
        if self.worker is None:
            self.worker = DangaWorker(self)
        return self.worker

    def carry_out(self, request: request_order.Step, size: int, passes_sync_job: bool = False) -> None:
        """Carry out a request of an application now, or after those before it.

        With many waiting, an application is read no further. A worker is: its packets may end what the others wait for.
        """
        self.requests.add(request, size, passes_sync_job)
        if self.requests.size > HIGH_WATER and self.worker is None:
            self.blocked = True

    def look_up(self, handle: bytes, status: bool) -> None:
        """Answer a job_status_req or job_complete_req with the record of the job; later packets wait for that."""
        self.requests.state = request_order.LOOKUP
        self.blocked = True
        self._lookup = self.tick_loop.loop.create_task(self._answer(handle, status))

    async def _answer(self, handle: bytes, status: bool) -> None:
        try:
            distant = await self._find_elsewhere(handle)
            record = await self.danga.archive.find(handle) if distant is None else None
            if record is not None and not self._may_follow(record.function):
                record = None
            if distant is not None:
                self.begin_tick()
                self._send_distant(distant, status)
            elif status:
                self.begin_tick()
                self._send_last_status(record)
            else:
                result = await self.danga.archive.result(record) if record is not None else b""
                self.begin_tick()
                self._send_completion(record, result)
            self.requests.state = request_order.IDLE
            self.unblock()
        except StoreError as error:
            self.refuse(WireError("FAULT", f"cannot read the record of a job: {error}"))
        except Exception:
            self.handle_bug()

    async def _find_elsewhere(self, handle: bytes) -> DistantJob | None:
        """The job, if another server of the cluster has it and the peer may know of it."""
        others = self.tick_loop.others
        job = await others.find(JobName(handle=handle)) if others.exist else None
        return job if job is not None and self._may_follow(job.function) else None

    def _may_follow(self, function: bytes) -> bool:
        """Whether the peer may know of jobs of this function."""
        return self.begin_tick().may_follow(function)

    def _send_distant(self, job: DistantJob, status: bool) -> None:
        """Of a job that another server has: its progress, or that it has not ended, or was given up."""
        if status:
            self.write(wire.job_status_res(job.numerator, job.denominator, job.seconds_left))
        else:
            self.write(completion.GIVEN_UP_PACKET if job.is_dead else wire.INCOMPLETE_PACKET)

    def _send_last_status(self, record: Record | None) -> None:
        """Of a job that has ended: as its worker last announced it."""
        progress = unpack_progress(record.progress) if record is not None else None
        self.write(wire.job_status_res(*(progress or (0, 0, 0))))

    def _send_completion(self, record: Record | None, result: bytes) -> None:
        if record is None:
            self.write(wire.INCOMPLETE_PACKET)
            return
        # Sent when the record is on disk, so that the next answer is the same.
        self.acknowledge(completion.of_record(record, result), wire.INCOMPLETE_PACKET)
        if len(result) < record.full_size:
            self.log(logging.WARNING, "result was cut", f"{len(result)} of {record.full_size} bytes are kept")

    def sync_job_ended(self) -> None:
        """Carry out the requests that waited for the sync job; later, since this is inside a verb of the engine."""
        self.requests.state = request_order.IDLE
        if self.requests.size:
            self.tick_loop.loop.call_soon(self._resume)

    def _resume(self) -> None:
        if self.requests.state != request_order.LOOKUP:
            self.unblock()

    def refuse_request(self, error: RequestError) -> None:
        """Disconnect: the draft has no packet for errors."""
        self.refuse(WireError(error.code, str(error)))

    def close(self) -> None:
        """Carry out no more requests, write what is left, and close."""
        self.requests.clear()
        super().close()

    def lost(self) -> None:
        """Requeue the job that it ran, and cancel a sync job that only it waited for."""
        self.requests.clear()
        if self._lookup is not None:
            self._lookup.cancel()
        if self.worker is not None:
            self.worker.is_lingering = False
            if self.worker.lease is not None:
                self.worker.lease.end()
            self.engine.remove_worker(self.worker)
        if self.watcher is not None:
            self.engine.unwatch_all(self.watcher)

    def incomplete(self) -> tuple[int, int]:
        """Which incomplete packet is arriving, and how many bytes of it are there."""
        return (self.reader.split_packets, self.reader.incomplete_size)
