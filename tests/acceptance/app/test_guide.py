"""docs/app.md: its programs, its tests and its console session work as they are written."""

import ast
import asyncio
import datetime
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from geartrain.app import App
from geartrain.errors import JobTimeoutError
from geartrain.testing import InMemory
from tests.support import apps, process, serving

GUIDE = Path(__file__).parents[3] / "docs" / "app.md"
URL = "gearman://127.0.0.1:4730"
BLOCK = re.compile(r"^```(python|console)(?: file=(\S+))?\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(kind: str) -> list[tuple[str, str]]:
    """File name and text of every example of a kind."""
    return [(name, text) for found, name, text in BLOCK.findall(GUIDE.read_text()) if found == kind]


def files(folder: Path, url: str) -> None:
    """The guide's files, for the server of this test."""
    for name, text in blocks("python"):
        if name:
            (folder / name).write_text(text.replace(URL, url))


@pytest.fixture(scope="module")
def fragments() -> dict[str, Any]:
    """Everything that the fragments define, one after the other, as in one program."""
    names: dict[str, Any] = {"InMemory": InMemory, "__name__": "guide"}
    for name, text in blocks("python"):
        if name != "test_shop.py":
            exec(compile(text, str(GUIDE), "exec"), names)
    return names


def test_first_example(server: serving.ServerProcess, tmp_path: Path) -> None:
    files(tmp_path, server.url)
    (_, session), (_, pool) = blocks("console")
    work, submit, output = session.splitlines()
    pool_command, *banner = pool.splitlines()
    assert pool_command.startswith("$ geartrain work shop:app ")
    assert (work, submit) == ("$ geartrain work shop:app &", "$ python shop.py")
    command = [str(serving.installed_command()), *pool_command.split()[2:]]
    worker = process.Process(command, tmp_path)
    try:
        program = [sys.executable, "shop.py"]
        answer = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
        assert answer.stdout.strip() == output
        assert worker.stderr.splitlines()[:4] == [line.replace(URL, server.url) for line in banner]
        worker.process.terminate()
        assert worker.wait() == 0
    finally:
        worker.kill()


def test_example_of_a_test(tmp_path: Path) -> None:
    files(tmp_path, URL)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_shop.py"]
    plain = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # the plugins of our own tests take a while to load
    answer = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False, env=plain)
    assert answer.returncode == 0, answer.stdout
    assert "1 passed" in answer.stdout


def test_fragments(fragments: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    app: App = fragments["app"]

    async def scenario() -> None:
        async with InMemory(app, now=datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC).timestamp() - 10) as memory:
            with pytest.raises(JobTimeoutError):
                await fragments["calls"]()  # in memory nobody runs a submitted task by itself
            await memory.drain()
            await fragments["options"]()
            assert await fragments["resize"].call(["a", "b"]) == 2
            mail = fragments["Mail"](to="Ada", subject="Hello")
            assert (await fragments["send"].call(mail, [Path("a.txt")])).subject == "Hello (1 files)"
            assert app.state.started
            for call in (fragments["charge"].bind("closed", 1), fragments["charge"].bind("open", 2_000_000)):
                await app.submit(call)
            memory.clock.advance(70)
            await memory.drain()
            closed, open_ = memory.of(fragments["charge"])
            assert (closed.reason, open_.reason) == ("the account is closed", "too much for today")
            memory.clock.advance(600)
            await memory.drain()
            assert {each.arguments["account"] for each in memory.of(fragments["check"])} == {"Ada", "Bob"}

    asyncio.run(scenario())
    said = capsys.readouterr().out
    assert "trace 4711" in said
    assert "checking Ada" in said


def test_dependencies(fragments: dict[str, Any]) -> None:
    fragments["run_with_test_db"]()
    with fragments["app"], fragments["clock"], InMemory(fragments["clock"]):
        assert fragments["clock"].state.started
    assert not vars(fragments["clock"].state)


def test_partitions(fragments: dict[str, Any]) -> None:
    assert fragments["run_two_tenants"]() == ["acme", "ada", "acme"]


def test_calls_with_a_server(fragments: dict[str, Any], server: serving.ServerProcess) -> None:
    app: App = fragments["app"]
    app.urls = (server.url,)

    async def scenario() -> None:
        async with apps.working(app):
            await fragments["calls"]()
            assert await fragments["count_all"](["one", "three"]) == 8

    asyncio.run(scenario())


def test_payload_example(fragments: dict[str, Any]) -> None:
    shown = re.search(r'^    (\{"v": 1.*\})$', GUIDE.read_text(), re.MULTILINE)
    assert shown is not None
    call = fragments["invoice"].bind(42, copies=2)
    call.id = "5f2c9a1e7b3d-1"
    assert ast.literal_eval(call.payload().decode()) == ast.literal_eval(shown[1])
