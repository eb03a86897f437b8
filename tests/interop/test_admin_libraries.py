"""The administrative clients of the Python libraries, each with its own idea of where an answer ends."""

import json
import sys
from typing import Any

import pytest

from tests.interop import libraries
from tests.interop.peer import Dial, Spawn
from tests.support import serving
from tests.support.gearman_peer import Kind, Peer


@pytest.fixture
def busy(dial: Dial, function: str) -> tuple[Peer, str]:
    """A named worker that runs one of two jobs, and the handle of the one that waits."""
    worker = dial().register(function.encode())
    worker.send(Kind.SET_CLIENT_ID, f"worker-of-{function}".encode()).silence()
    client = dial()
    client.submit(function.encode(), f"first-{function}".encode(), kind=Kind.SUBMIT_JOB_BG)
    worker.grab()
    waiting = client.submit(function.encode(), f"second-{function}".encode(), kind=Kind.SUBMIT_JOB_BG)
    return worker, waiting.decode()


def answer(spawn: Spawn, target: serving.ServerProcess, script: str, *request: str) -> str:
    asked = spawn(sys.executable, str(libraries.HERE / "peers" / script), serving.HOST, str(target.port), *request)
    assert asked.wait() == 0, asked.account()
    return "\n".join(asked.lines)


class TestPython3Gearman:
    """All but `send_maxqueue`, which falls over the CR that every Gearman server puts after its OK."""

    pytestmark = pytest.mark.peer("python3-gearman")

    @staticmethod
    def ask(spawn: Spawn, target: serving.ServerProcess, *request: str) -> Any:
        return json.loads(answer(spawn, target, "python3_gearman_admin.py", *request))

    def test_status(self, spawn: Spawn, target: serving.ServerProcess, busy: tuple[Peer, str], function: str) -> None:
        rows = self.ask(spawn, target, "get_status")
        assert {"task": function, "queued": 2, "running": 1, "workers": 1} in rows

    def test_workers(self, spawn: Spawn, target: serving.ServerProcess, busy: tuple[Peer, str], function: str) -> None:
        rows = {row["client_id"]: row for row in self.ask(spawn, target, "get_workers")}
        row = rows[f"worker-of-{function}"]
        assert (row["ip"], row["tasks"]) == (serving.HOST, [function])

    def test_version(self, spawn: Spawn, target: serving.ServerProcess) -> None:
        assert self.ask(spawn, target, "get_version").startswith("OK ")

    def test_ping(self, spawn: Spawn, target: serving.ServerProcess) -> None:
        assert self.ask(spawn, target, "ping_server") > 0

    @pytest.mark.differs_from_gearmand
    def test_shutdown(self, spawn: Spawn, own_target: serving.ServerProcess) -> None:
        """gearmand no longer has the command."""
        self.ask(spawn, own_target, "send_shutdown")
        assert own_target.wait() == 0


class TestGear:
    pytestmark = pytest.mark.peer("gear")

    @staticmethod
    def ask(spawn: Spawn, target: serving.ServerProcess, *request: str) -> list[str]:
        return answer(spawn, target, "gear_admin.py", *request).splitlines()

    def test_status(self, spawn: Spawn, target: serving.ServerProcess, busy: tuple[Peer, str], function: str) -> None:
        lines = self.ask(spawn, target, "Status")
        assert f"{function}\t2\t1\t1" in lines
        assert lines[-1] == "."

    def test_workers(self, spawn: Spawn, target: serving.ServerProcess, busy: tuple[Peer, str], function: str) -> None:
        lines = self.ask(spawn, target, "Workers")
        assert any(line.endswith(f" {serving.HOST} worker-of-{function} : {function}") for line in lines)

    def test_version(self, spawn: Spawn, target: serving.ServerProcess) -> None:
        [line] = self.ask(spawn, target, "Version")
        assert line.startswith("OK ")

    def test_show_jobs(
        self, spawn: Spawn, target: serving.ServerProcess, busy: tuple[Peer, str], function: str
    ) -> None:
        assert f"{busy[1]}\t0\t0\t1" in self.ask(spawn, target, "ShowJobs")

    def test_show_unique_jobs(
        self, spawn: Spawn, target: serving.ServerProcess, busy: tuple[Peer, str], function: str
    ) -> None:
        assert {f"first-{function}", f"second-{function}"} <= set(self.ask(spawn, target, "ShowUniqueJobs"))

    def test_cancel_job(
        self, spawn: Spawn, target: serving.ServerProcess, busy: tuple[Peer, str], function: str
    ) -> None:
        worker, waiting = busy
        assert self.ask(spawn, target, "CancelJob", waiting) == ["OK"]
        assert worker.take() is None
        assert self.ask(spawn, target, "CancelJob", waiting) == ["ERR UNKNOWN_JOB"]


class TestAiogear:
    pytestmark = pytest.mark.peer("aiogear")

    @staticmethod
    def ask(spawn: Spawn, target: serving.ServerProcess, *request: str) -> Any:
        return json.loads(answer(spawn, target, "aiogear_admin.py", *request))

    def test_status(self, spawn: Spawn, target: serving.ServerProcess, busy: tuple[Peer, str], function: str) -> None:
        row = {"function": function, "total": 2, "running": 1, "available_workers": 1}
        assert row in self.ask(spawn, target, "status")

    def test_workers(self, spawn: Spawn, target: serving.ServerProcess, busy: tuple[Peer, str], function: str) -> None:
        rows = {row["name"]: row for row in self.ask(spawn, target, "workers")}
        row = rows[f"worker-of-{function}"]
        assert (row["ip_address"], row["functions"]) == (serving.HOST, [function])

    @pytest.mark.parametrize("command", ["version", "verbose"])
    def test_one_line_answers(self, spawn: Spawn, target: serving.ServerProcess, command: str) -> None:
        assert self.ask(spawn, target, command).startswith("OK ")

    def test_maxqueue(self, spawn: Spawn, target: serving.ServerProcess, function: str) -> None:
        assert self.ask(spawn, target, "maxqueue", function) == "OK"

    @pytest.mark.differs_from_gearmand
    def test_shutdown(self, spawn: Spawn, own_target: serving.ServerProcess) -> None:
        """gearmand no longer has the command."""
        assert self.ask(spawn, own_target, "shutdown") == "OK"
        assert own_target.wait() == 0
