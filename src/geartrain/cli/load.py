"""`geartrain load`: load a dump into a store."""

import contextlib
import sys
from collections.abc import Iterator, Mapping
from typing import Annotated, BinaryIO

import msgspec
import typer

from geartrain.cli import local_store, progress
from geartrain.maintenance import store_file
from geartrain.server.process import log

EPILOG = """
**All or nothing.** An invalid line is reported, and nothing is loaded. Jobs keep their handles, their order and their
attempts. New jobs get ids above those of the loaded ones.

**Contents.** Jobs, records, schedules, and the pauses, limits and settings of functions.

**Conflicts.** Jobs, schedules and settings of the store stay as they are. A job of the dump that the store already has,
live or finished, counts as present. A job whose id, handle or unique key belongs to another job is reported and
skipped; with `--replace` it takes the place of the other. So does a schedule of the same name, and what is set for the
same function.

**Examples**

- `geartrain load jobs.dump` loads into the store of `geartrain serve`; stop that server first

- `zcat jobs.dump.gz | geartrain load -` reads standard input

- `geartrain load jobs.dump --store sqlite:///srv/new/jobs.db` creates a new store
"""

STDIN = "-"
_REST = {
    "replaced": "of them replaced others",
    "present": "already present",
    "clashing": "skipped: their id, handle or unique key belongs to another job",
}


def load(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The dump; `-` for standard input.")],
    store: local_store.Store = None,
    config: local_store.Config = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace what is in the store and conflicts with the dump.")
    ] = False,
    json: local_store.Json = False,
) -> None:
    """Load a dump into a store. The server must be stopped."""
    location = store_file.store(local_store.settings(store, config))
    line = progress.ProgressLine("loading")
    notices = progress.Notices(line)
    name = "stdin" if file == STDIN else file
    with local_store.plain_errors(name), _source(file) as lines, log.opened(log.STDERR, "warning", "text"):
        try:
            summary = store_file.load_dump(location, lines, name, replace, notices, line)
        finally:
            notices.end()
    if json:
        print(msgspec.json.encode({"file": str(location.path), **summary._asdict()}).decode())
    else:
        counts = [progress.count_of(summary.jobs, "job"), progress.count_of(summary.records, "record")]
        if summary.values:
            counts.append(progress.count_of(summary.values, "setting"))
        loaded = " and ".join([", ".join(counts[:-1]), counts[-1]])
        print("; ".join([f"loaded {loaded} into {location.path}", *_rest(summary._asdict())]))


def _rest(counts: Mapping[str, int]) -> Iterator[str]:
    for name, words in _REST.items():
        if counts[name]:
            yield f"{counts[name]:,} {words}"


@contextlib.contextmanager
def _source(file: str) -> Iterator[BinaryIO]:
    if file == STDIN:
        yield sys.stdin.buffer
        return
    with open(file, "rb") as source:
        yield source
