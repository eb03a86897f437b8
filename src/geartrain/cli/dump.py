"""`geartrain dump`: the jobs of a store as lines of JSON, whether or not a server has it open."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from geartrain.cli import local_store, progress
from geartrain.maintenance import store_file

EPILOG = """
**What is in it.** Every background job that waits, runs or is dead, as it is at this moment, and with `--records`
what became of finished ones. The last line has their numbers, so that a dump that was cut off is noticed.
docs/dump-format.md describes every line. Payloads may be secret: a new FILE can be read by its owner only.

**Examples**

- `geartrain dump jobs.dump` is a backup, made while the server runs; `geartrain load jobs.dump` reads it

- `geartrain dump | gzip > jobs.dump.gz`, and later `zcat jobs.dump.gz | geartrain load -`

- `geartrain dump | grep '"state":"dead"'` shows the jobs that were given up, with the reason for each

- `geartrain dump --store sqlite:///var/lib/geartrain/jobs.db jobs.dump` names another store
"""

STDOUT = "-"


def dump(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="Where to; it appears when it is complete.", show_default="stdout"),
    ] = STDOUT,
    store: local_store.Store = None,
    config: local_store.Config = None,
    records: Annotated[bool, typer.Option("--records", help="Also what became of the jobs that are over.")] = False,
) -> None:
    """Write a store's jobs as lines of JSON: to back them up, to move them, to look at them."""
    found = store_file.existing(local_store.settings(store, config))
    bar = progress.Progress("dumping")
    notices = progress.Notices(bar)
    name = "stdout" if file == STDOUT else file
    with local_store.plain_errors(name), _quiet_when_nobody_reads(), _target(file) as target:
        dumped = store_file.write_dump(found.path, records, target.write, notices, bar)
        notices.end()
    if file != STDOUT:
        also = f" and {progress.counted(dumped.records, 'record')}" if records else ""
        print(f"{progress.counted(dumped.jobs, 'job')}{also} in {file}")


@contextlib.contextmanager
def _target(file: str) -> Iterator[BinaryIO]:
    """Where the lines go; a file of the name that was asked for is never seen half written."""
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
        _settle(path.parent)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise


def _settle(folder: Path) -> None:
    """The new name is on the disk as well: a backup is no good if it is gone after a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _quiet_when_nobody_reads() -> Iterator[None]:
    """`geartrain dump | head` ends when head does, without a word."""
    try:
        yield
    except BrokenPipeError:
        # Python would flush stdout once more at its end, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1) from None
