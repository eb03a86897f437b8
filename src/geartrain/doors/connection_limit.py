"""How many connections all doors may have together; those beyond are refused as soon as they are accepted."""

import errno
import logging
import os
from collections.abc import Callable
from typing import Final

LOG_SECONDS: Final = 10.0  # between two log lines, however many connections are refused

_log = logging.getLogger("geartrain.doors")


class ConnectionLimit:
    """One per server, shared by its doors."""

    def __init__(self, most: int, count: Callable[[], int], clock: Callable[[], float]) -> None:
        self.most = most
        self._count = count
        self._clock = clock  # seconds that never run back
        self._refused = 0  # since the last log line
        self._logged_at = -LOG_SECONDS
        self._exhausted_at = -LOG_SECONDS  # when it was logged that there is no descriptor

    def admits(self, door: str, peer: str) -> bool:
        """Whether another connection may be opened; if not, that is logged, but not for each of them."""
        if self._count() < self.most:
            return True
        self._refused += 1
        now = self._clock()
        if now - self._logged_at >= LOG_SECONDS:
            fields = {"limit": self.most, "refused": self._refused, "door": door, "peer": peer}
            _log.warning("connection limit reached, peer refused", extra={"fields": fields})
            self._logged_at = now
            self._refused = 0
            self.check_descriptors()  # connections that arrive at the same moment may have taken the last one
        return False

    def text(self) -> str:
        """The reason, for the peer."""
        return f"the server has {self.most} connections, which is its limit"

    def check_descriptors(self) -> None:
        """Log it if the process has no file descriptor left: the event loop then refuses connections without a word."""
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError as error:
            now = self._clock()
            if error.errno in (errno.EMFILE, errno.ENFILE) and now - self._exhausted_at >= LOG_SECONDS:
                self._exhausted_at = now
                fields = {"why": error.strerror, "connections": self._count()}
                _log.error("out of file descriptors, connections refused", extra={"fields": fields})
