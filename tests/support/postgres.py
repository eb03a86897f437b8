"""A real PostgreSQL with a data directory of its own: started in a second or two, killed and restarted at will.

    with postgres.running() as cluster, cluster.connect() as connection:
        connection.execute("SELECT 1")

The tests share one cluster per process and version (`tests/support/postgres_fixtures.py`) and get a schema each. A test
that kills or configures PostgreSQL runs one of its own. `fsync` is on, as everywhere, unless the test says otherwise.
"""

import contextlib
import functools
import itertools
import os
import signal
import subprocess
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from tests.support import daemon, postgres_programs, scratch, serving

USER = "postgres"  # the superuser of every cluster here, who needs no password
PREFIX = "geartrain-postgresql-"

_serial = itertools.count(1)


class Cluster(daemon.Daemon):
    """A data directory, and the server on it while that runs."""

    ready = ("ready to accept connections", "ready to accept read-only connections")

    def __init__(self, programs: postgres_programs.Programs, folder: Path, **settings: str) -> None:
        super().__init__(folder)  # of the data, and of the socket file
        self.name = f"PostgreSQL {programs.version}"
        self.programs = programs
        self.settings = settings  # of postgresql.conf, by the command line

    def url(self, database: str = USER, **parameters: str) -> str:
        """By TCP; parameters of libpq, or of ours such as `schema`."""
        return url(database, f"{USER}@{serving.HOST}:{self.port}", parameters)

    def socket_url(self, database: str = USER, **parameters: str) -> str:
        """By the socket file."""
        return url(database, f"{USER}@", {"host": str(self.folder), "port": str(self.port), **parameters})

    def connect(self, database: str = USER) -> "psycopg.Connection[tuple[Any, ...]]":
        """A connection in which each statement is a transaction."""
        return psycopg.connect(self.socket_url(database), autocommit=True)

    def query(self, statement: str, database: str = USER) -> list[tuple[Any, ...]]:
        """The rows of one statement."""
        with self.connect(database) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def initialize(self) -> None:
        """An empty data directory: a copy of what initdb makes once per process."""
        copy = ("cp", "--recursive", "--reflink=auto", str(_template(self.programs)), str(self.folder))
        subprocess.run(postgres_programs.unprivileged(*copy), check=True, cwd=self.folder.parent)

    def stop(self) -> None:
        """Roll back what is under way, and end in order."""
        self.end(signal.SIGINT)

    def signal(self, number: signal.Signals) -> None:
        """To the postmaster and all its backends: SIGSTOP is what a machine that hangs looks like."""
        for pid in scratch.processes_in(self.folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def command(self, port: int) -> list[str]:
        own = {"listen_addresses": serving.HOST, "port": str(port), "unix_socket_directories": str(self.folder)}
        options = [f"--{name}={value}" for name, value in {**own, **self.settings}.items()]
        return self.programs.command("postgres", "-D", str(self.folder), *options)


def url(database: str, authority: str, parameters: dict[str, str]) -> str:
    query = urllib.parse.urlencode(parameters, quote_via=urllib.parse.quote)
    return f"postgresql://{authority}/{database}" + (f"?{query}" if query else "")


def new_cluster(version: int = postgres_programs.NEWEST, **settings: str) -> Cluster:
    """A cluster with an empty data directory, not started yet."""
    cluster = Cluster(postgres_programs.find(version), new_folder("data"), **settings)
    cluster.initialize()
    return cluster


@contextlib.contextmanager
def running(version: int = postgres_programs.NEWEST, **settings: str) -> Iterator[Cluster]:
    """A cluster of its own, that is removed at the end of the block."""
    cluster = new_cluster(version, **settings)
    try:
        cluster.start()
        yield cluster
    finally:
        discard(cluster)


def discard(cluster: Cluster) -> None:
    """Kill whatever there is of it, and remove its data."""
    scratch.clear(cluster.folder)
    cluster.kill()


@contextlib.contextmanager
def fresh_database(cluster: Cluster) -> Iterator[str]:
    """The name of an empty database, which is dropped at the end of the block."""
    name = f"test_{next(_serial)}"
    cluster.query(f"CREATE DATABASE {name}")
    try:
        yield name
    finally:
        cluster.query(f"DROP DATABASE {name} WITH (FORCE)")


@contextlib.contextmanager
def fresh_schema(cluster: Cluster) -> Iterator[str]:
    """A name for a schema that does not exist yet; it is dropped at the end of the block if it does then."""
    name = f"test_{next(_serial)}"
    try:
        yield name
    finally:
        cluster.query(f"DROP SCHEMA IF EXISTS {name} CASCADE")


def new_folder(name: str) -> Path:
    """A place for a data directory or a socket file, removed with the process at the latest. Nothing is there yet."""
    return _home().path / f"{name}-{next(_serial)}"


@functools.cache
def _home() -> scratch.Scratch:
    """Of this process; its end removes it."""
    home = scratch.Scratch(PREFIX)
    postgres_programs.hand_over(home.path)
    return home


@functools.cache
def _template(programs: postgres_programs.Programs) -> Path:
    """What initdb makes, once for all clusters of this process and version."""
    folder = new_folder(f"initdb-{programs.version}")
    options = ("--username", USER, "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync")
    programs.run("initdb", "--pgdata", str(folder), *options, cwd=folder.parent)
    return folder
