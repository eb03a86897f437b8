"""Telling systemd how the start, a reload and the stop go (`Type=notify`), without its library.

systemd names a datagram socket in NOTIFY_SOCKET; a message is lines of `NAME=value`. A name that begins with
`@` is in the abstract namespace. Without the variable nothing is told, and nobody minds.
"""

import logging
import os
import socket
import time
from collections.abc import Mapping

_log = logging.getLogger("geartrain.server")


class Notifier:
    """Speaks to the service manager, if there is one."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        name = (os.environ if environment is None else environment).get("NOTIFY_SOCKET", "")
        self._address = "\0" + name[1:] if name.startswith("@") else name

    def ready(self, status: str) -> None:
        self._tell("READY=1", f"STATUS={status}", f"MAINPID={os.getpid()}")

    def reloading(self) -> None:
        """To be followed by `ready`; systemd wants to know when the reload began."""
        self._tell("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self, status: str) -> None:
        self._tell("STOPPING=1", f"STATUS={status}")

    def _tell(self, *lines: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as teller:
                teller.connect(self._address)
                teller.sendall("\n".join(lines).encode())
        except OSError as error:
            _log.warning("the service manager could not be told", extra={"fields": {"why": error.strerror}})
