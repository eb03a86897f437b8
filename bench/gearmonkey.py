"""GearMonkey jobs per second through our library: on a real Redis, and at our door, in one run.

    python -m bench.gearmonkey [seconds]

One worker process and one client process per place. The client keeps a window of jobs in flight, so that what is
measured is the work and not the wait. A real Redis keeps the jobs in memory; our door is measured with its jobs in
memory and with its jobs on disk.
"""

import contextlib
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from geartrain.client import gearmonkey
from tests.support import redis_server, serving

FUNCTION = "bench"
WINDOW = 50
PAYLOAD = b"x" * 64


def work(url: str, stop: "multiprocessing.synchronize.Event") -> None:
    with gearmonkey.Worker(url, lambda payload: payload) as worker:
        worker.accept(FUNCTION)
        while not stop.is_set():
            worker.run_one(0.1)


def measure(url: str, seconds: float) -> tuple[float, int]:
    """Jobs per second from submit to finish, and how many there were."""
    stop = multiprocessing.Event()
    worker = multiprocessing.Process(target=work, args=(url, stop))
    worker.start()
    finished = 0
    with gearmonkey.Client(url) as client:
        client.run(FUNCTION, PAYLOAD, options=gearmonkey.OPT_BLOCKING, timeout=30)  # the worker is there
        began = time.perf_counter()
        while time.perf_counter() - began < seconds:
            numbers = [client.run(FUNCTION, PAYLOAD) for _ in range(WINDOW)]
            client.run(FUNCTION, PAYLOAD, options=gearmonkey.OPT_BLOCKING, timeout=30)
            if client.get(FUNCTION, numbers[0]).output != PAYLOAD:
                raise RuntimeError("a job has not been done right")
            finished += WINDOW + 1
        rate = finished / (time.perf_counter() - began)
    stop.set()
    worker.join()
    return rate, finished


@contextlib.contextmanager
def door(store: str) -> Iterator[str]:
    with serving.serve("--store", store, "--listen", f"gearmonkey://{serving.HOST}:0") as server:
        yield server.url


def main(seconds: float) -> None:
    with redis_server.serve() as redis:
        print(f"a real Redis, in memory      {measure(redis.url, seconds)[0]:8.0f} jobs per second", flush=True)
    with door("memory") as url:
        print(f"our door, in memory          {measure(url, seconds)[0]:8.0f} jobs per second", flush=True)
    with tempfile.TemporaryDirectory() as folder, door(f"sqlite://{Path(folder)}/jobs.db") as url:
        print(f"our door, on disk            {measure(url, seconds)[0]:8.0f} jobs per second", flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 5.0)
