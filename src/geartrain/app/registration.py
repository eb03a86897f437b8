"""What a worker tells each of its servers when it starts: the app's schedules, and the limits of its tasks."""

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from geartrain.app import schedules, task_limits
from geartrain.app.server_control import ServerControl
from geartrain.backoff import ReconnectDelay
from geartrain.errors import AdminError, AuthenticationError, ClientError

if TYPE_CHECKING:
    from geartrain.app.app import App
    from geartrain.app.task import Task

_log = logging.getLogger("geartrain.app")


async def register(app: "App", tasks: Sequence["Task[Any, Any]"], control: ServerControl, url: str) -> None:
    """Register with one server; retry until it can be reached. The worker works whether it is refused or not."""
    delay = ReconnectDelay()
    warned = False
    while True:
        try:
            if await control.available():
                await _register_limits(app, tasks, control, url)
                await schedules.register(app, control, url)
            else:
                schedules.warn_unknown(app, url)
                task_limits.warn_unknown(tasks, url, app.name)
            return
        except AuthenticationError:
            return  # the worker ends with this error
        except (OSError, ClientError) as error:
            if not warned:
                warned = True
                _log.warning("cannot register schedules and limits, retrying: %s, app %s: %s", url, app.name, error)
        await asyncio.sleep(delay.next())


async def _register_limits(app: "App", tasks: Sequence["Task[Any, Any]"], control: ServerControl, url: str) -> None:
    try:
        await task_limits.declare(tasks, control)
    except AdminError as error:
        task_limits.warn_refused(tasks, url, app.name, error)
