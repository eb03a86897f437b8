"""One Gearman peer: client, worker, admin, or all of these at once."""

from typing import TYPE_CHECKING

from mypy_extensions import i64

from geartrain.doors.connection import PACKETS_PER_CHECK, Connection
from geartrain.doors.gearman import admin_commands, commands
from geartrain.doors.gearman.watcher import GearmanWatcher
from geartrain.doors.gearman.worker import GearmanWorker
from geartrain.doors.peer_output import HIGH_WATER
from geartrain.errors import LineError, WireError
from geartrain.wire import gearman as wire

if TYPE_CHECKING:
    from geartrain.doors.gearman.door import GearmanDoor


class GearmanConnection(Connection):
    """Packets and lines on one stream."""

    def __init__(self, door: "GearmanDoor") -> None:
        super().__init__(door)
        self.gearman = door
        self.reader = wire.Reader(door.limits.max_packet)
        self.count_input_of(self.reader)
        self.client_id = b""
        self.wants_exceptions = door.options.exceptions
        self.watcher: GearmanWatcher | None = None  # made with its first foreground job
        self.worker: GearmanWorker | None = None  # made with its first packet of a worker

    def feed(self, data: bytes) -> None:
        """Give what was read to the codec."""
        self.reader.feed(data)

    def handle_packets(self) -> None:
        """Hand every complete packet to its handler. The hottest loop of the server: nothing may be added to it."""
        reader = self.reader
        handlers = commands.HANDLERS
        left: i64 = PACKETS_PER_CHECK
        while True:
            kind = reader.next()
            if kind < 0:
                return
            worker = self.worker
            if worker is not None and worker.grab:
                worker.end_linger()
            if kind:
                handlers[kind].handle(self, reader.data, reader.start, reader.end)
                left -= 1
                if left and self.unsent <= HIGH_WATER:
                    continue
            else:
                admin_commands.handle(self, reader.data[reader.start : reader.end])
            if self.turn_over():
                return
            left = PACKETS_PER_CHECK

    def watch(self) -> GearmanWatcher:
        """Its watcher, made on first use."""
        watcher = self.watcher
        if watcher is None:
            watcher = self.watcher = GearmanWatcher(self)
        return watcher

    def work(self) -> GearmanWorker:
        """Its worker, made on first use."""
        worker = self.worker
        if worker is None:
            worker = self.worker = GearmanWorker(self)
            worker.name = self.client_id
        return worker

    def descriptor(self) -> int:
        """The file descriptor of its socket, by which `workers` lists it."""
        socket = self.transport.get_extra_info("socket")
        return int(socket.fileno()) if socket is not None else -1

    def error(self, code: str, text: str) -> None:
        """Answer with ERROR."""
        self.write(wire.about_job(wire.ERROR, code.encode(), text.encode()))

    def send_error(self, error: WireError) -> None:
        """ERROR for a packet, an ERR line for a line."""
        if isinstance(error, LineError):
            self.write(admin_commands.error_line(error.code, error.text))
        else:
            self.error(error.code, error.text)

    def surplus_error(self, why: str) -> bytes:
        """ERROR, although the peer may speak in lines: nothing is known of it yet."""
        return wire.about_job(wire.ERROR, b"LIMIT_REACHED", why.encode())

    def internal_error(self) -> WireError:
        """The error that is sent to the peer after a bug."""
        return WireError("UNKNOWN_STATE", "The server failed to handle this packet")

    def lost(self) -> None:
        """Requeue the jobs that it ran, and cancel foreground jobs that only it waited for."""
        if self.worker is not None:
            self.worker.grab = 0
            if self.worker.lease is not None:
                self.worker.lease.end()
            self.engine.remove_worker(self.worker)
        if self.watcher is not None:
            self.engine.unwatch_all(self.watcher)

    def incomplete(self) -> tuple[int, int]:
        """Which incomplete packet is arriving, and how many bytes of it are there."""
        return (self.reader.split_packets, self.reader.incomplete_size)

    def timed_out(self) -> None:
        """The peer began a packet or a line and sent no more of it."""
        error, what = (LineError, "line") if self.reader.in_line else (WireError, "packet")
        seconds = self.door.limits.stall_timeout
        self.refuse(error("TIMEOUT", f"A {what} was begun and did not go on for {seconds:g} seconds"))
