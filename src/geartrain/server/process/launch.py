"""Launching a server: the log, the daemon, the user and the event loop around it."""

import asyncio
import contextlib
import dataclasses
import logging
from collections.abc import Mapping, Sequence
from typing import Final

from geartrain import eventloop
from geartrain.address import Address
from geartrain.errors import GeartrainError, StoreError
from geartrain.server.config.settings import Settings
from geartrain.server.process import daemon, log, privileges
from geartrain.server.server import Server

_log = logging.getLogger("geartrain.server")


@dataclasses.dataclass(frozen=True)
class ProcessOptions:
    """How to run the process; the defaults are those of a server in the foreground."""

    daemon: bool = False  # go into the background once all doors listen
    user: str = ""  # switch to this user once all doors listen
    file_limit: int = 0  # of open files; 0: as many as the system allows
    core: bool = False  # leave a core file after a crash


FOREGROUND: Final = ProcessOptions()
NOTHING_IGNORED: Final[Mapping[str, str]] = {}


def serve(
    settings: Settings, process: ProcessOptions = FOREGROUND, ignored: Mapping[str, str] = NOTHING_IGNORED
) -> None:
    """Serve until stopped; StartError if the server cannot start.

    `ignored` has the command line options that have no effect, with the reason for each; they are logged. Every
    address that the server listens on is printed as one line on stdout.
    """
    daemon.keep_standard_streams()
    user = privileges.find_user(process.user) if process.user else None
    if process.file_limit:
        privileges.set_file_limit(process.file_limit)
    else:
        privileges.raise_file_limit()
    if process.core:
        privileges.allow_core()
    detached = daemon.detach() if process.daemon else None

    def ready(addresses: Sequence[Address]) -> None:
        if user is not None:
            privileges.become(user)
        with contextlib.suppress(OSError):  # stdout may be closed
            for address in addresses:
                print(f"listening {address}", flush=True)
        if detached is not None:
            detached(settings.log_file == log.STDERR)

    if user is not None and log.is_file(settings.log_file):
        privileges.give_file(settings.log_file, user)  # so that it can be reopened after log rotation
    lines = settings.log_lines_per_peer
    with log.opened(settings.log_file, settings.log_level, settings.log_format, lines) as output:
        for option, reason in ignored.items():
            _log.info("option has no effect", extra={"fields": {"option": option, "why": reason}})
        try:
            with asyncio.Runner(loop_factory=eventloop.best().factory) as runner:
                unwritten: Sequence[tuple[object, ...]] = ()
                while True:
                    server = Server(settings, output, user, unwritten)
                    try:
                        runner.run(server.run(ready))
                    except StoreError as error:
                        if server.is_stopping or not server.unwritten:
                            raise
                        fields = {"jobs": len(server.unwritten), "why": str(error)}
                        _log.error(
                            "cannot start with jobs that the database may lack, trying again", extra={"fields": fields}
                        )
                    else:
                        if not server.starts_anew:
                            break
                    user = None  # it has become that user already
                    unwritten = server.unwritten
                if server.unwritten:
                    fields = {"jobs": len(server.unwritten)}
                    _log.error("stopped before jobs were written that the database may lack", extra={"fields": fields})
        except GeartrainError as error:
            if output.target != log.STDERR:  # the command prints the error to stderr
                _log.critical("start failed", extra={"fields": {"why": error}})
            raise
