"""What each packet of an application does: parse, and in its turn one engine verb and the answer."""

import functools
import logging
from typing import TYPE_CHECKING, Final

from geartrain.doors.danga import completion, turns
from geartrain.errors import QueueFullError
from geartrain.wire import danga as wire

if TYPE_CHECKING:
    from geartrain.doors.danga.connection import DangaConnection

_DOOR: Final = "danga"


def job_create_req(connection: "DangaConnection", body: bytes) -> None:
    """Create this new job. The flags are reserved, and whatever they are is overlooked."""
    wanted = wire.creation(body)
    create = _create_sync if wanted.type == wire.SYNC_WAIT else _create_async
    step = functools.partial(create, connection, wanted)
    connection.turns.take(step, len(body), passes=wanted.type != wire.SYNC_WAIT)


def job_status_req(connection: "DangaConnection", body: bytes) -> None:
    """How far along is this job? The number of seconds is the worker's, as it said it."""
    step = functools.partial(_tell_status, connection, wire.handle(body))
    connection.turns.take(step, len(body))


def job_complete_req(connection: "DangaConnection", body: bytes) -> None:
    """Is this job finished?"""
    step = functools.partial(_tell_completion, connection, wire.handle(body))
    connection.turns.take(step, len(body))


def _create_sync(connection: "DangaConnection", wanted: wire.Creation) -> None:
    try:
        job = connection.engine.submit(wanted.name, wanted.key, wanted.args, watcher=connection.watch(), door=_DOOR)
    except QueueFullError as full:
        _decline(connection, full)
        return
    connection.turns.busy = turns.STREAMING
    connection.write(wire.job_create_res(job.handle))


def _create_async(connection: "DangaConnection", wanted: wire.Creation) -> None:
    for_handle = wanted.type == wire.ASYNC_HANDLE
    try:
        job = connection.engine.submit(
            wanted.name,
            wanted.key,
            wanted.args,
            background=True,
            door=_DOOR,
            keeps_result=for_handle,
        )
    except QueueFullError as full:
        _decline(connection, full)
        return
    if for_handle:
        connection.engine.keep_result(job)
    connection.acknowledge(wire.job_create_res(job.handle), wire.REFUSED_PACKET)


def _decline(connection: "DangaConnection", full: QueueFullError) -> None:
    """There is no job, so there is no handle: the nearest that the draft has to a no."""
    connection.log(logging.WARNING, "a job was refused", str(full))
    connection.write(wire.REFUSED_PACKET)


def _tell_status(connection: "DangaConnection", handle: bytes) -> None:
    job = connection.engine.find(handle)
    progress = job.progress if job is not None else None
    said = progress[:3] if progress is not None else (0, 0, 0)
    connection.write(wire.job_status_res(*said))


def _tell_completion(connection: "DangaConnection", handle: bytes) -> None:
    engine = connection.engine
    if not handle or engine.find(handle) is not None:
        connection.write(wire.INCOMPLETE_PACKET)
    elif engine.find_dead(handle) is not None:
        connection.acknowledge(completion.GIVEN_UP_PACKET, wire.INCOMPLETE_PACKET)
    else:
        connection.inquire(handle)
