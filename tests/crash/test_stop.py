"""Stopping in good order, under load and with jobs at work: nothing is lost, and no job pays for it."""

import http.client
import json
import random
import threading
from pathlib import Path

from tests.crash import store_file
from tests.crash.conftest import Start
from tests.crash.load import Account, load
from tests.crash.test_kill import EARLIEST, LATEST, check_after_restart, drain
from tests.support.gearman_peer import Kind, Peer, worker

LIVES = 12
CLIENTS = 4
WORKFLOW_JOBS = 4000
CONTROL_JOBS = 200  # more than are answered before the server stops


def test_no_acknowledged_job_is_lost_by_stopping_under_load(start: Start, path: Path, seed: int) -> None:
    """What arrives while the server stops is acknowledged and kept, or neither."""
    chance = random.Random(seed)
    account = Account()
    for life in range(LIVES):
        with start() as server, Peer(server.port) as peer:
            check_after_restart(peer, account, f"after life {life}")
            with load(server.port, account, chance.randrange(2**32), str(life)):
                threading.Event().wait(chance.uniform(EARLIEST, LATEST))
                server.stop()
        assert account.problems == []
    with start() as server:
        with Peer(server.port) as peer:
            check_after_restart(peer, account, "at the end")
        drain(server.port, account)
    assert account.problems == []


def test_stop_costs_a_running_job_neither_an_attempt_nor_its_place(start: Start) -> None:
    handles: list[bytes] = []
    for _ in range(3):
        with start("--max-attempts", "2") as server, Peer(server.port) as client:
            if not handles:
                handles = [client.submit(b"f", b"", data, kind=Kind.SUBMIT_JOB_BG) for data in (b"1", b"2")]
            with worker(server.port, b"f") as taker:
                assert taker.grab().handle == handles[0]
                assert client.listing("show jobs")[0] == [handles[0], b"0", b"0", b"1"]
                server.stop()


def test_ids_go_on_where_they_were_after_a_stop(start: Start) -> None:
    numbers = []
    for _ in range(3):
        with start() as server, Peer(server.port) as client:
            handle = client.submit(b"f", kind=Kind.SUBMIT_JOB_BG)
            numbers.append(int(handle.rpartition(b":")[2]))
    assert numbers == [numbers[0], numbers[0] + 1, numbers[0] + 2]


def test_graceful_stop_keeps_what_was_finished_meanwhile(start: Start, path: Path) -> None:
    with start() as server, Peer(server.port) as client, worker(server.port, b"f") as taker:
        first, second = (client.submit(b"f", b"", data, kind=Kind.SUBMIT_JOB_BG) for data in (b"1", b"2"))
        assert taker.grab().handle == first
        client.text("shutdown graceful")
        assert client.line() == b"OK\r\n"
        taker.send(Kind.WORK_COMPLETE, first, b"done")
        assert server.wait() == 0
    assert store_file.query(path, "SELECT handle FROM jobs") == [(second,)]
    assert store_file.query(path, "SELECT handle, result FROM records") == [(first, b"done")]


def test_no_job_is_acknowledged_that_arrives_while_control_jobs_are_cancelled(start: Start, seed: int) -> None:
    """What operators have asked for takes some turns of the event loop to cancel, in which clients go on."""
    chance = random.Random(seed)
    account = Account()
    for life in range(LIVES):
        attempt, name = chance.randrange(2**32), str(life)
        with start() as server, Peer(server.port) as operator, load(server.port, account, attempt, name):
            for _ in range(CONTROL_JOBS):
                operator.send(Kind.SUBMIT_JOB, b"geartrain.control", b"", b'{"do": "pause", "function": "other"}')
            threading.Event().wait(chance.uniform(EARLIEST, LATEST))
            server.stop()
    with start() as server:
        with Peer(server.port) as peer:
            check_after_restart(peer, account, "at the end")
        drain(server.port, account)
    assert account.problems == []


def test_no_workflow_is_acknowledged_that_is_not_stored(start: Start, path: Path) -> None:
    """A large one takes several turns of the event loop, in which the server may be told to stop."""
    body = json.dumps({"jobs": [{"function": "load", "payload": f"{number}"} for number in range(WORKFLOW_JOBS)]})
    acknowledged = []
    for _ in range(LIVES):
        with start("--listen", "http://127.0.0.1:0") as server:
            port = int(server.urls[1].rpartition(":")[2])
            submits = threading.Barrier(CLIENTS + 1)

            def submit(port: int = port, submits: threading.Barrier = submits) -> None:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                connection.connect()
                submits.wait()
                try:
                    connection.request("POST", "/api/v1/workflows", body, {"Content-Type": "application/json"})
                    response = connection.getresponse()
                    answer = json.loads(response.read())
                except (OSError, http.client.HTTPException):
                    return  # it was not acknowledged
                finally:
                    connection.close()
                if response.status < 300:
                    acknowledged.append(answer["handle"].encode())

            clients = [threading.Thread(target=submit) for _ in range(CLIENTS)]
            for client in clients:
                client.start()
            submits.wait()
            server.stop()
            for client in clients:
                client.join()
    stored = {handle for (handle,) in store_file.query(path, "SELECT handle FROM jobs")}
    assert set(acknowledged) <= stored
