"""The verbs for operators over every protocol, and with several servers."""

import pytest

from tests.acceptance.cli.conftest import Geartrain, run
from tests.support import serving

CODE_FAILED = 1


def test_every_operator_verb_works_over_every_protocol(geartrain: Geartrain, url: str) -> None:
    handle = geartrain("submit", "asked", "payload").text.strip()
    assert "asked" in run(url, "status").text
    assert "asked" in run(url, "top", "--once").text
    assert handle in run(url, "jobs", "--function", "asked").text
    assert run(url, "show", handle, "--payload").out == b"payload"
    assert run(url, "workers", "nobody").text == "no workers\n"
    assert run(url, "pause", "asked").text == "asked paused\n"
    assert run(url, "resume", "asked").text == "asked resumed\n"
    assert run(url, "cancel", handle).text == f"{handle} cancelled\n"
    run(url, "retry", handle, code=CODE_FAILED)
    run(url, "delete", handle, code=CODE_FAILED)


def test_every_cron_verb_works_over_every_protocol(geartrain: Geartrain, url: str) -> None:
    assert "asked" in run(url, "cron", "add", "ask", "0 3 * * *", "asked", "--json").text
    assert "ask" in run(url, "cron", "list").text
    handle = run(url, "cron", "run", "ask").text.strip()
    assert run(url, "cron", "pause", "ask").text == "ask paused\n"
    assert run(url, "cron", "resume", "ask").text == "ask resumed\n"
    assert run(url, "cron", "remove", "ask").text == "ask removed\n"
    geartrain("cancel", handle)


@pytest.mark.parametrize("verb", [["status"], ["workers"], ["jobs"], ["top", "--once"], ["cron", "list"]])
def test_several_servers(server: serving.ServerProcess, verb: list[str]) -> None:
    run(f"gearman://127.0.0.1:1,{server.url}", *verb)
