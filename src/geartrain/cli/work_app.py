"""`geartrain work module:app`: the tasks of an App, in this process or in a pool of processes."""

import asyncio
import logging
import sys

from geartrain.cli import work_log
from geartrain.cli.supervisor import Supervisor
from geartrain.cli.worker_process import AppSummary, WorkerRun, WorkSettings

_log = logging.getLogger("geartrain.pool")


def run(settings: WorkSettings, processes: int, reload: bool) -> int:
    """Run the App; returns the exit code."""
    options = settings.options
    if processes > 1 or reload or options.max_tasks or options.max_memory:
        return _run_pool(settings, processes, reload)
    worker = WorkerRun(settings)
    announce(settings, worker.summary, 1)
    worker.run()
    return 0


def _run_pool(settings: WorkSettings, processes: int, reload: bool) -> int:
    work_log.WorkLog(settings.log_level, settings.log_json)

    async def supervise() -> int:
        return await Supervisor(
            settings, processes, reload, lambda summary: announce(settings, summary, processes)
        ).run()

    return asyncio.run(supervise())


def announce(settings: WorkSettings, summary: AppSummary, processes: int) -> None:
    """Say what is run, where, and how much of it at a time: a few lines for people, or an event of the JSON log."""
    slots = settings.options.concurrency
    if settings.log_json:
        fields = {
            "app": summary.app, "tasks": " ".join(summary.tasks), "servers": " ".join(summary.urls),
            "processes": processes, "slots": slots * processes,
        }  # fmt: skip
        _log.info("working", extra={"fields": fields})
        return
    per_process = f" ({processes} processes, {slots} each)" if processes > 1 else ""
    print(
        f"app      {summary.app} ({settings.target})\n"
        f"tasks    {', '.join(summary.tasks)}\n"
        f"servers  {', '.join(summary.urls)}\n"
        f"slots    {slots * processes}{per_process}",
        file=sys.stderr,
        flush=True,
    )
