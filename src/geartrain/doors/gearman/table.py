"""Which handler each packet type has. What is not in the table is not for a server to receive."""

from typing import TYPE_CHECKING, Final

from geartrain.doors.gearman import client_packets as client
from geartrain.doors.gearman import worker_packets as worker
from geartrain.doors.gearman.handler import Function, Handler, Plain
from geartrain.model import Priority
from geartrain.wire import gearman as wire

if TYPE_CHECKING:
    from geartrain.doors.gearman.connection import GearmanConnection


def _not_expected(connection: "GearmanConnection", data: bytes, start: int, end: int) -> None:
    connection.error("INVALID_COMMAND", "Command not expected")


_OFTEN: Final[dict[int, Handler]] = {
    wire.SUBMIT_JOB: client.Submit(wire.SUBMIT_JOB, Priority.NORMAL, background=False),
    wire.GRAB_JOB: worker.Grab(wire.GRAB_JOB),
    wire.WORK_COMPLETE: worker.WorkComplete(),
    wire.SUBMIT_JOB_BG: client.Submit(wire.SUBMIT_JOB_BG, Priority.NORMAL, background=True),
    wire.SUBMIT_JOB_HIGH: client.Submit(wire.SUBMIT_JOB_HIGH, Priority.HIGH, background=False),
    wire.GRAB_JOB_UNIQ: worker.Grab(wire.GRAB_JOB_UNIQ),
    wire.SUBMIT_JOB_HIGH_BG: client.Submit(wire.SUBMIT_JOB_HIGH_BG, Priority.HIGH, background=True),
    wire.SUBMIT_JOB_LOW: client.Submit(wire.SUBMIT_JOB_LOW, Priority.LOW, background=False),
    wire.SUBMIT_JOB_LOW_BG: client.Submit(wire.SUBMIT_JOB_LOW_BG, Priority.LOW, background=True),
    wire.GRAB_JOB_ALL: worker.Grab(wire.GRAB_JOB_ALL),
}

_SELDOM: Final[dict[int, Function]] = {
    wire.CAN_DO: worker.can_do,
    wire.CANT_DO: worker.cant_do,
    wire.RESET_ABILITIES: worker.reset_abilities,
    wire.PRE_SLEEP: worker.pre_sleep,
    wire.WORK_STATUS: worker.work_status,
    wire.WORK_FAIL: worker.work_fail,
    wire.GET_STATUS: client.get_status,
    wire.ECHO_REQ: client.echo,
    wire.SET_CLIENT_ID: worker.set_client_id,
    wire.CAN_DO_TIMEOUT: worker.can_do_timeout,
    wire.ALL_YOURS: worker.all_yours,
    wire.WORK_EXCEPTION: worker.work_exception,
    wire.OPTION_REQ: client.set_option,
    wire.WORK_DATA: worker.work_data,
    wire.WORK_WARNING: worker.work_warning,
    wire.SUBMIT_JOB_SCHED: client.submit_by_calendar,
    wire.SUBMIT_JOB_EPOCH: client.submit_later,
    wire.SUBMIT_REDUCE_JOB: client.submit_reduce(wire.SUBMIT_REDUCE_JOB, background=False),
    wire.SUBMIT_REDUCE_JOB_BG: client.submit_reduce(wire.SUBMIT_REDUCE_JOB_BG, background=True),
    wire.GET_STATUS_UNIQUE: client.get_status_unique,
}


def _handler(kind: int) -> Handler:
    return _OFTEN.get(kind) or Plain(_SELDOM.get(kind, _not_expected))


HANDLERS: Final = [_handler(kind) for kind in range(wire.LAST_TYPE + 1)]
