"""`geartrain submit`: give a server work, and wait for it or not."""

import asyncio
import enum
import sys
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final

import typer

from geartrain import jsonbytes
from geartrain.cli import exit_codes, formatting, remote, tables
from geartrain.errors import GeartrainError, JobFailedError, JobTimeoutError
from geartrain.model import Priority

EPILOG = f"""
**The payload** is the argument, or a file, or what comes on standard input (`-`); nothing at all is an empty payload.
With `--lines` every line of standard input is a job of its own.

**Waiting.** Without `--wait` the job is a background job: the server keeps it, and its handle is printed. With
`--wait` the result is printed when it is there, and the worker's progress is shown on stderr meanwhile.

{exit_codes.EPILOG}
**Examples**

- `geartrain submit reverse hello` prints the handle of a background job

- `geartrain submit resize --file photo.jpg --wait > small.jpg`

- `find . -name '*.mov' | geartrain submit encode --lines --priority low`

- `geartrain submit report --at 2026-12-01T06:00 --unique monthly`

- `geartrain submit mail '{{"to": "ada"}}' --delay 10m --json | jq -r .handle`
"""

_AT_ONCE: Final = 1000  # so many lines are under way at the same time


class Urgency(enum.StrEnum):
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


def submit(
    function: Annotated[str, typer.Argument(metavar="FUNCTION", help="What is to be done.", show_default=False)],
    payload: Annotated[
        str | None, typer.Argument(metavar="[PAYLOAD]", help="What to do it with; `-` reads it from standard input.")
    ] = None,
    file: Annotated[Path | None, typer.Option(metavar="FILE", help="Take the payload from a file.")] = None,
    lines: Annotated[bool, typer.Option("--lines", help="One job per line of standard input.")] = False,
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Wait for the result and print it.")] = False,
    patience: Annotated[
        str, typer.Option("--patience", metavar="TIME", help="Wait so long at most, such as `30s`.", show_default=False)
    ] = "",
    priority: Annotated[Urgency, typer.Option(help="How urgent it is.")] = Urgency.NORMAL,
    unique: Annotated[
        str, typer.Option(metavar="KEY", help="Join the job that has this key already.", show_default=False)
    ] = "",
    at: Annotated[str, typer.Option(metavar="TIME", help="Run it at this time.", show_default=False)] = "",
    delay: Annotated[str, typer.Option(metavar="TIME", help="Run it after so long.", show_default=False)] = "",
    timeout: Annotated[str, typer.Option(metavar="TIME", help="So long may a worker take.", show_default=False)] = "",
    server: remote.Server = remote.USUAL,
    json: remote.Json = False,
) -> None:
    """Submit a job, or one per line of standard input."""
    if lines and (payload is not None or file is not None):
        raise typer.BadParameter("--lines takes its payloads from standard input, and nothing else")
    if payload is not None and file is not None:
        raise typer.BadParameter("a payload as argument and one from a file are one too many")
    wishes = {
        "background": not wait,
        "priority": Priority[priority.name],
        "unique": unique,
        "at": formatting.coming(at, "--at") or None,
        "delay": formatting.duration(delay, "--delay") or None,
        "timeout": formatting.duration(timeout, "--timeout") or None,
    }
    session = _Session(function, wishes, formatting.duration(patience, "--patience") or None, json)
    if lines:
        failed = remote.with_client(server, session.submit_lines)
    else:
        content = _payload(payload, file)
        failed = remote.with_client(server, lambda client: session.submit_one(client, content))
    if failed:
        raise typer.Exit(exit_codes.JOB_FAILED)


def _payload(argument: str | None, file: Path | None) -> bytes:
    if file is not None:
        try:
            return file.read_bytes()
        except OSError as error:
            raise GeartrainError(f"{file}: {error.strerror}") from None
    if argument == "-":
        return sys.stdin.buffer.read()
    return (argument or "").encode("utf-8", "surrogateescape")


