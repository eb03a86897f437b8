"""`geartrain submit`: submit jobs, and wait for their results if asked to."""

import asyncio
import enum
import sys
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final

from geartrain.cli import exit_codes, formatting, remote, tables
from geartrain.cli.parameters import UsageError, argument, option
from geartrain.errors import ExpiredError, GeartrainError, JobFailedError, JobTimeoutError
from geartrain.model import Priority

EPILOG = f"""
**Payload.** It is the argument, the content of a file, or standard input (`-`); without any of these it is empty. With
`--lines` every line of standard input is the payload of a job.

**Background or foreground.** Without `--wait` it is a background job: the server stores it, and the command prints its
handle. Over `periodic://` and `gearmonkey://` that is the protocol's own name for the job, which other verbs do not
accept; `geartrain jobs` prints the handle that they accept. With `--wait` it is a foreground job: the command shows
progress on stderr and prints the result.

**Protocols.** An option that the protocol of the URL cannot express is an error: `memodb+tcp://`, for example, has no
background jobs.

{exit_codes.EPILOG}
**Examples**

- `geartrain submit reverse hello` prints the handle of a background job

- `geartrain submit resize --file photo.jpg --wait > small.jpg`

- `find . -name '*.mov' | geartrain submit encode --lines --priority low`

- `geartrain submit report --at 2026-12-01T06:00 --unique monthly`

- `geartrain submit quote ACME --expires 10m` is not run if no worker is free within ten minutes

- `geartrain submit import data.csv --partition acme` takes turns with jobs of other partitions

- `geartrain submit report --after $(geartrain submit import data.csv)` runs when the import is done

- `geartrain submit mail '{{"to": "ada"}}' --delay 10m --json | jq -r .handle`
"""

_BATCH: Final = 1000  # lines that are submitted at a time


class PriorityName(enum.StrEnum):
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class FailureChoice(enum.StrEnum):
    CANCEL = "cancel"
    RUN = "run"


def submit(
    function: Annotated[str, argument(metavar="FUNCTION", help="The function to run.", show_default=False)],
    payload: Annotated[str | None, argument(metavar="[PAYLOAD]", help="The payload; `-` reads standard input.")] = None,
    file: Annotated[Path | None, option(metavar="FILE", help="Read the payload from a file.")] = None,
    lines: Annotated[bool, option("--lines", help="Submit one job per line of standard input.")] = False,
    wait: Annotated[bool, option("--wait", "-w", help="Wait for the result and print it.")] = False,
    patience: Annotated[
        str,
        option(
            "--patience",
            metavar="TIME",
            help="With `--wait`: give up after this time, such as `30s`.",
            show_default=False,
        ),
    ] = "",
    priority: Annotated[PriorityName, option(help="The priority.")] = PriorityName.NORMAL,
    unique: Annotated[
        str, option(metavar="KEY", help="Unique key: joins a job that already has this key.", show_default=False)
    ] = "",
    at: Annotated[str, option(metavar="TIME", help="Do not run it before this time.", show_default=False)] = "",
    delay: Annotated[
        str, option(metavar="TIME", help="Do not run it before this delay is over.", show_default=False)
    ] = "",
    timeout: Annotated[str, option(metavar="TIME", help="Time that a worker may take.", show_default=False)] = "",
    expires: Annotated[
        str, option(metavar="TIME", help="Do not run it if no worker took it by then.", show_default=False)
    ] = "",
    keep_for: Annotated[
        str, option(metavar="TIME", help="Keep its record and result for this time at least.", show_default=False)
    ] = "",
    partition: Annotated[
        str,
        option(
            metavar="NAME", help="Tenant, account or host: partitions of a function take turns.", show_default=False
        ),
    ] = "",
    after: Annotated[
        list[str] | None,
        option(metavar="HANDLE", help="Run it when this job is done; can be repeated.", show_default=False),
    ] = None,
    on_failure: Annotated[
        FailureChoice, option(help="With `--after`: what happens if such a job fails or is cancelled.")
    ] = FailureChoice.CANCEL,
    server: remote.Server = remote.DEFAULT_URL,
    json: remote.Json = False,
) -> None:
    """Submit a job, or one per line of standard input."""
    if lines and (payload is not None or file is not None):
        raise UsageError("--lines reads payloads from standard input; PAYLOAD and --file cannot be used with it")
    if payload is not None and file is not None:
        raise UsageError("PAYLOAD and --file cannot be used together")
    options = {
        "background": not wait,
        "priority": Priority[priority.name],
        "unique": unique,
        "at": formatting.parse_future_time(at, "--at") or None,
        "delay": formatting.parse_duration(delay, "--delay") or None,
        "timeout": formatting.parse_duration(timeout, "--timeout") or None,
        "expires": formatting.parse_duration(expires, "--expires") or None,
        "keep_for": formatting.parse_duration(keep_for, "--keep-for") or None,
        "partition": partition.encode("utf-8", "surrogateescape"),
        "after": after or (),
        "on_failure": on_failure.value,
    }
    submitter = _Submitter(function, options, formatting.parse_duration(patience, "--patience") or None, json)
    if lines:
        failed = remote.with_client(server, submitter.submit_lines)
    else:
        content = _payload(payload, file)
        failed = remote.with_client(server, lambda client: submitter.submit_one(client, content))
    if failed:
        raise SystemExit(exit_codes.JOB_FAILED)


