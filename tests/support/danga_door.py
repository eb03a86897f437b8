"""The door of the 2005 draft without sockets: transports that record what is written, and one archived job."""

import asyncio

from geartrain.address import parse
from geartrain.doors.danga.door import DangaDoor
from geartrain.doors.danga.shared_port import SharedPortDoor
from geartrain.doors.door import Door, Limits
from geartrain.doors.gearman import door as gearman
from geartrain.model import Record
from geartrain.runtime.records import RecordArchive
from geartrain.runtime.tick import TickLoop
from tests.support.transport import PausingTransport


class OneRecord:
    """An archive of one job, which does not answer at once."""

    async def find(self, handle: bytes) -> Record | None:
        await asyncio.sleep(0)
        if handle != b"H:t:old":
            return None
        return Record(1, handle, b"f", b"", 1, 3, 1.0, 2.0, 5.5, 1, "danga", "danga", b"", 0, "", b"kept")

    async def result(self, record: Record) -> bytes:
        return record.result


class Control:
    """A server that ignores a shutdown."""

    log_level_name = "ERROR"

    def shutdown(self, graceful: bool) -> None: ...

    def not_ready(self) -> str:
        return ""


def open_peer(door: Door) -> PausingTransport:
    """A new connection; what its peer sends is given to `protocol`."""
    transport = PausingTransport()
    transport.protocol = door.connect(parse("danga://127.0.0.1"))
    transport.protocol.connection_made(transport)
    return transport


def settle(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop until the archive has answered and everything is flushed."""
    for _ in range(6):
        loop.call_soon(loop.stop)
        loop.run_forever()


def made(tick_loop: TickLoop, shared: bool = False, archive: RecordArchive | None = None) -> Door:
    """A door for the draft, or the Gearman door that answers it too."""
    danga = DangaDoor(tick_loop, Limits(), archive or OneRecord())
    if not shared:
        return danga
    return SharedPortDoor(gearman.GearmanDoor(tick_loop, Limits(), gearman.Options("test"), Control()), danga)
