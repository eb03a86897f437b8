"""An HTTP load: clients on connections that are kept alive, with their own few lines of HTTP.

It costs about what the Gearman load of `bench/load.py` costs, since answers are counted and not taken apart. So rates
of the two doors under the same number of clients say what the doors cost.
"""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench import contenders, crowd, load
from bench.contenders import Place
from bench.crowd import PAYLOAD

JOBS_PER_BATCH = 100
# Once in each answer, and in no payload.
CREATED, OK = b"HTTP/1.1 201 ", b"HTTP/1.1 200 "
REFUSALS = (b"HTTP/1.1 4", b"HTTP/1.1 5")
HEAD = (
    b"POST %b HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nAccept: */*\r\n"
    b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
)
ECHO_SERVER = Path(__file__).with_name("http_echo.py")


def post(path: bytes, body: bytes) -> bytes:
    """A request."""
    return HEAD % (path, len(body), body)


def job(function: bytes, more: bytes = b"") -> bytes:
    return b'{"function":"%b","payload":"%b"%b}' % (function, PAYLOAD, more)


class Submits(crowd.Crowd):
    """Background submits by `clients` clients with `window` each in flight; nobody works on them."""

    def __init__(self, port: int, function: bytes, clients: int, window: int, answer: bytes = CREATED) -> None:
        super().__init__()
        request = post(b"/api/v1/jobs", job(function))
        for _ in range(clients):
            self.add_asker(crowd.Asker(port, self.tally, window, request, answer, REFUSALS))


class Batches(crowd.Crowd):
    """Background submits, so many with each request."""

    def __init__(self, port: int, function: bytes, clients: int, window: int) -> None:
        super().__init__()
        jobs = b",".join([job(function)] * JOBS_PER_BATCH)
        request = post(b"/api/v1/jobs/batch", b'{"jobs":[%b]}' % jobs)
        for _ in range(clients):
            self.add_asker(crowd.Asker(port, self.tally, window, request, OK, REFUSALS))

    def run(self, jobs: int) -> float:
        """Jobs per second, in whole batches."""
        return super().run(-(-jobs // JOBS_PER_BATCH)) * JOBS_PER_BATCH


class Load(crowd.Crowd):
    """Foreground round trips by `clients` clients, through `workers` workers at the Gearman door."""

    def __init__(self, port: int, gearman: int, function: bytes, clients: int, workers: int) -> None:
        super().__init__()
        self._workers = load.Drain(gearman, function, workers)
        self._workers.begin()
        self._workers.until(lambda: self._workers.asleep >= workers)
        for worker in self._workers.workers:
            self.add(worker)
        request = post(b"/api/v1/jobs", job(function, b',"background":false,"wait":60'))
        for _ in range(clients):
            self.add_asker(crowd.Asker(port, self.tally, 1, request, OK, REFUSALS))

    def close(self) -> None:
        self._workers.close()
        super().close()


@contextlib.contextmanager
def echo() -> Iterator[Place]:
    """The bare echo server."""
    server = subprocess.Popen(
        [sys.executable, str(ECHO_SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        port = int(server.stdout.readline())
        yield Place((f"http://{contenders.serving.HOST}:{port}",), server.pid)
    finally:
        server.stdin.close()
        server.stdout.close()
        server.wait(load.crowd.PATIENCE)
