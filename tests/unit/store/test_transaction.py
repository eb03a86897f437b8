"""Transactions: everything in the block or nothing, and no other way to make one."""

import contextlib
import re
from pathlib import Path

import apsw
import pytest

import geartrain.store
from geartrain.store.transaction import transaction

# apsw's context manager, which keeps Python's global lock while it commits.
OF_APSW = re.compile(r"^\s+with (.*, )?(self\._)?connection\b(\(\))?( as \w+)?:|^\s+with .*_connected\(\) as ")


@pytest.fixture
def connection() -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE numbers (number INTEGER CHECK (number > 0))")
    return connection


def numbers(connection: apsw.Connection) -> list[int]:
    return [number for (number,) in connection.execute("SELECT number FROM numbers")]


def test_block_is_committed(connection: apsw.Connection) -> None:
    with transaction(connection):
        connection.execute("INSERT INTO numbers VALUES (1)")
        assert connection.in_transaction
    assert not connection.in_transaction
    assert numbers(connection) == [1]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_block_that_raises_is_rolled_back(connection: apsw.Connection, error: type[BaseException]) -> None:
    with contextlib.suppress(error), transaction(connection):
        connection.execute("INSERT INTO numbers VALUES (1)")
        raise error
    assert not connection.in_transaction
    assert numbers(connection) == []


def test_failed_statement_rolls_back_the_others(connection: apsw.Connection) -> None:
    with pytest.raises(apsw.ConstraintError), transaction(connection):
        connection.executemany("INSERT INTO numbers VALUES (?)", [(1,), (-1,)])
    assert numbers(connection) == []


def test_failed_commit_is_rolled_back(connection: apsw.Connection) -> None:
    connection.set_commit_hook(lambda: True)
    with pytest.raises(apsw.ConstraintError), transaction(connection):
        connection.execute("INSERT INTO numbers VALUES (1)")
    assert not connection.in_transaction
    assert numbers(connection) == []


def test_store_has_no_other_transactions() -> None:
    assert OF_APSW.search("        with contextlib.suppress(apsw.Error), connection:")
    for file in Path(geartrain.store.__path__[0]).glob("*.py"):
        lines = file.read_text().splitlines()
        assert [line for line in lines if OF_APSW.search(line)] == [], file.name
