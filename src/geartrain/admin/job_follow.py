"""Following a job of another server of the cluster: its home is asked again and again, until the job has ended."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from geartrain import jsonbytes
from geartrain.admin.job_watch import JobWatchAnswer, encoded_result
from geartrain.admin.verbs import VERBS
from geartrain.admin.views import JobView
from geartrain.errors import AdminError

if TYPE_CHECKING:
    from geartrain.admin.service import Admin

_PAUSE_SECONDS: Final = 0.5
LIVE_STATES: Final = frozenset({"reserving", "scheduled", "queued", "running"})

Report = Callable[[JobView], None]


async def follow(admin: "Admin", handle: bytes, view: JobView, report: Report, wanted: Callable[[], bool]) -> JobView:
    """The job when it has ended, or when it is no longer wanted. `report` is called when its progress has changed.

    A home that does not answer may be about to be replaced, so it is asked again.
    """
    while view.state in LIVE_STATES and wanted():
        await asyncio.sleep(_PAUSE_SECONDS)
        before = view
        try:
            view = await admin.call(VERBS["job"], {"handle": handle})
        except AdminError as error:
            if error.kind != "unavailable":
                raise
            continue
        has_moved = (view.numerator, view.denominator) != (before.numerator, before.denominator)
        if has_moved and view.numerator is not None:  # not when it has ended
            report(view)
    return view


async def follow_to_result(
    admin: "Admin", arguments: dict[str, Any], report: Report, wanted: Callable[[], bool]
) -> JobWatchAnswer | None:
    """The answer of `watch` about a job of another server; None if it is no longer wanted."""
    view: JobView = await admin.call(VERBS["find"], arguments)
    handle = jsonbytes.decode(view.handle)
    if view.numerator is not None:
        report(view)
    view = await follow(admin, handle, view, report, wanted)
    if view.state in LIVE_STATES:
        return None
    if view.state == "dead":
        return JobWatchAnswer(view)
    result = await admin.call(VERBS["result"], {"handle": handle, "part": view.state != "done"})
    return JobWatchAnswer(view, encoded_result(result))
