"""`geartrain load`: load a dump into a store."""

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from typing import IO, Annotated, BinaryIO

import msgspec
import typer

from geartrain.cli import local_store, progress
from geartrain.maintenance import running_server, store_commands
from geartrain.maintenance.store_commands import Summary
from geartrain.server.process import log

EPILOG = """
**All or nothing.** An invalid line is reported, and nothing is loaded. Jobs keep their handles, their order and their
attempts. New jobs get ids above those of the loaded ones.

**Running servers.** With `--server`, the dump is loaded into a server that runs with `--store memory`; the right
`admin` for all functions is needed. It is checked as a whole, and then sent in parts. If the connection ends in the
middle, load it again: what the server has is skipped. A server with a file is stopped first, and its store is named
with `--store`.

**Clusters.** A store on PostgreSQL is loaded while its servers run: they take over the jobs within seconds, and use the
schedules and settings. They have their own jobs in memory, so `--replace` is refused until they are stopped.

**Contents.** Jobs, records, schedules, and the pauses, limits and settings of functions.

**Conflicts.** Jobs, schedules and settings of the store stay as they are. A job of the dump that the store already has,
live or finished, counts as present. A job whose id, handle or unique key belongs to another job is reported and
skipped; with `--replace` it takes the place of the other. So does a schedule of the same name, and what is set for the
same function.

**Examples**

- `geartrain load jobs.dump` loads into the store of `geartrain serve`; stop that server first

- `zcat jobs.dump.gz | geartrain load -` reads standard input

- `geartrain load jobs.dump --store sqlite:///srv/new/jobs.db` creates a new store

- `geartrain load jobs.dump --store 'postgresql://geartrain@db/jobs'` loads into a cluster that runs, or starts later

- `geartrain load jobs.dump --server gearman://127.0.0.1:4730` loads into a server that runs with `--store memory`
"""

STDIN = "-"
_SPOOLED_BYTES = 64 * 1024 * 1024  # of standard input that are kept in memory
_REST = {
    "replaced": "of them replaced others",
    "present": "already present",
    "clashing": "skipped: their id, handle or unique key belongs to another job",
}


def load(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The dump; `-` for standard input.")],
    store: local_store.Store = None,
    config: local_store.Config = None,
    server: local_store.Server = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace what is in the store and conflicts with the dump.")
    ] = False,
    json: local_store.Json = False,
) -> None:
    """Load a dump into a store whose server is stopped, or into a running server whose store is in memory."""
    local_store.require_one(server, store, config)
    location = store_commands.find(local_store.settings(store, config)) if not server else None
    target = location.name if location is not None else str(server)
    line = progress.ProgressLine("loading")
    notices = progress.Notices(line)
    name = "stdin" if file == STDIN else file
    with local_store.plain_errors(name), _source(file) as lines, log.opened(log.STDERR, "warning", "text"):
        try:
            if location is not None:
                summary = location.load_dump(lines, name, replace, notices, line)
            else:
                summary = _load_into_server(target, lines, name, replace, notices, line)
        finally:
            notices.end()
    if json:
        print(msgspec.json.encode({"file": target, **summary._asdict()}).decode())
    else:
        counts = [progress.count_of(summary.jobs, "job"), progress.count_of(summary.records, "record")]
        if summary.values:
            counts.append(progress.count_of(summary.values, "setting"))
        loaded = " and ".join([", ".join(counts[:-1]), counts[-1]])
        print("; ".join([f"loaded {loaded} into {target}", *_rest(summary._asdict())]))


def _load_into_server(
    server: str,
    lines: BinaryIO,
    name: str,
    replace: bool,
    notices: progress.Notices,
    line: progress.ProgressLine,
) -> Summary:
    with _seekable(lines) as source:
        return local_store.ask_server(
            server, lambda ask: running_server.load_dump(ask, source, name, replace, notices, line)
        )


@contextlib.contextmanager
def _seekable(source: BinaryIO) -> Iterator[IO[bytes]]:
    """The dump, to be read several times: standard input and pipes are copied first."""
    if source.seekable():
        yield source
        return
    with tempfile.SpooledTemporaryFile(_SPOOLED_BYTES) as copy:
        shutil.copyfileobj(source, copy)
        copy.seek(0)
        yield copy


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
