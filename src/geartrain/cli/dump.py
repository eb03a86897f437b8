"""`geartrain dump`: write the jobs of a store as lines of JSON, while a server uses it or not."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from geartrain.cli import local_store, progress
from geartrain.maintenance import running_server, store_commands
from geartrain.maintenance.dump_writer import DumpCounts

EPILOG = """
**Contents.** Every background job that is scheduled, queued, running or dead, every failed job that is kept whole, all
schedules, and the pauses, limits and settings of functions, in one consistent snapshot; with `--records` also the
records of other finished jobs. The last line has the counts, so that a truncated dump is detected. The format is
described in docs/dump-format.md. Payloads may be secret: only the owner can read a new FILE.

**Running servers.** With `--server`, the server itself sends its jobs, while it goes on working; the right `admin` for
all functions is needed. Every job that was accepted before is in the dump once, as it was at one moment, unless it
ended meanwhile.

**Examples**

- `geartrain dump jobs.dump` makes a backup, also while the server runs; `geartrain load jobs.dump` restores it

- `geartrain dump | gzip > jobs.dump.gz`, and later `zcat jobs.dump.gz | geartrain load -`

- `geartrain dump | grep '"state":"dead"'` prints the dead jobs with their reasons

- `geartrain dump --store sqlite:///var/lib/geartrain/jobs.db jobs.dump` dumps another store

- `geartrain dump --store 'postgresql://geartrain@db/jobs' jobs.dump` dumps the jobs of all servers of a cluster

- `geartrain dump --server gearman://jobs.example:4730 jobs.dump` dumps a server that runs, whatever its store
"""

STDOUT = "-"


def dump(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="The file to write; it appears when it is complete.", show_default="stdout"
        ),
    ] = STDOUT,
    store: local_store.Store = None,
    config: local_store.Config = None,
    server: local_store.Server = None,
    records: Annotated[bool, typer.Option("--records", help="Include the records of all finished jobs.")] = False,
) -> None:
    """Write the jobs of a store or of a running server as lines of JSON, for a backup or to move them."""
    local_store.require_one(server, store, config)
    location = store_commands.find(local_store.settings(store, config)) if not server else None
    if location is not None:
        location.require_existing()
    line = progress.ProgressLine("dumping")
    notices = progress.Notices(line)
    name = "stdout" if file == STDOUT else file
    with local_store.plain_errors(name), _exit_on_closed_pipe(), _target(file) as target:
        if location is not None:
            dumped = location.write_dump(records, target.write, notices, line)
        else:
            dumped = _dump_server(server or "", records, target.write, notices, line)
        notices.end()
    if file != STDOUT:
        counts = [progress.count_of(dumped.jobs, "job")]
        counts += [progress.count_of(dumped.records, "record")] if records or dumped.records else []
        counts += [progress.count_of(dumped.values, "setting")] if dumped.values else []
        text = " and ".join([", ".join(counts[:-1]), counts[-1]]) if len(counts) > 1 else counts[0]
        print(f"{text} in {file}")


def _dump_server(
    server: str,
    records: bool,
    write: Callable[[bytes], object],
    notices: progress.Notices,
    line: progress.ProgressLine,
) -> DumpCounts:
    return local_store.ask_server(server, lambda ask: running_server.write_dump(ask, records, write, notices, line))


@contextlib.contextmanager
def _target(file: str) -> Iterator[BinaryIO]:
    """Where the lines go. A file gets its name when it is complete."""
    if file == STDOUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(file).resolve()
    if path.exists() and not path.is_file():  # a pipe or a device is written to, not replaced
        with path.open("wb") as target:
            yield target
        return
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "wb") as target:
            yield target
            target.flush()
            os.fsync(target.fileno())
        os.rename(name, path)
        _sync_folder(path.parent)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise


def _sync_folder(folder: Path) -> None:
    """Sync the directory, so that the new name survives a power failure."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _exit_on_closed_pipe() -> Iterator[None]:
    """A closed pipe, as in `geartrain dump | head`, ends the command without a traceback."""
    try:
        yield
    except BrokenPipeError:
        # Python flushes stdout again at exit, and would report the closed pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1) from None
