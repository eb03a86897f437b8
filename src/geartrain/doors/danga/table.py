"""Which function handles which packet."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from geartrain.doors.danga import client_packets as client
from geartrain.doors.danga import worker_packets as worker
from geartrain.wire import danga as wire

if TYPE_CHECKING:
    from geartrain.doors.danga.connection import DangaConnection

Handler = Callable[["DangaConnection", bytes], None]

# All that may be sent to a server: the reader has refused the others.
HANDLERS: Final[dict[int, Handler]] = {
    wire.WORKER_CONNECT: worker.worker_connect,
    wire.WORKER_DISCONNECT: worker.worker_disconnect,
    wire.WORKER_SLEEP: worker.worker_sleep,
    wire.JOB_CREATE_REQ: client.job_create_req,
    wire.JOB_ASSIGN_REQ: worker.job_assign_req,
    wire.JOB_STATUS_ANNOUNCE: worker.job_status_announce,
    wire.JOB_STATUS_REQ: client.job_status_req,
    wire.JOB_COMPLETE_ANNOUNCE: worker.job_complete_announce,
    wire.JOB_COMPLETE_REQ: client.job_complete_req,
}
