"""Which store a setting names, and taking over the jobs that it has kept."""

import logging
import os
import time
import urllib.parse
from collections.abc import Mapping
from pathlib import Path

from geartrain.engine.engine import Engine
from geartrain.errors import StartError
from geartrain.model import Job
from geartrain.store.contract import Store
from geartrain.store.memory import MemoryStore
from geartrain.store.sqlite import SqliteStore

MEMORY = "memory"
SQLITE = "sqlite"
FILE_NAME = "jobs.db"
PROGRESS_SECONDS = 1.0

_log = logging.getLogger("geartrain.store")


def make(store: str, result_limit: int) -> Store:
    """The store that a setting names; it is not opened yet."""
    url = store or usual(os.environ)
    if url == MEMORY:
        return MemoryStore()
    parts = urllib.parse.urlsplit(url)
    path = urllib.parse.unquote(parts.path)
    if parts.scheme != SQLITE or parts.netloc or not path.strip("/"):
        raise StartError(f"there is no store {store!r}; use {MEMORY}, or {SQLITE}:///path/of/{FILE_NAME}")
    return SqliteStore(path, result_limit)


def usual(environment: Mapping[str, str]) -> str:
    """Where jobs are kept when nobody says: in systemd's folder for the service, else in the user's own."""
    service = environment.get("STATE_DIRECTORY", "").partition(":")[0]
    if service:
        return f"{SQLITE}://{service}/{FILE_NAME}"
    home = environment.get("XDG_STATE_HOME") or os.path.join(environment.get("HOME", "/"), ".local/state")
    return f"{SQLITE}://{Path(home).absolute() / 'geartrain' / FILE_NAME}"


def take_over(store: Store, engine: Engine) -> int:
    """Put every job that the store has kept back to its place in the engine; how many there were."""
    began = said = time.monotonic()
    jobs: list[Job] = []
    for job in store.jobs():
        jobs.append(job)
        if time.monotonic() - said > PROGRESS_SECONDS:
            said = time.monotonic()
            _log.info("reading jobs", extra={"fields": {"jobs": len(jobs)}})
    jobs.sort(key=_place)
    for number, job in enumerate(jobs):
        engine.restore(job)
        if not number % 10_000 and time.monotonic() - said > PROGRESS_SECONDS:
            said = time.monotonic()
            _log.info("queueing jobs", extra={"fields": {"jobs": number, "of": len(jobs)}})
    if jobs:
        seconds = f"{time.monotonic() - began:.1f}"
        fields = {"jobs": len(jobs), "dead": len(engine.dead), "seconds": seconds}
        _log.info("jobs from before are back", extra={"fields": fields})
    return len(jobs)


def _place(job: Job) -> float:
    return job.run_at
