"""One peer that speaks the draft: an application, a worker, or both at once.

The draft has no packet for errors. Whoever sends what makes no sense is disconnected, and the log says why.
"""

import asyncio
import logging
from typing import TYPE_CHECKING

from geartrain.doors.connection import Connection
from geartrain.doors.danga import completion, table, turns
from geartrain.doors.danga.watcher import DangaWatcher
from geartrain.doors.danga.worker import DangaWorker
from geartrain.errors import StoreError, WireError
from geartrain.wire import danga as wire

if TYPE_CHECKING:
    from geartrain.doors.danga.door import DangaDoor


class DangaConnection(Connection):
    """Reads packets, and hands each to its handler."""

    def __init__(self, door: "DangaDoor") -> None:
        super().__init__(door)
        self.danga = door
        self.reader = wire.Reader(door.limits.max_packet)
        self.turns = turns.Turns(door.limits.write_limit)
        self.watcher: DangaWatcher | None = None  # made when it first creates a job that it waits for
        self.worker: DangaWorker | None = None  # made when it first speaks as a worker
        self._inquiry: asyncio.Task[None] | None = None

    def feed(self, data: bytes) -> None:
        """Give what was read to the codec."""
        self.reader.feed(data)

    def handle_packets(self) -> None:
        """Hand every complete packet to its handler."""
        reader = self.reader
        handlers = table.HANDLERS
        while not self.input_ended:
            kind = reader.next()
            if kind == wire.MORE:
                return
            handlers[kind](self, reader.body)

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

    def inquire(self, handle: bytes) -> None:
        """Ask the archive what came of a job, and tell the application in its turn."""
        self.turns.busy = turns.ASKING
        self._inquiry = self.tick_loop.loop.create_task(self._answer(handle))

    async def _answer(self, handle: bytes) -> None:
        try:
            record = await self.danga.archive.find(handle)
            self.tick_loop.begin_tick()
            if record is None:
                self.write(wire.INCOMPLETE_PACKET)
            else:
                # What was told once stays true: it is told when the record is on disk.
                self.acknowledge(completion.of_record(record), wire.INCOMPLETE_PACKET)
                if len(record.result) >= self.danga.options.result_limit:
                    self.log(logging.WARNING, "a result may be cut", "it is as long as result_limit allows")
            self.turns.proceed()
        except StoreError as error:
            self.refuse(WireError("FAULT", f"the record of a job cannot be read: {error}"))
        except Exception:
            self.handle_bug()

    def proceed(self) -> None:
        """Go on with what waited for its sync job; inside another peer's verb, which no fault of ours may end."""
        try:
            self.turns.proceed()
        except Exception:
            self.handle_bug()

    def close(self) -> None:
        """Answer no more requests, write what is left, and close."""
        self.turns.clear()
        super().close()

    def lost(self) -> None:
        """Its job goes back to its queue, and the job that only it waited for is dropped."""
        self.turns.clear()
        if self._inquiry is not None:
            self._inquiry.cancel()
        if self.worker is not None:
            self.engine.remove_worker(self.worker)
        if self.watcher is not None:
            self.engine.unwatch_all(self.watcher)

    def incomplete(self) -> tuple[int, int]:
        """Which incomplete packet is arriving, and how many bytes of it are there."""
        return (self.reader.split_packets, self.reader.incomplete_size)
