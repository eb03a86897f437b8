"""Restoring jobs: at start, every unfinished job of the store goes back into the engine."""

import asyncio
import heapq
import logging
import time
from collections.abc import Iterable, Iterator
from typing import Final

from geartrain.engine.engine import Engine
from geartrain.engine.job import LiveJob
from geartrain.engine.names import WORKFLOW
from geartrain.runtime.tick import TickLoop
from geartrain.store.contract import Store
from geartrain.store.payload_store import as_payload_store

# The event loop runs after this many jobs, so that a signal is handled in the middle of a million of them.
JOBS_PER_STEP: Final = 2000
PROGRESS_SECONDS: Final = 1.0  # between log lines about the progress

_log = logging.getLogger("geartrain.store")


async def restore_jobs(store: Store, engine: Engine, stopped: asyncio.Event) -> int:
    """Restore all unfinished jobs and return their number; end early when the server is stopped."""
    started = reported = time.monotonic()
    count = 0
    payload_store = as_payload_store(store) if engine.payloads.reader is not None else None
    if payload_store is None:
        jobs = store.jobs(LiveJob)
    else:
        jobs = payload_store.jobs_within(LiveJob, engine.payloads.has_room, WORKFLOW)
    for count, job in enumerate(_by_run_time(jobs), start=1):
        engine.restore(job)
        if count % JOBS_PER_STEP:
            continue
        await asyncio.sleep(0)
        if stopped.is_set():
            break
        if time.monotonic() - reported > PROGRESS_SECONDS:
            reported = time.monotonic()
            _log.info("restoring jobs", extra={"fields": {"jobs": count}})
    engine.settle()
    if count:
        seconds = f"{time.monotonic() - started:.1f}"
        fields = {"jobs": count, "dead": len(engine.dead), "seconds": seconds}
        _log.info("restored jobs", extra={"fields": fields})
    return count


async def end_expired(tick_loop: TickLoop) -> None:
    """End the restored jobs whose time to live passed while no server ran, before a worker can ask for them."""
    count = 0
    while ended := tick_loop.begin_tick().end_expired(JOBS_PER_STEP):
        count += ended
        await asyncio.sleep(0)
    if count:
        _log.info("restored jobs had expired", extra={"fields": {"jobs": count}})


def _by_run_time(jobs: Iterable[LiveJob]) -> Iterator[LiveJob]:
    """Sort jobs that come by id by the time at which they may run, without holding all of them.

    Most jobs may run since they were submitted, and their ids are in that order. Delayed and retried jobs wait in
    a heap until the jobs that were submitted before their time have passed.
    """
    delayed: list[LiveJob] = []
    for job in jobs:
        if job.run_at > job.submitted_at:
            heapq.heappush(delayed, job)
            continue
        while delayed and delayed[0].run_at <= job.run_at:
            yield heapq.heappop(delayed)
        yield job
    while delayed:
        yield heapq.heappop(delayed)
