"""Following a job of another server of the cluster: its reports and its end come over the link.

If the link is lost, or the job has another home by now, it is looked for again.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from geartrain import jsonbytes
from geartrain.admin.job_watch import JobEnd, JobEndWatcher, JobWatchAnswer, encoded_result
from geartrain.admin.verbs import VERBS
from geartrain.admin.views import SHOWN_BYTES, STATES, JobView
from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Watcher
from geartrain.engine.job import LiveJob, Progress
from geartrain.errors import AdminError
from geartrain.runtime.other_servers import JobName

if TYPE_CHECKING:
    from geartrain.admin.service import Admin

_PAUSE_SECONDS: Final = 0.5
LIVE_STATES: Final = frozenset({"reserving", "scheduled", "blocked", "queued", "running"})


class FollowedJob(NamedTuple):
    """A job that was followed, as it is now."""

    view: JobView
    result: bytes | None = None  # the whole one, or what its worker sent with the failure, if the end was seen


class _Relay(JobEndWatcher):
    """Passes the reports of a job on, and waits for its end."""

    __slots__ = ("_reports", "over")

    def __init__(self, engine: Engine, reports: Watcher) -> None:
        super().__init__(engine)
        self._reports = reports
        # None: the link was lost.
        self.over: asyncio.Future[JobEnd | None] = asyncio.get_running_loop().create_future()

    def progress(self, job: LiveJob, progress: Progress) -> None:
        self._reports.progress(job, progress)

    def data(self, job: LiveJob, data: bytes) -> None:
        self._reports.data(job, data)

    def warning(self, job: LiveJob, data: bytes) -> None:
        self._reports.warning(job, data)

    def ended(self, end: JobEnd) -> None:
        if not self.over.done():
            self.over.set_result(end)

    def lose(self) -> None:
        """Nothing more is heard of the job."""
        if not self.over.done():
            self.over.set_result(None)


async def follow(
    admin: "Admin", handle: bytes, view: JobView, reports: Watcher, wanted: Callable[[], bool]
) -> FollowedJob:
    """The job when it has ended, or when it is no longer wanted. `reports` hears what its worker reports.

    While the job has no home that answers, it is looked for again.
    """
    while view.state in LIVE_STATES and wanted():
        end = await _end(admin, handle, reports, wanted)
        try:
            view = await admin.call(VERBS["job"], {"handle": handle})
        except AdminError as error:
            if end is not None:  # of a job of which nothing is kept
                return FollowedJob(_ended_view(view, end), end.result)
            if error.kind != "unavailable" and await admin.tick_loop.others.find(JobName(handle=handle)) is None:
                raise
            continue  # its home does not answer, or is gone, and nobody has taken the job over yet
        if end is not None:
            view = view if view.state not in LIVE_STATES else _ended_view(view, end)
            return FollowedJob(view, end.result)
    return FollowedJob(view)


async def _end(admin: "Admin", handle: bytes, reports: Watcher, wanted: Callable[[], bool]) -> JobEnd | None:
    """The end of a job; None if it was not seen, because the link was lost or the job is no longer wanted."""
    tick_loop = admin.tick_loop
    relay = _Relay(tick_loop.engine, reports)
    try:
        if await tick_loop.others.watch(JobName(handle=handle), relay, relay.lose) is None:
            await asyncio.sleep(_PAUSE_SECONDS)
            return None
        while not relay.over.done() and wanted():
            await asyncio.wait([relay.over], timeout=_PAUSE_SECONDS)
        return relay.over.result() if relay.over.done() else None
    finally:
        tick_loop.begin_tick().unwatch_all(relay)


def _ended_view(view: JobView, end: JobEnd) -> JobView:
    """A job as it was seen last, with its end."""
    result = end.result
    return msgspec.structs.replace(
        view,
        state=STATES[end.job.state],
        finished_at=end.at,
        numerator=None,
        denominator=None,
        reason=end.job.reason,
        code=end.job.code,
        result=None if result is None else jsonbytes.encode(result, SHOWN_BYTES),
        result_size=None if result is None else len(result),
    )


async def follow_to_result(
    admin: "Admin", arguments: dict[str, Any], reports: Watcher, wanted: Callable[[], bool]
) -> JobWatchAnswer | None:
    """The answer of `watch` about a job of another server; None if it is no longer wanted."""
    view: JobView = await admin.call(VERBS["find"], arguments)
    handle = jsonbytes.decode(view.handle)
    view, result = await follow(admin, handle, view, reports, wanted)
    if view.state in LIVE_STATES:
        return None
    if view.state == "dead":
        return JobWatchAnswer(view)
    if result is None:
        result = await admin.call(VERBS["result"], {"handle": handle, "part": view.state != "done"})
    return JobWatchAnswer(view, encoded_result(result))
