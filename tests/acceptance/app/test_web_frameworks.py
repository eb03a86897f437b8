"""docs/web-frameworks.md: its applications run as they are written, each with its own server and worker."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import pages, serving
from tests.support.http_peer import Peer, Stream
from tests.support.outbox_database import OutboxDatabase
from tests.support.waiting import wait_for
from tests.support.web_programs import UVICORN, task_worker, web_server

PAGE = "web-frameworks.md"
DJANGO = ("env", "DJANGO_SETTINGS_MODULE=project.settings", sys.executable, "-m")


@pytest.fixture(scope="module")
def folder(server: serving.ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the page, for the server of this test."""
    folder = tmp_path_factory.mktemp("web")
    pages.write_files(PAGE, folder, _4730=server.url)
    for package in ("project", "shop"):
        (folder / package / "__init__.py").touch()
    return folder


def ask(peer: Peer, method: str, path: str) -> Any:
    answer = peer.ask(method, path)
    assert answer.status in (200, 202), answer
    return json.loads(answer.data)


def test_fastapi(folder: Path) -> None:
    with web_server(folder, *UVICORN, "images:api") as peer:
        job = ask(peer, "POST", "/images/cat")["job"]
        assert ask(peer, "GET", f"/jobs/{job}") == {"state": "queued", "result": None}
        with Stream(peer.send("GET", f"/jobs/{job}/events")) as stream, task_worker(folder, "images:tasks"):
            lines = [line.decode().strip() for line in stream.response]
        events = [line for line in lines if line]
        assert events[-2:] == ["event: done", 'data: "cat.small"']
        assert set(events[:-2]) <= {"event: progress", "data: 33%", "data: 67%", "data: 100%"}
        assert "data: 100%" in events
        assert ask(peer, "GET", f"/jobs/{job}") == {"state": "done", "result": "cat.small"}


def test_flask(folder: Path) -> None:
    with web_server(folder, sys.executable, "-m", "flask", "--app", "reports:web", "run", "--port", "0") as peer:
        jobs = [ask(peer, "POST", f"/reports/{year}")["job"] for year in (2024, 1900)]
        assert ask(peer, "GET", f"/jobs/{jobs[0]}") == {"state": "queued"}
        with task_worker(folder, "reports:tasks"):
            for job in jobs:
                wait_for(lambda job=job: ask(peer, "GET", f"/jobs/{job}")["state"] in ("done", "dead"), "it has run")
        done, failed = (ask(peer, "GET", f"/jobs/{job}") for job in jobs)
    assert done == {"state": "done", "result": {"year": 2024, "orders": 42}}
    assert failed["state"] == "dead"
    assert "there are no figures before 2000" in failed["reason"]


def django(folder: Path, *words: str) -> str:
    ran = subprocess.run(
        [*DJANGO, "django", *words], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_django(folder: Path) -> None:
    django(folder, "makemigrations", "shop")
    django(folder, "migrate")
    application = ("--factory", "django.core.asgi:get_asgi_application", "--port", "0", "--lifespan", "off")
    with web_server(folder, *DJANGO, "uvicorn", *application) as peer:
        order = ask(peer, "GET", "/orders?email=ada@example.org")["order"]
        assert ask(peer, "GET", f"/orders/{order}") == {"sent": False, "job": "queued"}
        django(folder, "work", "--burst")
        assert ask(peer, "GET", f"/orders/{order}") == {"sent": True, "job": "done"}
    link = (
        "from django.contrib import admin; from shop.admin import OrderAdmin; from shop.models import Order;"
        f"print(OrderAdmin(Order, admin.site).job(Order.objects.get(pk={order})))"
    )
    assert re.search(
        r'<a href="http://127.0.0.1:4780/#/jobs/H%3A[^"]+">H:[^<]+</a>', django(folder, "shell", "-c", link)
    )
    _check_outbox(folder)


def _check_outbox(folder: Path) -> None:
    """The fragment that uses the outbox, on the database that Django made."""
    [fragment] = [block.text for block in pages.blocks(PAGE, "python") if not block.file]
    (folder / "fragment.py").write_text(fragment)
    create = (
        "from django.db import connection, transaction; from geartrain import outbox; import fragment\n"
        "connection.ensure_connection(); outbox.create_table(connection.connection)\n"
        "print(fragment.create_without_gap('bob@example.org').email)\n"
        "try:\n"
        "    with transaction.atomic():\n"
        "        fragment.create_without_gap('eve@example.org')\n"
        "        raise ValueError\n"
        "except ValueError:\n"
        "    pass\n"
    )
    assert django(folder, "shell", "-c", create).splitlines()[-1] == "bob@example.org"
    database = OutboxDatabase(f"sqlite://{folder}/project.db", create=False)
    assert database.waiting == 1
    assert database.query("SELECT email FROM shop_order ORDER BY id") == [("ada@example.org",), ("bob@example.org",)]
