"""docs/outbox.md: its programs and its console session work as they are written, and its statements are those used."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from geartrain import outbox
from tests.support import pages, serving
from tests.support.http_peer import Peer
from tests.support.outbox_database import OutboxDatabase
from tests.support.waiting import wait_for

URL = "gearman://127.0.0.1:4730"


def blocks(kind: str) -> list[str]:
    return [block.text for block in pages.blocks("outbox.md", kind)]


def test_the_tour(server: serving.ServerProcess, peer: Peer, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(blocks("python")[0])
    [session] = blocks("console")
    session = session.replace("sqlite:///srv", f"sqlite://{tmp_path}").replace(URL, server.url)
    for part in session.split("$ ")[1:]:
        command, _, output = part.partition("\n")
        program = {"python": [sys.executable], "geartrain": [str(serving.installed_command())]}[command.split()[0]]
        ran = subprocess.run(
            [*program, *command.split()[1:]], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
        )
        # A slow machine takes longer than the page says.
        assert re.sub(r"for \d+ seconds", "for 0 seconds", ran.stdout) == output
    assert peer.get("/functions/shop.send_receipt")["queued"] == 1


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
@pytest.mark.peer("postgresql-18")
def test_the_fragments(
    database: OutboxDatabase, server: serving.ServerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    async def program() -> None:
        await asyncio.to_thread(wait_for, lambda: database.waiting == 0, "the jobs were moved")

    names: dict[str, Any] = {"__name__": "page", "program": program}
    for text in blocks("python"):
        text = text.replace(URL, server.url).replace("...  # the program", "await program()  # the program")
        exec(compile(text, "outbox.md", "exec"), names)
    connection = database.connect()
    with connection:
        connection.execute("ALTER TABLE orders ADD total integer")
    connection.close()
    names["order"](database.url, 1)
    asyncio.run(names["order_async"](database.url, 2))
    assert sorted(database.query("SELECT number FROM orders")) == [(1,), (2,)]
    assert database.waiting == 2
    asyncio.run(names["with_a_relay"](database.url))
    assert capsys.readouterr().out == "2 jobs moved\n"


def test_the_statements_are_those_of_the_package() -> None:
    assert [text.strip() for text in blocks("sql")] == [outbox.POSTGRESQL_TABLE, outbox.SQLITE_TABLE]
