"""kill -9 while a workflow is submitted and while it runs: all of it is there or nothing, and its callback runs once.

pytest tests/crash/test_workflow_after_kill.py --crash-rounds 20 --workflow-members 100000
"""

import contextlib
import http.client
import random
import threading
import time

import pytest

from tests.crash.conftest import ROUNDS as USUAL_ROUNDS
from tests.crash.conftest import Start
from tests.support import serving
from tests.support.gearman_peer import Kind
from tests.support.gearman_peer import Peer as Gearman
from tests.support.http_peer import Peer

HTTP = ("--listen", "http://127.0.0.1:0")
FUNCTION = "f"
CALLBACK = b"callback"
ROUNDS = 1  # unless told
KILLS = 3  # of one workflow


@pytest.fixture
def members(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--workflow-members", 300))


@pytest.fixture
def workflows(rounds: int) -> int:
    return rounds if rounds != USUAL_ROUNDS else ROUNDS


def body(members: int) -> dict[str, object]:
    jobs: list[dict[str, object]] = [{"function": FUNCTION, "payload": str(number)} for number in range(members)]
    jobs.append({"function": FUNCTION, "payload": CALLBACK.decode(), "after": list(range(members))})
    return {"name": "crash", "jobs": jobs}


def run_jobs(server: serving.ServerProcess, most: int) -> list[bytes]:
    """Run up to so many jobs, each acknowledged by what follows it; return their payloads."""
    done = []
    with Gearman(server.port).register(FUNCTION.encode()) as worker:
        while len(done) < most and (job := worker.take()) is not None:
            worker.send(Kind.WORK_COMPLETE, job.handle, b"")
            done.append(job.data)
        worker.silence()
    return done


def test_a_callback_runs_once_after_all_members(start: Start, members: int, workflows: int, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(workflows):
        with start(*HTTP) as server:
            handle = Peer(server.urls[1]).post("/workflows", body(members))["handle"]
            server.kill()
        ran: set[bytes] = set()
        left = members
        for _ in range(KILLS):
            with start(*HTTP) as server:
                shown = Peer(server.urls[1]).get(f"/workflows/{handle}?limit=1")
                assert shown["state"] == "running", f"workflow {number}: {shown}"
                left = sum(shown["states"].get(state, 0) for state in ("queued", "running"))
                done = run_jobs(server, chance.randrange(1, max(left, 2)) if left > 1 else 0)
                assert CALLBACK not in done
                ran.update(done)
                server.kill()
        with start(*HTTP) as server:
            done = run_jobs(server, members + 1)
            assert done.count(CALLBACK) == 1
            assert done[-1] == CALLBACK
            ran.update(done)
            assert len(ran) == members + 1, "every member ran"
            shown = Peer(server.urls[1]).get(f"/workflows/{handle}?limit=1")
            assert (shown["state"], shown["count"]) == ("done", members + 1)


def test_a_workflow_is_there_as_a_whole_or_not_at_all(start: Start, members: int, workflows: int, seed: int) -> None:
    chance = random.Random(seed)
    whole = 0
    with start(*HTTP) as server:
        peer = Peer(server.urls[1])
        began = time.monotonic()
        handle = peer.post("/workflows", body(members))["handle"]
        longest = 1.5 * (time.monotonic() - began)
        assert peer.call("POST", f"/jobs/{handle}/cancel").status == 200
    for _ in range(workflows * 3):
        with start(*HTTP) as server:
            peer = Peer(server.urls[1])
            before = peer.get("/overview")["blocked"]
            acknowledged: list[str] = []
            sending = threading.Thread(target=_submit, args=(peer, members, acknowledged))
            sending.start()
            threading.Event().wait(chance.uniform(0.0, longest))
            server.kill()
            sending.join()
        with start(*HTTP) as server:
            overview = Peer(server.urls[1]).get("/overview")
            has = overview["queued"] + overview["blocked"]
            assert has in (0, members + 2), f"a part of a workflow is there: {has} (before: {before})"
            assert has or not acknowledged, "it was acknowledged"
            whole += bool(has)
            if has:
                assert len(run_jobs(server, members + 1)) == members + 1
    print(f"{whole} of {workflows * 3} were accepted")


def _submit(peer: Peer, members: int, acknowledged: list[str]) -> None:
    with contextlib.suppress(OSError, http.client.HTTPException):  # the server was killed before it could answer
        acknowledged.append(peer.post("/workflows", body(members))["handle"])
