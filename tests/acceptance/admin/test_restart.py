"""Changes survive kill -9, and a graceful stop does not wait for tails."""

import contextlib
import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.admin.conftest import CONTROL, asker, ports_of
from tests.support import serving
from tests.support.gearman_peer import Kind, Peer

Start = Callable[..., contextlib.AbstractContextManager[serving.ServerProcess]]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """A server on the same file each time."""

    def serve(*flags: str) -> contextlib.AbstractContextManager[serving.ServerProcess]:
        return serving.serve("--store", f"sqlite://{tmp_path}/jobs.db", "--listen", "gearman://127.0.0.1:0", *flags)

    return serve


def test_answered_changes_survive_a_kill(start: Start) -> None:
    with start("--max-attempts", "2") as server:
        ask = asker(ports_of(server))
        ask("pause", function="f")
        ask("limit", function="g", high=3, normal=2, low=1)
        cron = ask("cron_set", name="nightly", expression="0 3 * * *", function="report", payload="in")["answer"]
        with Peer(server.port) as peer:
            handle = peer.submit(b"h", b"", b"", kind=Kind.SUBMIT_JOB_BG)
            for reason in ("first", "second"):
                peer.register(b"h").grab()
                assert ask("postpone", handle=handle.decode(), seconds=0, reason=reason) == {"answer": None}
        server.kill()
    with start() as server:
        ask = asker(ports_of(server))
        assert ask("function", name="f")["answer"]["paused"] is True
        assert ask("function", name="g")["answer"]["limits"] == [3, 2, 1]
        assert ask("crons")["answer"] == [cron]
        trials = ask("job", handle=handle.decode())["answer"]["trials"]
        assert [(trial["why"], trial["door"]) for trial in trials] == [("first", "gearman"), ("second", "gearman")]
        assert all(trial["ended_at"] >= trial["started_at"] > 0 for trial in trials)
        with Peer(server.port) as peer:
            peer.register(b"h").grab()
            peer.send(Kind.WORK_COMPLETE, handle, b"done").silence()
            job = ask("job", handle=handle.decode())["answer"]
            assert (job["state"], job["attempts"], len(job["trials"])) == ("done", 3, 2)
        assert ask("cron_remove", name="nightly") == {"answer": None}
        server.kill()
    with start() as server:
        ask = asker(ports_of(server))
        assert ask("crons")["answer"] == []
        assert len(ask("job", handle=handle.decode())["answer"]["trials"]) == 2


def test_a_graceful_stop_does_not_wait_for_tails(start: Start) -> None:
    with start() as server, Peer(server.port) as listener:
        handle = listener.submit(CONTROL, b"", b'{"do": "tail"}')
        listener.silence()
        server.signal(signal.SIGUSR1)
        listener.expect(Kind.WORK_COMPLETE, handle, b'{"answer":null}')
        assert server.wait() == 0


def test_the_control_function_can_be_turned_off(start: Start) -> None:
    with start("--no-control") as server, Peer(server.port) as client, Peer(server.port) as worker:
        worker.register(CONTROL)
        client.send(Kind.SUBMIT_JOB, CONTROL, b"", json.dumps({"do": "ping"}).encode())
        handle = client.body(Kind.JOB_CREATED)
        assert worker.grab().data == b'{"do": "ping"}'
        worker.send(Kind.WORK_COMPLETE, handle, b"mine")
        client.expect(Kind.WORK_COMPLETE, handle, b"mine")
