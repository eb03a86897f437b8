"""Which jobs a submission waits for, by their handles.

Jobs that have ended are not waited for: the archive says how they ended. It is asked in a thread, and jobs may end
meanwhile, so it is asked until every job that is left is one that the engine has.
"""

from collections.abc import Sequence
from typing import Final

from geartrain.admin.base import printable
from geartrain.engine.engine import Engine
from geartrain.engine.job import LiveJob
from geartrain.errors import AdminError
from geartrain.model import JobState, Record, pack_parents
from geartrain.rights import SUBMIT, Identity
from geartrain.runtime.records import RecordArchive

CANCEL: Final = "cancel"
RUN: Final = "run"
MOST_PARENTS: Final = 100_000


async def resolve(
    engine: Engine, archive: RecordArchive, handles: Sequence[bytes], on_failure: str, identity: Identity | None
) -> bytes:
    """The jobs with these handles as the engine wants them (`pack_parents`); submit without awaiting anything else.

    Whoever may submit jobs of a function may wait for them.
    """
    if len(handles) > MOST_PARENTS:
        raise AdminError("bad-request", f"a job waits for {MOST_PARENTS:,} jobs at most, not for {len(handles):,}")
    ended: set[bytes] = set()
    while True:
        ids = []
        for handle in handles:
            job = engine.find(handle) or engine.find_dead(handle)
            if job is not None:
                _require_right(job, identity)
                ids.append(job.id)
            elif handle not in ended:
                await _require_good_end(archive, handle, on_failure, identity)
                ended.add(handle)
                break
        else:
            return pack_parents(ids, on_failure == RUN)


def _require_right(job: LiveJob | Record, identity: Identity | None) -> None:
    if identity is not None:
        identity.require(SUBMIT, job.function)


async def _require_good_end(archive: RecordArchive, handle: bytes, on_failure: str, identity: Identity | None) -> None:
    record = await archive.find(handle)
    if record is None:
        raise AdminError(
            "not-found",
            f"there is no job {printable(handle)} to wait for; in a cluster, it must belong to the server that accepts "
            "the job which waits for it",
        )
    _require_right(record, identity)
    if record.state != JobState.DONE and on_failure == CANCEL:
        state = JobState(record.state).name.lower()
        raise AdminError(
            "conflict",
            f"job {printable(handle)} ended as {state}, so nothing runs after it; with on_failure run it would",
        )
