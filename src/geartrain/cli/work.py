"""`geartrain work`: run a worker that executes a command for each job, or the tasks of an App."""

import asyncio
import sys
from typing import Annotated, Any, Final

import typer

from geartrain.cli import exit_codes, formatting, remote

EPILOG = f"""
**A command for each job.** The command reads the payload from standard input and writes the result to standard output.
Exit code 0 is success; any other fails the job, and standard error is the reason. The environment has
`GEARTRAIN_FUNCTION`, `GEARTRAIN_HANDLE` and `GEARTRAIN_UNIQUE`.

**An App.** `geartrain work shop.tasks:app` runs the tasks of an `App` and registers its cron schedules with the server.
With `--processes`, a process that dies is replaced, and the server gives its jobs to others.

**Signals.** TERM and INT stop the worker when its running jobs are done; a second signal stops it at once.

{exit_codes.EPILOG}
**Examples**

- `geartrain work reverse -- rev`

- `geartrain work resize --concurrency 4 --timeout 2m -- convert - -resize 50% jpg:-`

- `geartrain work wc --server gearman://a,gearman://b -- wc -l` works for two servers

- `geartrain work shop.tasks:app --processes 4 --concurrency 20`

- `geartrain work shop.tasks:app --concurrency 20 --max-share 0.5` runs at most ten jobs of one task at a time

- `geartrain work shop.tasks:app --only 'mail.*' --exclude mail.archive`

- `geartrain work shop.tasks:app --reload --log-level debug` for development

- `geartrain work shop.tasks:app --burst` ends when no job is left
"""

_PANEL: Final = "For an App"
_TASKS_AT_ONCE: Final = 10
_MEBIBYTE: Final = 2**20
_LEVELS: Final = "debug, info, warning, error or critical"


def _option(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=_PANEL, show_default=False, **more)


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
            help="Jobs to run at a time, in each process. [default: 1 for a command, 10 for an App]",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        str,
        typer.Option(metavar="TIME", help="Kill the command and fail the job after this time.", show_default=False),
    ] = "",
    max_share: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1.0,
            metavar="SHARE",
            help="Share of these slots that jobs of one function or task may take, such as 0.5. [default: all]",
            show_default=False,
        ),
    ] = 1.0,
    name: Annotated[str, typer.Option(metavar="NAME", help="The worker's name in lists.", show_default=False)] = "",
    processes: Annotated[
        int, _option("--processes", "-p", min=1, metavar="N", help="Processes to run. [default: 1]")
    ] = 1,
    only: Annotated[
        list[str] | None,
        _option(metavar="TASK", help="Run only this task; may be a pattern such as 'mail.*', and given several times."),
    ] = None,
    exclude: Annotated[
        list[str] | None, _option(metavar="TASK", help="Do not run this task; may be a pattern, and several times.")
    ] = None,
    burst: Annotated[bool, _option("--burst", help="End when no job of these tasks is queued.")] = False,
    reload: Annotated[
        bool, _option("--reload", help="Restart when a Python file below this folder changes, for development.")
    ] = False,
    stop_timeout: Annotated[
        str, _option(metavar="TIME", help="Give up tasks that still run this long after a stop. [default: never]")
    ] = "",
    max_tasks: Annotated[
        int, _option("--max-tasks-per-process", min=0, metavar="N", help="Replace a process after this many tasks.")
    ] = 0,
    max_memory: Annotated[
        int, _option(min=0, metavar="MB", help="Replace a process that has more memory after a task, in MiB.")
    ] = 0,
    log_level: Annotated[str, _option(metavar="LEVEL", help=f"{_LEVELS}. [default: info]")] = "info",
    log_json: Annotated[bool, _option("--log-json", help="Log one JSON object per line.")] = False,
    server: remote.OptionalServer = None,
) -> None:
    """Run a worker: a command for each job of some functions, or the tasks of an App."""
    if not max_share:
        raise typer.BadParameter("a share of the slots is above 0 and at most 1", param_hint="--max-share")
    functions, command = _split(what)
    seconds = formatting.parse_duration(timeout, "--timeout")
    if command:
        from geartrain.cli import work_command

        url = server or remote.DEFAULT_URL
        asyncio.run(work_command.run(url, functions, command, concurrency or 1, seconds, name, max_share))
        return
    if len(functions) != 1 or ":" not in functions[0]:
        raise typer.BadParameter(
            "no command given; examples: geartrain work reverse -- rev, or for an App: geartrain work shop:app"
        )
    code = _run_app(
        functions[0],
        server,
        {
            "concurrency": concurrency or _TASKS_AT_ONCE,
            "max_share": max_share,
            "name": name,
            "only": _words(only),
            "exclude": _words(exclude),
            "burst": burst,
            "stop_timeout": formatting.parse_duration(stop_timeout, "--stop-timeout"),
            "max_tasks": max_tasks,
            "max_memory": max_memory * _MEBIBYTE,
        },
        processes,
        reload,
        _level(log_level),
        log_json,
    )
    if code:
        raise typer.Exit(code)


def _run_app(
    target: str,
    server: str | None,
    options: dict[str, Any],
    processes: int,
    reload: bool,
    log_level: str,
    log_json: bool,
) -> int:
    from geartrain.app.worker_options import WorkerOptions
    from geartrain.cli import work_app
    from geartrain.cli.worker_process import WorkSettings
    from geartrain.client import credentials

    settings = WorkSettings(
        target=target,
        urls=tuple(server.split(",")) if server else (),  # an App has its own
        options=WorkerOptions(**options),
        log_level=log_level,
        log_json=log_json,
        token=credentials.command_token(),
    )
    return work_app.run(settings, processes, reload)


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """The functions before `--` and the command after it. click drops the `--`, so it is searched in sys.argv."""
    typed = sys.argv[1:]
    if "--" not in typed:
        return words, []
    command = typed[typed.index("--") + 1 :]
    return words[: len(words) - len(command)], command


def _words(values: list[str] | None) -> tuple[str, ...]:
    """The values of an option that may be given several times, each with several values between commas."""
    return tuple(word for value in values or () for word in value.split(",") if word)


def _level(level: str) -> str:
    if level.lower() not in _LEVELS.replace(" or ", ", ").split(", "):
        raise typer.BadParameter(f"{level!r} is no level; use {_LEVELS}", param_hint="--log-level")
    return level.lower()
