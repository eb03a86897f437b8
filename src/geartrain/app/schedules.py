"""Telling a server an app's schedules, so that it keeps exactly those.

What an app no longer has is removed, and what it never had is left alone: its schedules are those whose names begin
with its own name and a slash.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from geartrain.app.server_control import ServerControl
from geartrain.backoff import ReconnectDelay
from geartrain.errors import AdminError, ClientError

if TYPE_CHECKING:
    from geartrain.app.app import App

_KEPT: Final = ("expression", "function", "payload", "priority", "unique", "timezone")

_log = logging.getLogger("geartrain.app")


async def keep(app: "App", steering: ServerControl, url: str) -> None:
    """Until the server has heard it; one that cannot be reached is asked again."""
    delay = ReconnectDelay()
    while True:
        try:
            if await steering.available():
                await tell(app, steering)
            elif app.crons:
                _log.warning("%s keeps no schedules, those of %s will not run there", url, app.name)
            return
        except AdminError as error:
            _log.error("%s does not take the schedules of %s: %s", url, app.name, error)
            return
        except (OSError, ClientError) as error:
            _log.warning("%s cannot be told the schedules of %s yet: %s", url, app.name, error)
        await asyncio.sleep(delay.next())


async def tell(app: "App", steering: ServerControl) -> None:
    """Set what is new or different, and remove what is gone."""
    theirs: dict[str, dict[str, Any]] = {cron["name"]: cron for cron in await steering.ask("crons")}
    for cron in app.crons.values():
        wish = cron.wish()
        known = theirs.get(cron.name, {})
        if any(known.get(name) != wish[name] for name in _KEPT):
            await steering.ask("cron_set", **wish)
            _log.info("the schedule %s is kept by the server: %s", cron.name, cron.expression)
    for name in theirs:
        if name.startswith(f"{app.name}/") and name not in app.crons:
            await steering.ask("cron_remove", name=name)
            _log.info("the schedule %s is gone", name)
