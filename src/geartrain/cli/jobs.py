"""`geartrain jobs`: list jobs, live and finished."""

import os
import sys
import time
from typing import Annotated, Any, Final

import typer

from geartrain import jsonbytes
from geartrain.cli import exit_codes, formatting, job_filter, local_store, progress, remote, tables
from geartrain.errors import AdminError, ServerGoneError
from geartrain.failure_reasons import summary
from geartrain.job_query import STATES, JobQuery
from geartrain.maintenance import job_history, store_file
from geartrain.server.config import load
from geartrain.server.config.settings import TABLE

EPILOG = f"""
**Which jobs.** Jobs that are scheduled, queued, running or dead, and finished background jobs, as long as their records
are kept (settings `keep_records_for`, by default one day, and `keep_records`).

**Source.** The server at `--server` or `{remote.URL_VARIABLE}`, else at the default address. With `--store` or
`--config`, or if no server answers, the store's file is read; a server may be using it. A store does not record which
jobs are running: there, *queued* includes them.

**Clusters.** The jobs of all servers that share a store are listed, with the server that has each; `--local` lists
those of the one that is asked.

{job_filter.TIMES}
{exit_codes.EPILOG}
**Examples**

- `geartrain jobs` lists the newest jobs

- `geartrain jobs --handle H:lap:17` shows one job

- `geartrain jobs --state failed --since 1d` lists the jobs that failed since yesterday, with their reasons

- `geartrain jobs --reason "KeyError: 'order-17'"` lists the jobs that failed in the same way, whichever the order

- `geartrain jobs --function mail --since 2026-11-01 --until 2026-12-01 --limit 100000`

- `geartrain jobs --state dead --json | jq -r .reason` prints one JSON object per line
"""

_COLUMNS: Final = ("HANDLE", "FUNCTION", "STATE", "SUBMITTED", "STARTED", "TOOK", "ATTEMPTS", "CODE", "OUTCOME")
_LONGEST_OUTCOME: Final = 60
_LONGEST_NAME: Final = 40
_SEARCHED: Final = ("handle", "function", "unique")


def jobs(
    function: job_filter.Function = "",
    state: job_filter.State = None,
    search: job_filter.Search = "",
    door: job_filter.Door = "",
    reason: job_filter.Reason = "",
    since: job_filter.Since = "",
    until: job_filter.Until = "",
    handle: Annotated[str, typer.Option(metavar="HANDLE", help="Only this job.", show_default=False)] = "",
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Show at most N jobs, the newest.")] = 50,
    server: remote.OptionalServer = None,
    local: remote.Local = False,
    store: local_store.Store = None,
    config: local_store.Config = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """List jobs: what ran, when, and with what result or error, and what is still to run."""
    query = job_filter.query(
        function=function,
        state=state,
        search=search,
        door=door,
        reason=reason,
        since=since,
        until=until,
        limit=limit,
    )
    records = _select(os.fsencode(handle), query, server, local, store, config)
    if handle:
        records = [job for job in records if _matches(job, query)]
    tables.print_lines(map(tables.json_line, records) if json else _table(records))
    if json:
        return
    if not records:
        print("no jobs match", file=sys.stderr)
    elif len(records) == limit:
        print(f"only the newest {limit:,} are shown; use --limit for more", file=sys.stderr)


def _select(
    handle: bytes, query: JobQuery, server: str | None, local: bool, store: str | None, config: str | None
) -> list[dict[str, Any]]:
    """From the server or from the file, whichever the options name."""
    if server is not None and not (store or config):
        return _from_server(handle, query, server, local)
    file_named = store or config or any(map(os.environ.get, (TABLE["store"].variable, load.CONFIG_VARIABLE)))
    if not file_named:
        try:
            return _from_server(handle, query, remote.DEFAULT_URL, local)
        except ServerGoneError:
            print("geartrain: no server answers; reading its store", file=sys.stderr)
    return _from_file(handle, query, store, config)


def _from_file(handle: bytes, query: JobQuery, store: str | None, config: str | None) -> list[dict[str, Any]]:
    file = store_file.existing(local_store.settings(store, config))
    notices = progress.Notices(progress.ProgressLine("reading"))
    if handle:
        entries = job_history.find(file, handle, time.time(), notices)
    else:
        entries = job_history.search(file, query, time.time(), notices)
    notices.end()
    return [{name: _plain(value) for name, value in entry._asdict().items()} for entry in entries]


def _from_server(handle: bytes, query: JobQuery, server: str, local: bool) -> list[dict[str, Any]]:
    if handle:
        try:
            return [remote.ask(server, "job", handle=os.fsdecode(handle))]
        except AdminError as error:
            if error.kind != "not-found":
                raise
            return []
    return remote.with_client(server, lambda client: _matching(client, query, local))


def _matches(job: dict[str, Any], query: JobQuery) -> bool:
    """Whether a job that was found by its handle is also what the other options select."""
    time = job["finished_at"] or job["submitted_at"]
    return (
        (query.state is None or job["state"] == query.state.name.lower())
        and (not query.function or jsonbytes.decode(job["function"]) == query.function)
        and (not query.door or job["door"] == query.door)
        and (not query.search or any(query.search in jsonbytes.decode(job[name]) for name in _SEARCHED))
        and query.matches_reason(STATES[job["state"]], job["reason"])
        and (not query.since or time >= query.since)
        and (not query.until or time < query.until)
    )


async def _matching(client: Any, query: JobQuery, local: bool) -> list[dict[str, Any]]:
    return [job async for job in job_filter.matching(client, query, local)]


def _plain(value: Any) -> Any:
    """A value as `--json` prints it. An unknown time is null."""
    if isinstance(value, bytes):
        return jsonbytes.encode(value)
    if isinstance(value, float):
        return value or None
    return value


def _table(records: list[dict[str, Any]]) -> list[str]:
    if not records:
        return []
    head, rows = tables.with_server(_COLUMNS, map(_row, records), records)
    return tables.table(head, rows, state="STATE")


def _row(job: dict[str, Any]) -> tuple[str, ...]:
    over = bool(job["finished_at"])
    took = f"{job['finished_at'] - job['started_at']:.1f}s" if over and job["started_at"] else "-"
    return (
        formatting.value(job["handle"], _LONGEST_NAME), formatting.value(job["function"], _LONGEST_NAME),
        str(job["state"]),
        formatting.local_time(job["submitted_at"]), formatting.local_time(job["started_at"]),
        took, str(job["attempts"]),
        str(job["code"]) if over or job["code"] else "-", _outcome(job),
    )  # fmt: skip


def _outcome(job: dict[str, Any]) -> str:
    if job["state"] == "scheduled":
        return f"due {formatting.local_time(job['run_at'])}"
    if job.get("waits_for"):
        return f"waits for {job['waits_for']}"
    if not job["reason"] and isinstance(job["result"], dict | jsonbytes.Base64):
        return f"({progress.count_of(job['result_size'], 'byte')})"  # lists have only the beginning of the result
    return formatting.value(summary(job["reason"]) or job["result"] or "", _LONGEST_OUTCOME)
