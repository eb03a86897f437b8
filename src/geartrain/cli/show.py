"""`geartrain show`: one job in detail."""

import sys
from typing import Annotated, Any

import typer

from geartrain import jsonbytes
from geartrain.cli import exit_codes, formatting, remote, tables

EPILOG = f"""
A finished job can be shown as long as the server keeps its record.

{exit_codes.EPILOG}
**Examples**

- `geartrain show H:lap:17`

- `geartrain show H:lap:17 --result > result.bin` writes only the result, byte for byte

- `geartrain show H:lap:17 --log` prints only what its workers have logged, if they keep that with the job
"""

_LONGEST_LINE = 5000  # characters; workers cut their lines earlier


def show(
    handle: Annotated[str, typer.Argument(metavar="HANDLE", help="The job's handle.", show_default=False)],
    payload: Annotated[bool, typer.Option("--payload", help="Print only the payload, unchanged.")] = False,
    result: Annotated[bool, typer.Option("--result", help="Print only the result, unchanged.")] = False,
    log: Annotated[bool, typer.Option("--log", help="Print only the log that workers have kept with it.")] = False,
    part: Annotated[bool, typer.Option("--part", help="With --result: also if only its beginning is kept.")] = False,
    server: remote.Server = remote.DEFAULT_URL,
    json: remote.Json = False,
) -> None:
    """Show one job: state, times, attempts, payload, result and log."""
    if payload or result or log:
        arguments = {"part": True} if result and part else {}
        verb = "payload" if payload else "result" if result else "log"
        answer = remote.ask(server, verb, handle=handle, **arguments)
        sys.stdout.buffer.write(jsonbytes.decode(answer))
        return
    job = remote.ask(server, "job", handle=handle)
    if json:
        tables.print_lines([tables.json_line(job)])
        return
    tables.print_lines([*_page(job), *_log(remote.ask(server, "log", handle=handle))])


def _page(job: dict[str, Any]) -> list[str]:
    state = job["state"]
    lines = tables.facts(
        [
            ("handle", formatting.value(job["handle"], 100)),
            ("function", formatting.value(job["function"], 100)),
            ("unique key", formatting.value(job["unique"], 100)),
            ("partition", formatting.value(job.get("partition", ""), 100)),
            ("state", tables.coloured(state, tables.STATE_COLOURS.get(state, "")) + _progress(job)),
            ("waits for", job.get("waits_for", "") if state in ("queued", "blocked") else ""),
            ("reason", job["reason"]),
            ("kind", f"{job['priority']} priority, {'background' if job['background'] else 'foreground'}"),
            ("submitted", f"{formatting.local_time(job['submitted_at'])} by {job['door'] or '?'}"),
            ("runs at", formatting.local_time(job["run_at"]) if state == "scheduled" else ""),
            ("started", _started(job)),
            ("finished", formatting.local_time(job["finished_at"]) if job["finished_at"] else ""),
            ("kept until", _kept_until(job)),
            ("took", _took(job)),
            ("attempts", str(job["attempts"])),
            ("payload", _content(job["payload"], job["payload_size"])),
            ("result", _content(job["result"], job["result_size"]) + _cut(job)),
        ]
    )
    for trial in job["trials"]:
        took = formatting.duration(trial["ended_at"] - trial["started_at"])
        who = formatting.value(trial["worker"]) or trial["door"] or "?"
        lines.append(f"  {formatting.local_time(trial['started_at'])}  {took:>8}  {who}: {trial['why']}")
    return lines


def _log(answer: Any) -> list[str]:
    """The log, below the attempts. It is a worker's text, so it must not control the terminal."""
    lines = jsonbytes.decode(answer).decode("utf-8", "replace").splitlines()
    return ["log", *(f"  {formatting.one_line(line, _LONGEST_LINE)}" for line in lines)] if lines else []


def _progress(job: dict[str, Any]) -> str:
    if not job["denominator"]:
        return ""
    return f", {job['numerator']:g} of {job['denominator']:g}"


def _started(job: dict[str, Any]) -> str:
    if not job["started_at"]:
        return ""
    who = formatting.value(job["worker"])
    return f"{formatting.local_time(job['started_at'])} by {job['worker_door'] or '?'}{f' ({who})' if who else ''}"


def _took(job: dict[str, Any]) -> str:
    if not (job["started_at"] and job["finished_at"]):
        return ""
    return formatting.duration(job["finished_at"] - job["started_at"])


def _kept_until(job: dict[str, Any]) -> str:
    return f"{formatting.local_time(job['keep_until'])} at least" if job.get("keep_until") else ""


def _cut(job: dict[str, Any]) -> str:
    kept = job.get("result_kept")
    if kept is None or kept >= job["result_size"]:
        return ""
    return f", cut: only the first {kept:,} bytes are kept; --result --part prints them"


def _content(content: Any, size: int | None) -> str:
    if content is None or size is None:
        return ""
    text = formatting.value(content, 200) + " " if isinstance(content, str) else ""
    return f"{text}({size:,} bytes)" if size else ""
