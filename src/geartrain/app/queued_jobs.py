"""Whether jobs are left for a worker that ends when there are none: its servers are asked."""

from collections.abc import Sequence
from typing import Any

from geartrain import jsonbytes
from geartrain.app.server_control import ServerControl
from geartrain.app.task import Task
from geartrain.client import gearmand
from geartrain.errors import AdminError, UnsupportedError


async def count(control: ServerControl, url: str, tasks: Sequence[Task[Any, Any]]) -> int:
    """How many jobs of these tasks are queued on a server. Jobs that are scheduled for later do not count."""
    if await control.available():
        return sum([await _queued(control, task) for task in tasks])
    if not await gearmand.is_gearmand(url):
        raise UnsupportedError(f"{url} cannot say whether jobs are left: it is no Geartrain, or has `control` off")
    names = {task.name for task in tasks}
    functions = (await gearmand.functions(url, ""))["items"]
    return sum(function["queued"] for function in functions if function["name"] in names)


async def _queued(control: ServerControl, task: Task[Any, Any]) -> int:
    try:
        function = await control.ask("function", name=jsonbytes.encode(task.function_name))
    except AdminError as error:
        if error.kind != "not-found":
            raise
        return 0
    queued: int = 0 if function["paused"] else function["queued"]
    return queued