class _Session:
    """One run of the verb: what is wanted of every job, and how it is reported."""

    def __init__(self, function: str, wishes: dict[str, Any], patience: float | None, json: bool) -> None:
        self._function = function
        self._wishes = wishes
        self._patience = patience
        self._json = json
        self._watched = sys.stderr.isatty()

    async def submit_one(self, client: Any, payload: bytes) -> int:
        """Submit it, report it; how many failed."""
        job = await client.submit(self._function, payload, **self._wishes)
        if self._wishes["background"]:
            self._report({"handle": job.handle, "function": self._function}, job.handle.encode())
            return 0
        try:
            async with asyncio.timeout(self._patience):
                await self._follow(job)
            result = await job.result()
        except JobFailedError as error:
            self._failed(job.handle, error)
            return 1
        except TimeoutError:
            raise JobTimeoutError(f"{job.handle} was not finished in time; it is not waited for any more") from None
        finally:
            self._clear()
        self._report({"handle": job.handle, "state": "done", "result": jsonbytes.encode(result)}, result, end=b"")
        return 0

    async def submit_lines(self, client: Any) -> int:
        """One job per line, in batches, and their results in the order of the lines."""
        failed = 0
        loop = asyncio.get_running_loop()
        while batch := await loop.run_in_executor(None, _read_lines, sys.stdin.buffer):
            submits = (client.submit(self._function, line, **self._wishes) for line in batch)
            for job in await asyncio.gather(*submits):
                failed += await self._line_done(job)
        return failed

    async def _line_done(self, job: Any) -> int:
        if self._wishes["background"]:
            self._report({"handle": job.handle, "function": self._function}, job.handle.encode())
            return 0
        try:
            result = await job.result(self._patience)
        except JobFailedError as error:
            self._failed(job.handle, error)
            return 1
        self._report({"handle": job.handle, "state": "done", "result": jsonbytes.encode(result)}, result)
        return 0

    async def _follow(self, job: Any) -> None:
        """Show progress on stderr, in one line that goes away; parts of the result go to stdout as they come."""
        from geartrain.client import job_events

        async for event in job.events():
            if isinstance(event, job_events.Progressed) and self._watched:
                print(f"\r{_bar(event.numerator, event.denominator)}", end="", file=sys.stderr, flush=True)
            elif isinstance(event, job_events.Warned):
                self._clear()
                print(f"warning: {event.data.decode('utf-8', 'replace')}", file=sys.stderr)
            elif isinstance(event, job_events.Data) and not self._json:
                self._clear()
                _write(event.data)

    def _clear(self) -> None:
        if self._watched:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def _report(self, facts: dict[str, Any], plain: bytes, end: bytes = b"\n") -> None:
        if self._json:
            tables.say([tables.json_line(facts)])
        else:
            _write(plain + end)

    def _failed(self, handle: str, error: JobFailedError) -> None:
        if self._json:
            facts = {"handle": handle, "state": "failed", "reason": error.reason, "data": jsonbytes.encode(error.data)}
            tables.say([tables.json_line(facts)])
        else:
            print(f"geartrain: {error}", file=sys.stderr)


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _read_lines(source: BinaryIO) -> list[bytes]:
    """The next lines, without their ends; fewer than asked for if they come slowly. Empty at the end."""
    first = source.readline()
    if not first:
        return []
    lines = [first]
    # What the buffer holds already belongs to the same batch; waiting for more would hold up the first.
    held = source.peek() if hasattr(source, "peek") else b""
    while len(lines) < _AT_ONCE and b"\n" in held:
        lines.append(source.readline())
        held = held[len(lines[-1]) :]
    return [line.rstrip(b"\r\n") for line in lines]


def _bar(numerator: float, denominator: float, width: int = 30) -> str:
    """
    >>> _bar(1, 2, 10)
    '[#####.....]  50%'
    """
    if denominator <= 0:
        return f"{numerator:g}"
    share = min(max(numerator / denominator, 0.0), 1.0)
    full = round(share * width)
    return f"[{'#' * full}{'.' * (width - full)}] {share:4.0%}"