def _payload(argument: str | None, file: Path | None) -> bytes:
    if file is not None:
        try:
            return file.read_bytes()
        except OSError as error:
            raise GeartrainError(f"{file}: {error.strerror}") from None
    if argument == "-":
        return sys.stdin.buffer.read()
    return (argument or "").encode("utf-8", "surrogateescape")


class _Submitter:
    """Submits jobs with the same options, and prints their handles or results."""

    def __init__(self, function: str, options: dict[str, Any], patience: float | None, json: bool) -> None:
        self._function = function
        self._options = options
        self._patience = patience
        self._json = json
        self._show_progress = sys.stderr.isatty()

    async def submit_one(self, client: Any, payload: bytes) -> int:
        """Submit a job and print its handle or result; returns how many failed."""
        job = await client.submit(self._function, payload, **self._options)
        if self._options["background"]:
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
            raise JobTimeoutError(f"{job.handle} did not finish in time; gave up waiting") from None
        finally:
            self._clear()
        self._report({"handle": job.handle, "state": "done", "result": result}, result, end=b"")
        return 0

    async def submit_lines(self, client: Any) -> int:
        """Submit a job per line, in batches; print handles or results in the order of the lines."""
        failed = 0
        loop = asyncio.get_running_loop()
        while batch := await loop.run_in_executor(None, _read_lines, sys.stdin.buffer):
            submits = (client.submit(self._function, line, **self._options) for line in batch)
            for job in await asyncio.gather(*submits):
                failed += await self._line_done(job)
        return failed

    async def _line_done(self, job: Any) -> int:
        if self._options["background"]:
            self._report({"handle": job.handle, "function": self._function}, job.handle.encode())
            return 0
        try:
            result = await job.result(self._patience)
        except JobFailedError as error:
            self._failed(job.handle, error)
            return 1
        self._report({"handle": job.handle, "state": "done", "result": result}, result)
        return 0

    async def _follow(self, job: Any) -> None:
        """Show progress in one line on stderr; write parts of the result to stdout as they come."""
        from geartrain.client import job_events

        async for event in job.events():
            if isinstance(event, job_events.Progressed) and self._show_progress:
                print(f"\r{_bar(event.numerator, event.denominator)}", end="", file=sys.stderr, flush=True)
            elif isinstance(event, job_events.Warned):
                self._clear()
                print(f"warning: {event.data.decode('utf-8', 'replace')}", file=sys.stderr)
            elif isinstance(event, job_events.Data) and not self._json:
                self._clear()
                _write(event.data)

    def _clear(self) -> None:
        if self._show_progress:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def _report(self, facts: dict[str, Any], plain: bytes, end: bytes = b"\n") -> None:
        if self._json:
            _print_json(facts)
        else:
            _write(plain + end)

    def _failed(self, handle: str, error: JobFailedError) -> None:
        if self._json:
            state = "expired" if isinstance(error, ExpiredError) else "failed"
            facts = {"handle": handle, "state": state, "reason": error.reason, "data": error.data}
            _print_json(facts)
        else:
            print(f"geartrain: {error}", file=sys.stderr)


def _print_json(facts: dict[str, Any]) -> None:
    from geartrain import jsonbytes  # imports msgspec, which a submission without --json does not need

    plain = {name: jsonbytes.encode(value) if isinstance(value, bytes) else value for name, value in facts.items()}
    tables.print_lines([tables.json_line(plain)])


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _read_lines(source: BinaryIO) -> list[bytes]:
    """The next lines, without line ends: those that are available now, at least one. Empty at the end of input."""
    first = source.readline()
    if not first:
        return []
    lines = [first]
    # Only what is in the buffer joins the batch: waiting for more lines would delay the first.
    buffered = source.peek() if hasattr(source, "peek") else b""
    while len(lines) < _BATCH and b"\n" in buffered:
        lines.append(source.readline())
        buffered = buffered[len(lines[-1]) :]
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
