"""Jobs that only a server's memory has: the database lost them, and the server was fenced before it wrote them again.

A database that fails over to a standby which was behind has lost the last commits. Every server then writes all its
jobs again. One that is too slow for that, or stands still, is fenced: the others take over what the database has, and
the rest would be gone. So the process takes its jobs along when it starts anew. It asks the database which of them are
there, or have ended, and submits the others once more, with ids of its new node and with their old handles.

Such a job gives up its unique key: another job may have been accepted with it meanwhile, and both were acknowledged.
"""

import logging
from collections.abc import Sequence
from typing import Any, Final

from geartrain.engine.job import LiveJob
from geartrain.model import JobState, pack_parents, unpack_parents
from geartrain.runtime.committer import Committer
from geartrain.runtime.tick import TickLoop
from geartrain.store import rows
from geartrain.store.shared import SharedStore

_ASKED_AT_ONCE: Final = 10_000  # jobs

_log = logging.getLogger("geartrain.cluster")


async def submit_again(
    unwritten: Sequence[tuple[Any, ...]], store: SharedStore, committer: Committer, tick_loop: TickLoop
) -> int:
    """Submit those of these jobs that the store has no trace of; return how many there were. They are durable then."""
    found: dict[int, JobState] = {}
    ids = [row[0] for row in unwritten]
    for start in range(0, len(ids), _ASKED_AT_ONCE):
        part = ids[start : start + _ASKED_AT_ONCE]
        found |= await committer.call(lambda part=part: store.states(part))  # type: ignore[misc]
    lost = [rows.job(row, LiveJob) for row in unwritten if row[0] not in found]
    if lost:
        engine = tick_loop.begin_tick()
        new_ids = {job.id: engine.reserve_id() for job in lost}
        for job in sorted(lost, key=lambda job: job.run_at):
            job.id, job.unique = new_ids[job.id], b""
            if job.after:
                parents = unpack_parents(job.after)
                job.after = pack_parents([new_ids.get(id, id) for id in parents.ids], parents.runs_anyway)
            engine.journal.accepted(job)
            engine.restore(job)
        await tick_loop.durable()
        _log.warning("submitted jobs again that the database had lost", extra={"fields": {"jobs": len(lost)}})
    return len(lost)
