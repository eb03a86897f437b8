"""Which store a setting names, and taking over the jobs that it has kept."""

import asyncio
import heapq
import logging
import os
import time
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from geartrain.engine.engine import Engine
from geartrain.engine.job import LiveJob
from geartrain.errors import StartError
from geartrain.store.contract import Store
from geartrain.store.memory import MemoryStore
from geartrain.store.sqlite import SqliteStore

MEMORY = "memory"
SQLITE = "sqlite"
FILE_NAME = "jobs.db"
PROGRESS_SECONDS = 1.0
JOBS_AT_ONCE = 2000

_log = logging.getLogger("geartrain.store")


def make(store: str, result_limit: int) -> Store:
    """The store that a setting names; it is not opened yet."""
    url = store or default_url(os.environ)
    if url == MEMORY:
        return MemoryStore()
    parts = urllib.parse.urlsplit(url)
    path = urllib.parse.unquote(parts.path)
    if parts.scheme != SQLITE or parts.netloc or not path.strip("/"):
        raise StartError(f"there is no store {store!r}; use {MEMORY}, or {SQLITE}:///path/of/{FILE_NAME}")
    return SqliteStore(path, result_limit)


def default_url(environment: Mapping[str, str]) -> str:
    """Where jobs are kept when nobody says: in systemd's folder for the service, else in the user's own."""
    service = environment.get("STATE_DIRECTORY", "").partition(":")[0]
    if service:
        return f"{SQLITE}://{service}/{FILE_NAME}"
    home = environment.get("XDG_STATE_HOME") or os.path.join(environment.get("HOME", "/"), ".local/state")
    return f"{SQLITE}://{Path(home).absolute() / 'geartrain' / FILE_NAME}"


async def restore_jobs(store: Store, engine: Engine, stopped: asyncio.Event) -> int:
    """Put every job that the store has kept back to its place in the engine; how many there were.

    The loop comes round now and then, so that a signal is heard in the middle of a million jobs.
    """
    began = said = time.monotonic()
    count = 0
    for count, job in enumerate(_in_order(store.jobs(LiveJob)), start=1):
        engine.restore(job)
        if count % JOBS_AT_ONCE:
            continue
        await asyncio.sleep(0)
        if stopped.is_set():
            break
        if time.monotonic() - said > PROGRESS_SECONDS:
            said = time.monotonic()
            _log.info("taking over jobs from before", extra={"fields": {"jobs": count}})
    if count:
        seconds = f"{time.monotonic() - began:.1f}"
        fields = {"jobs": count, "dead": len(engine.dead), "seconds": seconds}
        _log.info("jobs from before are back", extra={"fields": fields})
    return count


def _in_order(jobs: Iterable[LiveJob]) -> Iterator[LiveJob]:
    """Jobs that come by id, given by time.

    Nearly all were to run when they were submitted, and are in order already. Those that were put off or put
    back are held until the jobs that were submitted before their time have passed.
    """
    held: list[LiveJob] = []
    for job in jobs:
        if job.run_at > job.submitted_at:
            heapq.heappush(held, job)
            continue
        while held and held[0].run_at <= job.run_at:
            yield heapq.heappop(held)
        yield job
    while held:
        yield heapq.heappop(held)
