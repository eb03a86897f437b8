"""Answers about jobs that another server of the cluster has.

The peer's next packets are handled meanwhile, and their answers wait, so that answers keep their order.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from geartrain.doors.peer_output import HeldOutput
from geartrain.runtime.other_servers import DistantJob, JobName

if TYPE_CHECKING:
    from geartrain.doors.connection import Connection

Answer = Callable[[DistantJob | None], bytes]


def answer(connection: "Connection", name: JobName, encode: Answer) -> None:
    """Answer with what another server says of a job; with nothing if the peer may not know of it."""
    others = connection.tick_loop.others
    others.start(_answer(connection, connection.answer_later(), name, encode))


async def _answer(connection: "Connection", place: HeldOutput, name: JobName, encode: Answer) -> None:
    found: DistantJob | None = None
    try:
        found = await connection.tick_loop.others.find(name)
    finally:
        if found is not None and not connection.begin_tick().may_follow(found.function):
            found = None
        connection.answer_now(place, encode(found))
