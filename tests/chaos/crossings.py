"""How many jobs were run by a worker of another server than the one at which they were submitted."""

import threading


class Crossings:
    """Threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ports: dict[bytes, int] = {}  # by payload: of the server at which a job was submitted
        self.count = 0
        self.first = threading.Event()  # since the last `begin`

    def begin(self) -> None:
        """Count anew: there is nobody who submits or works."""
        self._ports.clear()
        self.count = 0
        self.first.clear()

    def submit(self, payload: bytes, port: int) -> None:
        with self._lock:
            self._ports[payload] = port

    def assign(self, payload: bytes, port: int) -> None:
        """A worker of the server at this port was given the job."""
        with self._lock:
            if self._ports.get(payload, port) != port:
                self.count += 1
                self.first.set()
