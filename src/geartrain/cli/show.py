"""`geartrain show`: everything about one job."""

import sys
from typing import Annotated, Any

import typer

from geartrain.cli import exits, moments, reaching, tables

EPILOG = f"""
A job that is over is shown as long as its record is kept.

{exits.EPILOG}
**Examples**

- `geartrain show H:lap:17`

- `geartrain show H:lap:17 --result > result.bin` writes the result alone, byte for byte
"""


def show(
    handle: Annotated[str, typer.Argument(metavar="HANDLE", help="Which job.", show_default=False)],
    payload: Annotated[bool, typer.Option("--payload", help="Only the payload, as it is.")] = False,
    result: Annotated[bool, typer.Option("--result", help="Only the result, as it is.")] = False,
    server: reaching.Server = reaching.USUAL,
    json: reaching.Json = False,
) -> None:
    """Show everything that is known of a job."""
    if payload or result:
        answer = reaching.ask(server, "payload" if payload else "result", handle=handle)
        sys.stdout.buffer.write(_bytes(answer))
        return
    job = reaching.ask(server, "job", handle=handle)
    tables.say([tables.json_line(job)] if json else _page(job))


def _bytes(answer: Any) -> bytes:
    import base64

    return base64.b64decode(answer["base64"]) if isinstance(answer, dict) else str(answer).encode()


def _page(job: dict[str, Any]) -> list[str]:
    state = job["state"]
    lines = tables.facts(
        [
            ("handle", moments.value(job["handle"], 100)),
            ("function", moments.value(job["function"], 100)),
            ("unique key", moments.value(job["unique"], 100)),
            ("state", tables.paint(state, tables.STATE_COLOURS.get(state, "")) + _progress(job)),
            ("reason", job["reason"]),
            ("kind", f"{job['priority']} priority, {'background' if job['background'] else 'foreground'}"),
            ("submitted", f"{moments.clock(job['submitted_at'])} by {job['door'] or '?'}"),
            ("runs at", moments.clock(job["run_at"]) if state == "scheduled" else ""),
            ("started", _started(job)),
            ("finished", moments.clock(job["finished_at"]) if job["finished_at"] else ""),
            ("took", _took(job)),
            ("attempts", str(job["attempts"])),
            ("payload", _content(job["payload"], job["payload_size"])),
            ("result", _content(job["result"], job["result_size"])),
        ]
    )
    for trial in job["trials"]:
        took = moments.span(trial["ended_at"] - trial["started_at"])
        who = moments.value(trial["worker"]) or trial["door"] or "?"
        lines.append(f"  {moments.clock(trial['started_at'])}  {took:>8}  {who}: {trial['why']}")
    return lines


def _progress(job: dict[str, Any]) -> str:
    if not job["denominator"]:
        return ""
    return f", {job['numerator']:g} of {job['denominator']:g}"


def _started(job: dict[str, Any]) -> str:
    if not job["started_at"]:
        return ""
    who = moments.value(job["worker"])
    return f"{moments.clock(job['started_at'])} by {job['worker_door'] or '?'}{f' ({who})' if who else ''}"


def _took(job: dict[str, Any]) -> str:
    if not (job["started_at"] and job["finished_at"]):
        return ""
    return moments.span(job["finished_at"] - job["started_at"])


def _content(content: Any, size: int | None) -> str:
    if content is None or size is None:
        return ""
    return f"{moments.value(content, 200)} ({size:,} bytes)" if size else ""
