"""How many connections all doors may have together; those beyond are refused as soon as they are accepted."""

import logging
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
        return False

    def text(self) -> str:
        """The reason, for the peer."""
        return f"the server has {self.most} connections, which is its limit"
