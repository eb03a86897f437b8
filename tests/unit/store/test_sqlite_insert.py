"""Many rows are inserted with few statements, and in their order."""

from collections.abc import Iterator

import apsw
import pytest

from geartrain.store import schema, sqlite_jobs, sqlite_records
from geartrain.store.sqlite_insert import RowInsert

INSERT = RowInsert("pairs", ("name", "kind", "value"), values=(schema.MARK, "'usual'", schema.MARK))


@pytest.fixture
def connection() -> Iterator[apsw.Connection]:
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE pairs (number INTEGER PRIMARY KEY, name, kind, value)")
    yield connection
    connection.close()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 127, 128, 129, 255, 1000])
def test_every_row_is_inserted_once_and_in_order(connection: apsw.Connection, count: int) -> None:
    INSERT.execute(connection, [(f"name {number}", number) for number in range(count)])
    rows = connection.execute("SELECT name, kind, value FROM pairs ORDER BY number").fetchall()
    assert rows == [(f"name {number}", "usual", number) for number in range(count)]


@pytest.mark.parametrize(("count", "most"), [(1, 1), (64, 1), (128, 1), (127, 7), (1000, 15)])
def test_few_statements(connection: apsw.Connection, count: int, most: int) -> None:
    steps: list[str] = []

    def note(cursor: apsw.Cursor, statement: str, values: object) -> bool:
        steps.append(statement)
        return True

    connection.exec_trace = note
    INSERT.execute(connection, [("name", number) for number in range(count)])
    assert len(steps) <= most


def test_statements_stay_prepared(connection: apsw.Connection) -> None:
    """Also the largest, which apsw would not keep if it were longer."""
    rows = [(1, "name")] * 128
    INSERT.execute(connection, rows)
    prepared = connection.cache_stats()["misses"]
    INSERT.execute(connection, rows)
    assert connection.cache_stats()["misses"] == prepared


def test_a_later_row_replaces_an_earlier_one(connection: apsw.Connection) -> None:
    replacing = RowInsert("pairs", ("number", "name"), otherwise="OR REPLACE")
    replacing.execute(connection, [(1, "old"), (2, "other"), (1, "new")])
    assert connection.execute("SELECT number, name FROM pairs").fetchall() == [(1, "new"), (2, "other")]


@pytest.mark.parametrize("insert", [sqlite_jobs._SAVE, sqlite_jobs._SAVE_SHORT, sqlite_records._ADD_RECORDS])
def test_no_statement_of_the_store_is_too_long_to_be_kept(connection: apsw.Connection, insert: RowInsert) -> None:
    assert max(map(len, insert._statements.values())) < connection.cache_stats()["max_cacheable_bytes"]
