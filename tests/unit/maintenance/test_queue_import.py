"""Queues that gearmand wrote, and what is taken for one by mistake.

The fixtures are dumps of tables that Debian's gearmand 1.1.20 wrote, made by pg_dump 15 and mariadb-dump 10.11 with and
without options. The file of its SQLite plugin is read in `tests/acceptance/test_from_gearmand.py`.
"""

import sqlite3
from pathlib import Path

import pytest

from geartrain.errors import StoreError
from geartrain.maintenance.queue_import import gearmand_queue
from geartrain.maintenance.queue_import.queued_job import QueuedJob
from geartrain.model import Priority

FIXTURES = Path(__file__).with_name("fixtures")
DUMPS = ("postgresql", "postgresql-inserts", "mariadb", "mariadb-hex")
NASTY = b"it's \\x41 a\ttab\nline);\n('u','f',1,'x',0); -- \"quoted\" \\. \\N \\\\"
JOBS = [
    QueuedJob(b"reverse", b"u0", b"pay\0load0\xff", Priority.HIGH),
    QueuedJob(b"reverse", b"u1", b"pay\0load1\xff"),
    QueuedJob(b"reverse", b"u2", b"pay\0load2\xff", Priority.LOW),
    QueuedJob(b"reverse", b"", b"nouni"),
    QueuedJob(b"nasty", b"all-bytes", bytes(range(256)), Priority.HIGH),
    QueuedJob(b"nasty", b"it's \\ unique", NASTY, Priority.LOW),
    QueuedJob("nästy function".encode(), "ü".encode(), "Zoë".encode()),
    QueuedJob(b"nasty", b"empty payload", b""),
    QueuedJob(b"report", b"lat", b"later", run_at=2082855845.0),
]


def read(path: Path, table: str = "") -> list[QueuedJob]:
    return list(gearmand_queue.read(path, table))


@pytest.mark.parametrize("name", DUMPS)
def test_dump_of_a_database(name: str) -> None:
    assert read(FIXTURES / f"gearmand-{name}.sql") == JOBS


@pytest.mark.parametrize("name", DUMPS)
def test_truncated_dump_is_refused_or_has_all_rows(name: str, tmp_path: Path) -> None:
    """Never some of the rows of a statement: a dump of single inserts may end between two of them."""
    whole = (FIXTURES / f"gearmand-{name}.sql").read_bytes()
    cut = tmp_path / "cut.sql"
    single = name in ("postgresql-inserts", "mariadb-hex")
    for size in range(len(whole) // 2, len(whole), 7):
        cut.write_bytes(whole[:size])
        try:
            jobs = read(cut)
        except StoreError:
            continue
        assert jobs in ([], JOBS) or (single and jobs == JOBS[: len(jobs)])


def test_queues_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "queues.db"
    with sqlite3.connect(path) as database:
        for table in ("mail", "resize"):
            database.execute(f"CREATE TABLE {table} (unique_key TEXT, function_name TEXT, priority INTEGER, data BLOB)")
            database.execute(f"INSERT INTO {table} VALUES ('1', '{table}', 1, x'00')")
    database.close()
    with pytest.raises(StoreError, match="has the queues mail, resize; choose one with --table"):
        read(path)
    assert read(path, "resize") == [QueuedJob(b"resize", b"1", b"\0")]
    with pytest.raises(StoreError, match="has no table nothing of gearmand; its tables are: mail, resize"):
        read(path, "nothing")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"PGDMP\1\x0e", "a dump of PostgreSQL in its custom format"),
        (b"REDIS0011", "a file of Redis; start Redis with it and use `geartrain import gearmand redis://"),
        (b"ToKyO CaBiNeT\n", "a Tokyo Cabinet file"),
        (b"\x1f\x8b\x08", "compressed with gzip"),
        (b'{"geartrain":"dump","version":5}\n', "a dump of Geartrain; use `geartrain load`"),
        (b"root:x:0:0\n", "neither an SQLite file nor a text dump of a database"),
        (b"INSERT INTO `t` VALUES ('1", "damaged or truncated"),
        (b"INSERT INTO `t` VALUES ('1');", "a row of t with 1 values for 0 columns"),
        (b"INSERT INTO `t` (`a`) VALUES ('1');", "has no table of gearmand; its tables are: t"),
        (b"", "is empty"),
    ],
)
def test_other_files_are_named(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=said):
        read(path)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("('u', '', 1, 'x', 0)", "row 1 has no function"),
        ("('u', 'f', 3, 'x', 0)", "priority is 3"),
        ("('u', 'f', 1, 'x', -5)", "when_to_run is -5"),
        ("('u', 'f', 'high', 'x', 0)", "priority is b'high'"),
    ],
)
def test_invalid_rows_are_named(row: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "queue.sql"
    columns = "unique_key, function_name, priority, data, when_to_run"
    path.write_text(f"INSERT INTO queue ({columns}) VALUES {row};\n")
    with pytest.raises(StoreError, match=said):
        read(path)
