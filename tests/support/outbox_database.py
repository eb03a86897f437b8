"""Databases with an outbox, for tests: an SQLite file, and a schema of a real PostgreSQL.

from tests.support.outbox_database import KINDS, OutboxDatabase, database
from tests.support.postgres_fixtures import cluster, clusters, schema

A test that takes `database` runs on both.
"""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from geartrain import outbox
from tests.support import postgres_programs

KINDS = [
    "sqlite",
    pytest.param("postgresql", marks=pytest.mark.peer(postgres_programs.PEERS[postgres_programs.NEWEST])),
]


class OutboxDatabase:
    """A database of a program, with a table of the program's own beside that of the outbox."""

    def __init__(self, url: str, create: bool = True) -> None:
        self.url = url
        if create:
            self._create_tables()

    def _create_tables(self) -> None:
        connection = self.connect()
        with connection:
            outbox.create_table(connection)
            outbox.create_table(connection)  # which does nothing then
            connection.execute("CREATE TABLE orders (number integer)")
        connection.close()

    @property
    def is_sqlite(self) -> bool:
        return self.url.startswith("sqlite://")

    def connect(self) -> Any:
        """A connection in a transaction: leaving its block commits, with an exception it rolls back."""
        if self.is_sqlite:
            return sqlite3.connect(self.url.removeprefix("sqlite://"), timeout=60)
        return psycopg.connect(self.url)

    def submit(self, *jobs: Any) -> None:
        """Write jobs in one transaction."""
        connection = self.connect()
        with connection:
            for job in jobs:
                outbox.submit(connection, job)
        connection.close()

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        connection = self.connect()
        with connection:
            rows = connection.execute(statement).fetchall()
        connection.close()
        return list(rows)

    @property
    def waiting(self) -> int:
        return int(self.query("SELECT count(*) FROM geartrain_outbox")[0][0])


@pytest.fixture(params=KINDS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OutboxDatabase]:
    if request.param == "sqlite":
        sqlite3.connect(tmp_path / "shop.db").close()
        yield OutboxDatabase(f"sqlite://{tmp_path}/shop.db")
        return
    cluster, schema = request.getfixturevalue("cluster"), request.getfixturevalue("schema")
    cluster.query(f"CREATE SCHEMA {schema}")
    yield OutboxDatabase(cluster.url(options=f"-csearch_path={schema}"))
