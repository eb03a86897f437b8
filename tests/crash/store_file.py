"""A look into the store's file from outside, beside the server or after it."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from tests.support.peer import until


def query(path: Path, statement: str) -> list[tuple[Any, ...]]:
    with contextlib.closing(apsw.Connection(str(path), apsw.SQLITE_OPEN_READONLY)) as connection:
        connection.set_busy_timeout(5000)
        return connection.execute(statement).fetchall()


def wait_for(path: Path, statement: str, expected: Callable[[list[tuple[Any, ...]]], bool]) -> None:
    """Until the file says so: for what a server makes durable without telling anybody."""
    until(lambda: expected(query(path, statement)), f"{statement} as expected")
