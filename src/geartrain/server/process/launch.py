"""From settings to a serving process: what surrounds the server proper."""

import asyncio
import contextlib
import dataclasses
import logging
from collections.abc import Sequence

from geartrain import eventloop
from geartrain.address import Address
from geartrain.errors import GeartrainError
from geartrain.server.config.settings import Settings
from geartrain.server.process import daemon, log, privileges
from geartrain.server.server import Server

_log = logging.getLogger("geartrain.server")


@dataclasses.dataclass(frozen=True)
class Process:
    """What kind of process to be; the defaults are those of a server in the foreground."""

    daemon: bool = False  # go into the background once the doors are open
    user: str = ""  # become this user once the doors are open
    file_limit: int = 0  # how many files may be open; 0 means as many as the system allows
    core: bool = False  # leave a core file after a crash


FOREGROUND = Process()


def serve(settings: Settings, process: Process = FOREGROUND, notices: Sequence[str] = ()) -> None:
    """Serve until told to stop; `notices` are logged at the start. A StartError if it cannot start.

    Every open door gets one line on stdout, so that whoever started the server knows where it is.
    """
    daemon.keep_standard_streams()
    account = privileges.find_user(process.user) if process.user else None
    if process.file_limit:
        privileges.set_file_limit(process.file_limit)
    else:
        privileges.raise_file_limit()
    if process.core:
        privileges.allow_core()
    detached = daemon.detach() if process.daemon else None

    def ready(addresses: Sequence[Address]) -> None:
        if account is not None:
            privileges.become(account)
        with contextlib.suppress(OSError):  # nobody reads stdout
            for address in addresses:
                print(f"listening {address}", flush=True)
        if detached is not None:
            detached(settings.log_file == log.STDERR)

    with log.opened(settings.log_file, settings.log_level, settings.log_format) as journal:
        for notice in notices:
            _log.info(notice)
        try:
            with asyncio.Runner(loop_factory=eventloop.best().factory) as runner:
                runner.run(Server(settings, journal, account).run(ready))
        except GeartrainError as error:
            if journal.target != log.STDERR:  # there, the command says it
                _log.critical("not started", extra={"fields": {"why": error}})
            raise
