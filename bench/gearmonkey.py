"""GearMonkey jobs per second through our library: on a real Redis, and at our door, in one run.

    python -m bench.gearmonkey [seconds]

One worker process and one client process per place, and three ways to submit: many jobs before the client looks at the
results, one job after the other, and many at once from one event loop. In memory, and with all jobs on disk before they
are acknowledged: our store, and Redis with `appendfsync always`.
"""

import asyncio
import contextlib
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from geartrain.client import gearmonkey
from tests.support import redis_server, serving

FUNCTION = "bench"
WINDOW = 50
IN_FLIGHT = 64
PAYLOAD = b"x" * 64
_PATIENCE: Final = 30

Way = Callable[[str, float], int]  # submits for so many seconds; how many jobs were done


def work(url: str, stop: "multiprocessing.synchronize.Event") -> None:
    with gearmonkey.Worker(url, lambda payload: payload) as worker:
        worker.accept(FUNCTION)
        while not stop.is_set():
            worker.run_one(0.1)


def batches(url: str, seconds: float) -> int:
    """Many submissions, one after the other; then the client waits for the last of them."""
    finished = 0
    ends = time.perf_counter() + seconds
    with gearmonkey.Client(url) as client:
        while time.perf_counter() < ends:
            numbers = [client.run(FUNCTION, PAYLOAD) for _ in range(WINDOW)]
            client.run(FUNCTION, PAYLOAD, options=gearmonkey.OPT_BLOCKING, timeout=_PATIENCE)
            _check(client.get(FUNCTION, numbers[0]))
            finished += WINDOW + 1
    return finished


def one_by_one(url: str, seconds: float) -> int:
    """The next job is submitted when the client has the result."""
    finished = 0
    ends = time.perf_counter() + seconds
    with gearmonkey.Client(url) as client:
        while time.perf_counter() < ends:
            number = client.run(FUNCTION, PAYLOAD, options=gearmonkey.OPT_BLOCKING, timeout=_PATIENCE)
            _check(client.get(FUNCTION, number))
            finished += 1
    return finished


def in_flight(url: str, seconds: float) -> int:
    """The same from many coroutines of one client."""

    async def submit(client: gearmonkey.AsyncClient, ends: float) -> int:
        finished = 0
        while time.perf_counter() < ends:
            number = await client.run(FUNCTION, PAYLOAD, options=gearmonkey.OPT_BLOCKING, timeout=_PATIENCE)
            _check(await client.get(FUNCTION, number))
            finished += 1
        return finished

    async def submit_all() -> int:
        async with gearmonkey.AsyncClient(url) as client:
            ends = time.perf_counter() + seconds
            return sum(await asyncio.gather(*(submit(client, ends) for _ in range(IN_FLIGHT))))

    return asyncio.run(submit_all())


WAYS: Final[dict[str, Way]] = {
    f"{WINDOW} submitted at a time": batches,
    "one after the other": one_by_one,
    f"{IN_FLIGHT} in flight": in_flight,
}


def measure(url: str, seconds: float, way: Way) -> tuple[float, int]:
    """Jobs per second from submit to finish, and how many there were."""
    stop = multiprocessing.Event()
    worker = multiprocessing.Process(target=work, args=(url, stop))
    worker.start()
    with gearmonkey.Client(url) as client:
        client.run(FUNCTION, PAYLOAD, options=gearmonkey.OPT_BLOCKING, timeout=_PATIENCE)  # the worker is there
    began = time.perf_counter()
    finished = way(url, seconds)
    rate = finished / (time.perf_counter() - began)
    stop.set()
    worker.join()
    return rate, finished


def _check(job: gearmonkey.Job) -> None:
    if job.output != PAYLOAD:
        raise RuntimeError("a job has not been done right")


@contextlib.contextmanager
def door(store: str) -> Iterator[str]:
    with serving.serve("--store", store, "--listen", f"gearmonkey://{serving.HOST}:0") as server:
        yield server.url


@contextlib.contextmanager
def redis(*options: str) -> Iterator[str]:
    with redis_server.serve(options=options) as server:
        yield server.url


def main(seconds: float) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        urls = {
            "Redis, in memory": redis(),
            "our door, in memory": door("memory"),
            "Redis, on disk": redis("--appendonly", "yes", "--appendfsync", "always"),
            "our door, on disk": door(f"sqlite://{Path(folder)}/jobs.db"),
        }
        places = {name: stack.enter_context(opened) for name, opened in urls.items()}
        for title, way in WAYS.items():
            for name, url in places.items():
                print(f"{title:24} {name:20} {measure(url, seconds, way)[0]:8.0f} jobs per second", flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 5.0)
