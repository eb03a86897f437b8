"""Which handler each command has, and whether only workers may send it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from geartrain.doors.periodic import client_commands as client
from geartrain.doors.periodic import worker_commands as worker
from geartrain.wire import periodic as wire

if TYPE_CHECKING:
    from geartrain.doors.periodic.connection import PeriodicConnection

Handler = Callable[["PeriodicConnection", bytes, wire.Arguments], None]


class Row(NamedTuple):
    """A command that a server receives."""

    handler: Handler
    for_workers: bool = False
    # SUCCESS goes out before the command is carried out: a grab's must come before the job. Commands whose answer
    # depends on what they do, or on which job they mean, confirm by themselves.
    confirmed_first: bool = False


COMMANDS: Final[dict[int, Row]] = {
    wire.PING: Row(client.ping),
    wire.SUBMIT_JOB: Row(client.submit),
    wire.RUN_JOB: Row(client.run),
    wire.RECV_DATA: Row(client.receive),
    wire.STATUS: Row(client.status),
    wire.DROP_FUNC: Row(client.drop_function),
    wire.REMOVE_JOB: Row(client.remove),
    wire.DUMP: Row(client.dump),
    wire.LOAD: Row(client.load),
    wire.SHUTDOWN: Row(client.shutdown),
    wire.CONFIG_GET: Row(client.get_config),
    wire.CONFIG_SET: Row(client.set_config),
    wire.CAN_DO: Row(worker.can_do, for_workers=True, confirmed_first=True),
    wire.CANT_DO: Row(worker.cant_do, for_workers=True, confirmed_first=True),
    wire.BROADCAST: Row(worker.broadcast, for_workers=True, confirmed_first=True),
    wire.SLEEP: Row(worker.sleep, for_workers=True),
    wire.GRAB_JOB: Row(worker.grab, for_workers=True, confirmed_first=True),
    wire.WORK_DONE: Row(worker.done, for_workers=True),
    wire.WORK_FAIL: Row(worker.fail, for_workers=True),
    wire.SCHED_LATER: Row(worker.later, for_workers=True),
    wire.WORK_DATA: Row(worker.data, for_workers=True, confirmed_first=True),
    wire.ACQUIRE: Row(worker.acquire, for_workers=True),
    wire.RELEASE: Row(worker.release, for_workers=True, confirmed_first=True),
    wire.JOB_ASSIGNED: Row(worker.assigned, for_workers=True),
    wire.JOB_UNASSIGNED: Row(worker.unassigned, for_workers=True),
}
