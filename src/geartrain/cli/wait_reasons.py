"""Why a job waits, from what a server says of the job, its function and its workers."""

import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from geartrain import jsonbytes
from geartrain.cli import formatting, progress

Ask = Callable[..., Awaitable[Any]]

_WORKERS_PER_PAGE: Final = 1000


async def explain(ask: Ask, handle: Any) -> dict[str, Any]:
    """The reasons for which a job waits, in plain words; none if it does not wait."""
    job = await ask("job", handle=handle)
    answer = {"handle": job["handle"], "function": job["function"], "state": job["state"]}
    if job["state"] not in ("queued", "scheduled", "blocked"):
        return {**answer, "waits": False, "reasons": [_not_waiting(job)]}
    function = await ask("function", name=job["function"])
    reasons = _of_job(job, time.time()) + _of_function(function)
    limit = _of_limit(job)
    reasons += limit
    if job["state"] == "queued" and function["workers"] and not function["paused"] and not limit:
        reasons += _of_workers(function, await _workers(ask, job["function"]))
    return {**answer, "waits": True, "since": job["submitted_at"], "reasons": reasons}


def _not_waiting(job: dict[str, Any]) -> str:
    if job["state"] == "running":
        since = formatting.local_time(job["started_at"]) if job["started_at"] else "a moment"
        return f"it does not wait: the worker {_text(job['worker'])} has been running it since {since}"
    reason = f": {job['reason']}" if job["reason"] else ""
    return f"it does not wait: it has ended, and is {job['state']}{reason}"


def _of_job(job: dict[str, Any], now: float) -> list[str]:
    reasons = []
    if job["state"] == "scheduled" and job["run_at"]:
        left = max(job["run_at"] - now, 0)
        reasons.append(
            f"it is scheduled for {formatting.local_time(job['run_at'])}, in {formatting.duration(left)}; the verb "
            "hasten runs it now"
        )
    if job["state"] == "blocked":
        reasons.append(f"it waits for {job['waits_for']}")
    if job["trials"]:
        last = job["trials"][-1]
        reasons.append(
            f"{progress.count_of(len(job['trials']), 'attempt')} did not end it; the last one: {last['why']}"
        )
    return reasons


def _of_limit(job: dict[str, Any]) -> list[str]:
    """A job that is above a limit waits whether workers are free or not."""
    waits_for = job.get("waits_for", "")
    if not waits_for.endswith(")"):
        return []
    return [f"it is above a limit, and waits for {waits_for}; the verb limit_running changes limits"]


def _of_function(function: dict[str, Any]) -> list[str]:
    reasons = []
    if function["paused"]:
        reasons.append("its function is paused: no job of it is handed out until the verb resume")
    if not function["workers"]:
        reasons.append("no connected worker runs its function: start one")
    return reasons


def _of_workers(function: dict[str, Any], workers: list[dict[str, Any]]) -> list[str]:
    """A queued job whose function has workers waits for one of them."""
    idle = [worker for worker in workers if worker["idle"]]
    if idle:
        return [f"{len(idle)} of {len(workers)} workers wait for a job, so one of them gets it now: ask again"]
    busy = [worker for worker in workers if worker["running_since"]]
    longest = min((worker["running_since"] for worker in busy), default=None)
    reasons = [
        f"none of the {function['workers']} workers of its function is free; {function['running']} jobs of it run, and "
        f"{function['queued']} wait, this one among them: a higher priority comes first, then the older job"
    ]
    if longest is not None:
        reasons.append(f"the longest of the jobs that its workers run began at {formatting.local_time(longest)}")
    return reasons


async def _workers(ask: Ask, function: Any) -> list[dict[str, Any]]:
    """The workers of exactly this function, among the first that are found by its name."""
    search = jsonbytes.decode(function).decode("utf-8", "replace")
    page = await ask("workers", search=search, limit=_WORKERS_PER_PAGE)
    return [worker for worker in page["items"] if function in worker["functions"]]


def _text(value: Any) -> str:
    return jsonbytes.decode(value).decode("utf-8", "replace")
