"""Dumps of a Periodic server, and what is taken for one by mistake.

The original server is no peer of the tests, so the bytes are written out from its format. What a server of ours sends
as a DUMP is imported in `tests/acceptance/periodic/test_import.py`.
"""

from pathlib import Path

import pytest

from geartrain.errors import StoreError
from geartrain.maintenance.queue_import import periodic_dump
from geartrain.maintenance.queue_import.queued_job import QueuedJob

# Each job: function, name, payload, time, version, and what the version says that follows.
DUMP = bytes.fromhex(
    "0000000000000004"
    "046d61696c 0161 00000002 00ff 000000005b7cb720 00"
    "046d61696c 0162 00000000 0000000000000000 01 00000003"
    "046d61696c 012d 00000000 ffffffffffffffff 02 0000001e"
    "06726573697a65 0163 00000001 78 00000000ee6b2800 03 fffffff9 00000009"
)
JOBS = [
    QueuedJob(b"mail", b"a", b"\0\xff", run_at=1534900000.0),
    QueuedJob(b"mail", b"b", b"", steps=3),
    QueuedJob(b"mail", b"-", b"", timeout=30.0),
    QueuedJob(b"resize", b"c", b"x", run_at=4_000_000_000.0, timeout=9.0, steps=-7),
]
# Of 2018: a count instead of a version and what follows.
OLD_DUMP = bytes.fromhex(
    "0000000000000002"
    "046d61696c 0161 00000002 00ff 000000005b7cb720 00000000"
    "046d61696c 0162 00000000 0000000000000000 00000005"
)  # fmt: skip
OLD_JOBS = [JOBS[0], QueuedJob(b"mail", b"b", b"", steps=5)]


def read(folder: Path, content: bytes) -> list[QueuedJob]:
    path = folder / "jobs.dump"
    path.write_bytes(content)
    return periodic_dump.read(path)


@pytest.mark.parametrize(("content", "jobs"), [(DUMP, JOBS), (OLD_DUMP, OLD_JOBS), (bytes(8), [])])
def test_jobs(content: bytes, jobs: list[QueuedJob], tmp_path: Path) -> None:
    assert read(tmp_path, content) == jobs


@pytest.mark.parametrize("content", [DUMP, OLD_DUMP])
def test_truncated_dump_is_refused(content: bytes, tmp_path: Path) -> None:
    for size in range(len(content)):
        with pytest.raises(StoreError, match="damaged or truncated" if size else "is empty"):
            read(tmp_path, content[:size])


def test_place_of_the_damage(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="job 4, near byte"):
        read(tmp_path, DUMP[:-1])
    with pytest.raises(StoreError, match="2 bytes follow the last of 4 jobs"):
        read(tmp_path, DUMP + b"\0\0")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"SQLite format 3\0", "an SQLite database, a store of Geartrain or of periodicd"),
        (b"PGDMP\1\x0e", "a dump of PostgreSQL; start its server"),
        (b"--\n-- PostgreSQL database dump\n", "a dump of PostgreSQL; start its server"),
        (b"\0RES\0\0\0\5", "a frame of Periodic's protocol"),
        (b"\x1f\x8b\x08", "compressed with gzip"),
        (b'{"geartrain":"dump","version":5}\n', "a dump of Geartrain; use `geartrain load`"),
        (b"root:x:0:0\n", "not a dump of a Periodic server, or is damaged or truncated: job 1"),
        (b"", "is empty"),
    ],
)
def test_other_files_are_named(content: bytes, said: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=said):
        read(tmp_path, content)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file"):
        periodic_dump.read(tmp_path / "none")
