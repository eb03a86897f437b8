"""`geartrain work`: run a worker that executes a command for each job, or the tasks of an App."""

import asyncio
import importlib
import os
import sys
from typing import Annotated, Any, Final

import typer

from geartrain import escape
from geartrain.cli import exit_codes, formatting, remote
from geartrain.client import credentials
from geartrain.errors import GeartrainError

EPILOG = f"""
**A command for each job.** The command reads the payload from standard input and writes the result to standard output.
Exit code 0 is success; any other fails the job, and standard error is the reason. The environment has
`GEARTRAIN_FUNCTION`, `GEARTRAIN_HANDLE` and `GEARTRAIN_UNIQUE`.

**An App.** `geartrain work shop.tasks:app` runs the tasks of an `App` and registers its cron schedules with the server.

**Signals.** TERM and INT stop the worker when its running jobs are done; a second signal stops it at once.

{exit_codes.EPILOG}
**Examples**

- `geartrain work reverse -- rev`

- `geartrain work resize --concurrency 4 --timeout 2m -- convert - -resize 50% jpg:-`

- `geartrain work wc --server gearman://a,gearman://b -- wc -l` works for two servers

- `geartrain work shop.tasks:app --concurrency 20`
"""

_TASKS_AT_ONCE: Final = 10
_REASON_LIMIT: Final = 2000  # characters from the end of a command's stderr


def work(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="FUNCTION... -- COMMAND... | MODULE:APP",
            help="Functions and the command for their jobs, or an App.",
            show_default=False,
        ),
    ],
    concurrency: Annotated[
        int | None,
        typer.Option(
            "--concurrency",
            "-c",
            min=1,
            metavar="N",
            help="Jobs to run at a time. [default: 1 for a command, 10 for an App]",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        str,
        typer.Option(metavar="TIME", help="Kill the command and fail the job after this time.", show_default=False),
    ] = "",
    name: Annotated[str, typer.Option(metavar="NAME", help="The worker's name in lists.", show_default=False)] = "",
    server: remote.OptionalServer = None,
) -> None:
    """Run a worker: a command for each job of some functions, or the tasks of an App."""
    functions, command = _split(what)
    seconds = formatting.parse_duration(timeout, "--timeout")
    if command:
        asyncio.run(_run_command(server or remote.DEFAULT_URL, functions, command, concurrency or 1, seconds, name))
    elif len(functions) == 1 and ":" in functions[0]:
        urls = server.split(",") if server else []  # an App has its own
        app = _app(functions[0])
        if credentials.has_command_token():
            app.token = None  # the one of the command line comes before the app's own
        app.run(*urls, concurrency=concurrency or _TASKS_AT_ONCE, name=name)
    else:
        raise typer.BadParameter("no command given; example: geartrain work reverse -- rev")


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """The functions before `--` and the command after it. click drops the `--`, so it is searched in sys.argv."""
    typed = sys.argv[1:]
    if "--" not in typed:
        return words, []
    command = typed[typed.index("--") + 1 :]
    return words[: len(words) - len(command)], command


def _app(place: str) -> Any:
    """The App at `package.module:name`."""
    module, _, name = place.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise GeartrainError(f"{place}: {error}") from None
    except AttributeError:
        raise GeartrainError(f"{place}: module {module!r} has no {name!r}") from None


async def _run_command(
    server: str, functions: list[str], command: list[str], concurrency: int, timeout: float, name: str
) -> None:
    from geartrain.client.async_worker import AsyncWorker

    async def run(job: Any) -> bytes:
        return await _execute(job, command, timeout)

    worker = AsyncWorker(*server.split(","), concurrency=concurrency, name=name or f"{command[0]}@{os.getpid()}")
    for function in functions:
        worker.register(function, run, timeout=timeout)
    print(f"working on {', '.join(functions)} for {server}", file=sys.stderr)
    await worker.run()


def _variable(name: str) -> str:
    """A name for the environment, which cannot hold a NUL."""
    return escape.escape(name.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


async def _execute(job: Any, command: list[str], timeout: float) -> bytes:
    """Run a job's command. It never outlives the job."""
    environment = {
        **os.environ,
        "GEARTRAIN_FUNCTION": _variable(job.function),
        "GEARTRAIN_HANDLE": _variable(job.handle),
        "GEARTRAIN_UNIQUE": _variable(job.unique),
    }
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, start_new_session=True
        )
    except OSError as error:
        raise CommandFailedError(f"{command[0]}: {error.strerror}") from None
    try:
        async with asyncio.timeout(timeout or None):
            result, errors = await process.communicate(job.payload)
    except TimeoutError:
        raise CommandFailedError(f"{command[0]} took longer than {timeout:g} seconds") from None
    finally:
        if process.returncode is None:
            os.killpg(process.pid, 9)
            await process.wait()
    if process.returncode:
        reason = errors.decode("utf-8", "replace").strip()[-_REASON_LIMIT:]
        reason = reason or f"{command[0]} ended with exit code {process.returncode}"
        raise CommandFailedError(reason, process.returncode)
    return result


class CommandFailedError(GeartrainError):
    """A job's command failed. `code` is sent to the client, where the protocol has codes."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code if 1 <= code <= 255 else 1
