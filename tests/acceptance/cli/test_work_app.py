"""`geartrain work module:app`: supervised processes, selection, reload, burst, limits, logs and errors."""

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from geartrain import App
from tests.acceptance.cli.conftest import Geartrain
from tests.support import process, serving

DEAD = re.compile(r"worker process died, replacing it: (\d+), killed by SIGKILL")

# The task `hold` connects to the test, sends its process id, and waits until the test closes the connection.
SHOP = """
import logging, os, socket
from geartrain import App, current_task

app = App("{name}", "{url}")
log = logging.getLogger("shop.tasks")


@app.on_startup
def started() -> None:
    log.info("process has started")


@app.on_shutdown
async def stopped() -> None:
    log.info("process has stopped")


@app.task
async def greet(name: str) -> str:
    log.info("greeting %s", name)
    return "Hello, " + name


@app.task
def hold(port: int) -> int:
    with socket.create_connection(("127.0.0.1", port)) as test:
        test.sendall(b"%d\\n" % os.getpid())
        test.recv(1)
    return current_task().attempt


@app.task(name="{name}.mail.send")
def send() -> int:
    return os.getpid()
"""

Worker = Callable[..., process.Process]


class Shop:
    """The client's side of the same tasks."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.name = f"shop{os.getpid()}-{time.monotonic_ns()}"
        (folder / "shop.py").write_text(SHOP.replace("{name}", self.name).replace("{url}", url))
        self.app = App(self.name, url)
        self.greet = self.app.task(name=f"{self.name}.greet")(_greet)
        self.hold = self.app.task(name=f"{self.name}.hold")(_hold)
        self.send = self.app.task(name=f"{self.name}.mail.send")(_send)


class Gate:
    """Where running tasks wait for the test."""

    def __init__(self) -> None:
        self._listener = socket.create_server((serving.HOST, 0))
        self._listener.settimeout(process.PATIENCE)
        self._held: list[socket.socket] = []
        self.port: int = self._listener.getsockname()[1]

    def arrival(self) -> int:
        """Wait for the next task; returns the id of its process."""
        connection, _ = self._listener.accept()
        self._held.append(connection)
        with connection.makefile() as lines:
            return int(lines.readline())

    def open(self) -> None:
        """Let the tasks go on."""
        for connection in self._held:
            connection.close()
        self._held.clear()

    def close(self) -> None:
        self.open()
        self._listener.close()


def _greet(name: str) -> str:
    raise NotImplementedError


def _hold(port: int) -> int:
    raise NotImplementedError


def _send() -> int:
    raise NotImplementedError


@pytest.fixture
def shop(server: serving.ServerProcess, tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(tmp_path, server.url)
    with shop.app:
        yield shop


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.close()


@pytest.fixture
def start(shop: Shop) -> Iterator[Worker]:
    """Starts `geartrain work shop:app`; what is started ends with the test, without a traceback."""
    started: list[process.Process] = []

    def start(*words: str) -> process.Process:
        started.append(process.Process([str(serving.installed_command()), "work", "shop:app", *words], shop.folder))
        return started[-1]

    yield start
    for running in started:
        if running.process.poll() is None:
            running.process.terminate()
        with contextlib.suppress(AssertionError):
            running.wait()
        running.kill()
        assert "Traceback" not in running.stderr, running.account()


def test_a_killed_process_is_replaced_and_its_job_goes_back(shop: Shop, start: Worker, gate: Gate) -> None:
    worker = start("--processes", "2", "--concurrency", "1")
    handle = shop.hold.submit_sync(gate.port)
    killed = gate.arrival()
    os.kill(killed, signal.SIGKILL)
    successor = gate.arrival()  # another process got the job
    assert successor != killed
    gate.open()
    assert handle.result(60) == 2  # the second attempt, as a plain function sees it
    assert worker.says("worker process died")
    assert DEAD.findall(worker.stderr) == [str(killed)]
    _wait_until(lambda: len(_children(worker.pid) - {killed}) == 2)


def _wait_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + process.PATIENCE
    while not reached():
        assert time.monotonic() < deadline


def _children(pid: int) -> set[int]:
    return {int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


def test_sigterm_drains_all_processes(shop: Shop, start: Worker, gate: Gate) -> None:
    worker = start("--processes", "2", "--concurrency", "1")
    handle = shop.hold.submit_sync(gate.port)
    gate.arrival()
    worker.process.send_signal(signal.SIGTERM)
    assert worker.says("stopping")
    gate.open()
    assert handle.result(60) == 1
    assert worker.wait() == 0
    assert worker.stderr.count("process has stopped") == worker.stderr.count("process has started") >= 1


def test_stop_timeout_gives_the_job_back(shop: Shop, start: Worker, gate: Gate) -> None:
    worker = start("--stop-timeout", "100ms")
    handle = shop.hold.submit_sync(gate.port)
    gate.arrival()
    worker.process.send_signal(signal.SIGTERM)
    assert worker.wait() == 0
    start()
    gate.arrival()
    gate.open()
    assert handle.result(60) == 2


def test_a_pool_whose_supervisor_is_killed_ends(shop: Shop, start: Worker) -> None:
    worker = start("--processes", "2")
    assert shop.greet.submit_sync("Ada").result(60) == "Hello, Ada"
    children = _children(worker.pid)
    worker.process.kill()
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            asyncio.run(_ended(child))


async def _ended(pid: int) -> None:
    descriptor = os.pidfd_open(pid)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(descriptor, ended.set)
    async with asyncio.timeout(process.PATIENCE):
        await ended.wait()
    asyncio.get_running_loop().remove_reader(descriptor)
    os.close(descriptor)


@pytest.mark.parametrize("limit", [("--max-tasks-per-process", "2"), ("--max-memory", "1")], ids=["tasks", "memory"])
def test_a_process_that_reaches_a_limit_is_replaced(shop: Shop, start: Worker, limit: tuple[str, str]) -> None:
    worker = start(*limit, "--concurrency", "1")
    runs = [shop.send.submit_sync().result(60) for _ in range(4)]
    assert len(set(runs)) >= 2
    assert worker.says("limit reached")
    worker.process.terminate()
    assert worker.wait() == 0
    assert "died" not in worker.stderr


def test_burst_ends_when_nothing_is_left(shop: Shop, start: Worker) -> None:
    handles = [shop.greet.submit_sync(str(number)) for number in range(20)]
    delayed = shop.greet.with_options(delay=3600).submit_sync("later")
    worker = start("--burst", "--processes", "2", "--log-level", "warning")
    assert worker.wait() == 0, worker.account()
    assert [handle.result(10) for handle in handles] == [f"Hello, {number}" for number in range(20)]
    assert delayed.state() == "scheduled"
    delayed.cancel()


def test_only_and_exclude(shop: Shop, start: Worker, geartrain: Geartrain) -> None:
    shop.greet.submit_sync("Ada")
    sent = shop.send.submit_sync()
    worker = start("--burst", "--only", "mail.*,greet", "--exclude", "gre*")
    assert worker.wait() == 0
    assert isinstance(sent.result(10), int)
    assert geartrain("jobs", "--function", f"{shop.name}.greet", "--json").json["state"] == "queued"


def test_reload(shop: Shop, start: Worker) -> None:
    worker = start("--reload")
    assert shop.greet.submit_sync("Ada").result(60) == "Hello, Ada"
    file = shop.folder / "shop.py"
    text = file.read_text()
    file.write_text("this is no Python")
    assert worker.says("waiting for a change of its files")
    assert "SyntaxError" in worker.stderr
    file.write_text(text.replace("Hello", "Good morning"))
    assert shop.greet.submit_sync("Ada").result(60) == "Good morning, Ada"


def test_start_lines_and_one_line_per_task(shop: Shop, start: Worker, server: serving.ServerProcess) -> None:
    worker = start("--concurrency", "7")
    handle = shop.greet.submit_sync("Ada")
    handle.result(60)
    assert worker.says("task done")
    lines = worker.stderr.splitlines()
    assert lines[:4] == [
        f"app      {shop.name} (shop:app)",
        f"tasks    {shop.name}.greet, {shop.name}.hold, {shop.name}.mail.send",
        f"servers  {server.url}",
        "slots    7",
    ]
    stamp = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3} info "
    assert any(re.fullmatch(rf"{stamp}shop.tasks\[{worker.pid}\]  greeting Ada", line) for line in lines)
    [done] = [line for line in lines if "task done" in line]
    assert re.fullmatch(
        rf"{stamp}app\[{worker.pid}\]  task done: {shop.name}\.greet, attempt 1, started \d\d:\d\d:\d\d\.\d{{3}}, "
        rf"took \d+\.\d{{3}} s, id {handle.id}, job {handle.handle}",
        done,
    )


def test_log_in_json(shop: Shop, start: Worker) -> None:
    worker = start("--log-json")
    handle = shop.greet.submit_sync("Ada")
    handle.result(60)
    assert worker.says("task done")
    events = [json.loads(line) for line in worker.stderr.splitlines()]
    [done] = [event for event in events if event["message"].startswith("task done")]
    assert (done["task"], done["attempt"], done["id"]) == (f"{shop.name}.greet", 1, handle.id)
    assert {event["room"] for event in events} >= {"app", "shop.tasks", "pool"}


def test_no_server_is_said_once(shop: Shop, start: Worker) -> None:
    worker = start("--server", "gearman://127.0.0.1:9", "--processes", "3")
    assert worker.says("cannot connect")
    worker.process.terminate()
    assert worker.wait() == 0
    assert worker.stderr.count("cannot") == 1


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_wrong_target_is_one_clear_error(shop: Shop, processes: str) -> None:
    done = serving.run_command(shop.folder, "work", "shop:application", "--processes", processes)
    assert done.returncode == 1
    assert done.stderr == "geartrain: shop:application: module 'shop' has no 'application'; its apps: app\n"


def test_a_wrong_selection_is_one_clear_error(shop: Shop) -> None:
    done = serving.run_command(shop.folder, "work", "shop:app", "--only", "greetings")
    assert done.returncode == 1
    assert done.stderr.startswith(f"geartrain: app {shop.name!r} has no task 'greetings'; it has ")
