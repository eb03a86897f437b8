"""`geartrain import`: add the jobs of another server's queue to a store."""

import time
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from geartrain.cli import command_group, connection_options, formatting, local_store, progress, tables
from geartrain.maintenance import store_file
from geartrain.maintenance.queue_import import gearmand_queue, gearmand_redis, periodic_dump, store_import
from geartrain.maintenance.queue_import.queued_job import QueuedJob
from geartrain.server.process import log

GEARMAND_EPILOG: Final = """
**What it reads.** The file of gearmand's `libsqlite3` queue, and text dumps of its tables in PostgreSQL, MySQL, MariaDB
and Drizzle, made by `pg_dump`, `mysqldump` or `mariadb-dump`. A URL such as `redis://:PASSWORD@HOST:6379/0` is read as
the Redis of its `redis` queue. The other queues of gearmand (memcached, Tokyo Cabinet) are moved while gearmand runs,
with `geartrain move`.

**Before.** Stop gearmand, so that no job runs at both servers, and stop Geartrain if the store is its own. The file or
the Redis is only read. With `--dry-run` the command prints what it found, and no store is opened.

**All or nothing.** The whole file is checked first, and added in one transaction. A job whose function and unique key
belong to a job of the store is skipped, as if a client had submitted it again; so the command can be repeated.

**Examples**

- `geartrain import gearmand /var/lib/gearman/queue.db --dry-run`, then the same without `--dry-run`

- `pg_dump --table queue gearman > queue.sql` and `geartrain import gearmand queue.sql`

- `geartrain import gearmand redis://127.0.0.1 --dry-run` shows what a Redis has, by function

- `geartrain import gearmand queue.db --store sqlite:///srv/new/jobs.db` creates a new store
"""

PERIODIC_EPILOG: Final = """
**What it reads.** The file that `periodic dump FILE` of the original Periodic server (periodicd) writes: all jobs
that wait or run. Files of 2018, before jobs had a version, are read too. A `DUMP` of Geartrain over Periodic's
protocol has the same form. go-periodic's server has no such command.

**Before.** Let the workers of the old server finish, dump, and stop it, so that no job runs at both servers; stop
Geartrain if the store is its own. The file is only read. With `--dry-run` the command prints what it found, and no
store is opened.

**What stays the same.** Function, name, payload, time to run, timeout, and the count of a job that its worker
rescheduled. The name is the unique key. Jobs that are due run at once.

**All or nothing.** The whole file is checked first, and added in one transaction. A job whose function and name
belong to a job of the store, or of the file before it, is skipped; so the command can be repeated. A running server
takes the same file without this command, by `periodic load FILE`; there a job replaces the one of its name.

**Examples**

- `periodic -H tcp://old:5000 dump jobs.dump`, then `geartrain import periodic jobs.dump --dry-run`

- `geartrain import periodic jobs.dump --store sqlite:///srv/new/jobs.db` creates a new store
"""

_HEAD: Final = ("FUNCTION", "HIGH", "NORMAL", "LOW", "SCHEDULED")

DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what the file has; change nothing.")]


def add(app: typer.Typer) -> None:
    """Add the group of commands."""
    commands: command_group.Commands = {
        "gearmand": (import_gearmand, GEARMAND_EPILOG),
        "periodic": (import_periodic, PERIODIC_EPILOG),
    }
    command_group.add(app, "import", "Add the jobs of another server's queue to a store.", commands)


def import_gearmand(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="An SQLite file, a dump of a table as SQL text, or redis://HOST.")
    ],
    table: Annotated[
        str, typer.Option(metavar="NAME", help="The table, if the file has several queues.", show_default=False)
    ] = "",
    prefix: Annotated[
        str, typer.Option(metavar="TEXT", help="How the keys in Redis begin: gearmand's --redis-prefix.")
    ] = gearmand_redis.PREFIX,
    redis_password_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file with the password of Redis.", show_default=False)
    ] = None,
    store: local_store.Store = None,
    config: local_store.Config = None,
    dry_run: DryRun = False,
    json: local_store.Json = False,
) -> None:
    """Add the jobs of a queue that gearmand wrote. The server must be stopped."""
    source = gearmand_redis.without_password(file)
    with local_store.plain_errors(source):
        if source.startswith(gearmand_redis.URL_START):
            password = connection_options.read_secret(redis_password_file) or ""
            queue = list(gearmand_queue.read_redis(file, prefix, password))
        else:
            queue = list(gearmand_queue.read(Path(file), table))
    _import(source, queue, store_import.GEARMAN, store, config, dry_run, json)


def import_periodic(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `periodic dump` wrote.")],
    store: local_store.Store = None,
    config: local_store.Config = None,
    dry_run: DryRun = False,
    json: local_store.Json = False,
) -> None:
    """Add the jobs of a dump of a Periodic server. Geartrain must be stopped."""
    with local_store.plain_errors(str(file)):
        queue = periodic_dump.read(file)
    _import(str(file), queue, store_import.PERIODIC, store, config, dry_run, json)


def _import(
    file: str, queue: list[QueuedJob], door: str, store: str | None, config: str | None, dry_run: bool, json: bool
) -> None:
    if dry_run:
        _print_contents(file, queue, json)
        return
    settings = local_store.settings(store, config)
    location = store_file.store(settings)
    line = progress.ProgressLine("importing")
    with local_store.plain_errors(str(location.path)), log.opened(log.STDERR, "warning", "text"):
        try:
            summary = store_import.add(location, queue, door, settings, line)
        finally:
            line.end()
    if json:
        print(msgspec.json.encode({"file": str(location.path), **summary._asdict()}).decode())
        return
    present = f"; {summary.present:,} already present by unique key" if summary.present else ""
    print(f"imported {progress.count_of(summary.jobs, 'job')} from {file} into {location.path}{present}")


def _print_contents(file: str, queue: list[QueuedJob], json: bool) -> None:
    counts = store_import.count(queue, time.time())
    if json:
        functions: list[dict[str, Any]] = [
            {**count._asdict(), "function": count.function.decode("utf-8", "replace")} for count in counts
        ]
        print(msgspec.json.encode({"jobs": len(queue), "functions": functions}).decode())
        return
    rows = ((formatting.value(_text(count.function)), *(f"{number:,}" for number in count[1:])) for count in counts)
    tables.print_lines(tables.table(_HEAD, rows, frozenset(_HEAD[1:])) if counts else [])
    print(f"{progress.count_of(len(queue), 'job')} in {file}; nothing was changed")


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")
