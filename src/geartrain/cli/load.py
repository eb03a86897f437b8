"""`geartrain load`: a dump into a store that no server has open."""

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
**All or nothing.** A line that is wrong is named, and then nothing was loaded. Jobs keep their handles, their
places and their attempts; the store's ids go on above all of theirs.

**What is there already** is left as it is: the same job, waiting or over, is counted as present; a job whose id,
handle or unique key another job has is named and passed over. `--replace` puts the dump's in their place.

**Examples**

- `geartrain load jobs.dump` into the store that `geartrain serve` uses; stop that server first

- `zcat jobs.dump.gz | geartrain load -` from standard input

- `geartrain load jobs.dump --store sqlite:///srv/new/jobs.db` into a new store, which is made
"""

STDIN = "-"
_REST = {
    "replaced": "of them in the place of others",
    "present": "present already",
    "clashing": "not loaded because others have their id, handle or unique key",
}


def load(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What `geartrain dump` wrote; `-` for stdin.")],
    store: local_store.Store = None,
    config: local_store.Config = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Put the dump's jobs in the place of those that are in their way.")
    ] = False,
    json: local_store.Json = False,
) -> None:
    """Load a dump into a store that no server has open."""
    found = store_file.store(local_store.settings(store, config))
    bar = progress.Progress("loading")
    notices = progress.Notices(bar)
    name = "stdin" if file == STDIN else file
    with local_store.plain_errors(name), _source(file) as lines, log.opened(log.STDERR, "warning", "text"):
        try:
            summary = store_file.load_dump(found, lines, name, replace, notices, bar)
        finally:
            notices.end()
    if json:
        print(msgspec.json.encode({"file": str(found.path), **summary._asdict()}).decode())
    else:
        loaded = f"{progress.counted(summary.jobs, 'job')} and {progress.counted(summary.records, 'record')}"
        print("; ".join([f"loaded {loaded} into {found.path}", *_rest(summary._asdict())]))


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
