"""systemd's notify protocol (`Type=notify`): reports start, reload and stop, without systemd's library.

systemd names a datagram socket in NOTIFY_SOCKET; a message is lines of `NAME=value`. A name that begins with `@` is in
the abstract namespace. Without the variable, nothing is sent.
"""

import logging
import os
import socket
import time
from collections.abc import Mapping

_log = logging.getLogger("geartrain.server")


class Notifier:
    """Sends notifications to the service manager, if there is one."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        name = (os.environ if environment is None else environment).get("NOTIFY_SOCKET", "")
        self._address = "\0" + name[1:] if name.startswith("@") else name

    def ready(self, status: str) -> None:
        self._send("READY=1", f"STATUS={status}", f"MAINPID={os.getpid()}")

    def reloading(self) -> None:
        """Report the start of a reload; call `ready` at its end."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self, status: str) -> None:
        self._send("STOPPING=1", f"STATUS={status}")

    def _send(self, *lines: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify_socket:
                notify_socket.connect(self._address)
                notify_socket.sendall("\n".join(lines).encode())
        except OSError as error:
            _log.warning("cannot notify systemd", extra={"fields": {"why": error.strerror}})
