"""A backlog several times larger than the memory for payloads: every one arrives, whole and in order, at every door."""

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from geartrain import jsonbytes
from geartrain.model import Job
from geartrain.store.dump import DumpReader
from tests.support import danga_peer, serving
from tests.support.gearman_peer import Kind, Peer
from tests.support.http_peer import Peer as HttpPeer
from tests.support.metrics import scrape, value
from tests.support.serving import ServerProcess

COUNT = 300
SIZE = 10_000
BUDGET = "200kB"  # a fifteenth of the payloads
FUNCTION = b"large"
LISTEN = ("--listen", "gearman://127.0.0.1:0", "--listen", "http://127.0.0.1:0", "--listen", "danga://127.0.0.1:0")
GEARMONKEY = ("--listen", "gearmonkey://127.0.0.1:0")


def payload(number: int) -> bytes:
    return b"%06d:" % number + bytes([number % 256]) * SIZE


class Backlog:
    """A server with the jobs 0 to COUNT - 1, which nobody has taken yet."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        self.http = HttpPeer(server.urls[1])
        with Peer(server.port) as client:
            self.handles = [
                client.submit(FUNCTION, b"key-%d" % number, payload(number), kind=Kind.SUBMIT_JOB_BG)
                for number in range(COUNT)
            ]

    def handle(self, number: int) -> str:
        return self.handles[number].decode()

    def port(self, door: int) -> int:
        return int(self.server.urls[door].rpartition(":")[2])


@pytest.fixture
def backlog(tmp_path: Path) -> Iterator[Backlog]:
    with start(tmp_path) as server:
        yield Backlog(server)


def start(folder: Path, budget: str = BUDGET) -> contextlib.AbstractContextManager[ServerProcess]:
    store = f"sqlite://{folder}/jobs.db"
    return serving.serve("--store", store, "--payload-memory", budget, *LISTEN, *GEARMONKEY)


def drain(port: int, first: int = 0) -> None:
    """Take every job until the server says that there is none: it must not say so while there are some."""
    with Peer(port).register(FUNCTION) as worker:
        for number in range(first, COUNT):
            given = worker.take()
            assert given is not None, f"job {number} was not handed out"
            assert given.data == payload(number)
            worker.send(Kind.WORK_COMPLETE, given.handle, b"")
        assert worker.take() is None


def test_every_payload_arrives_in_order(backlog: Backlog) -> None:
    drain(backlog.server.port)


def test_after_kill_every_payload_arrives_in_order(tmp_path: Path) -> None:
    with start(tmp_path) as server:
        backlog = Backlog(server)
        with Peer(server.port).register(FUNCTION) as worker:
            for number in range(100):
                given = worker.grab()
                assert given.data == payload(number)
                worker.send(Kind.WORK_COMPLETE, given.handle, b"")
                worker.silence()
        backlog.http.call("POST", f"/jobs/{backlog.handle(299)}/cancel")
        server.kill()
    with start(tmp_path) as server, Peer(server.port).register(FUNCTION) as worker:
        taken = []
        while (given := worker.take()) is not None:
            taken.append(given.data)
            worker.send(Kind.WORK_COMPLETE, given.handle, b"")
    # Ends of jobs may not have been written yet; an acknowledged submission always is.
    assert taken == [payload(number) for number in range(COUNT - len(taken), COUNT)] or taken == [
        payload(number) for number in range(COUNT - 1 - len(taken), COUNT - 1)
    ]
    assert len(taken) >= 199


def test_without_a_limit_all_payloads_are_in_memory(tmp_path: Path) -> None:
    with start(tmp_path, "0") as server:
        backlog = Backlog(server)
        assert value(scrape(backlog.http), "geartrain_cold_jobs") == 0
        drain(server.port)


def test_metrics_say_where_payloads_are(backlog: Backlog) -> None:
    found = scrape(backlog.http)
    in_memory, on_disk = (value(found, "geartrain_payload_bytes", place=place) for place in ("memory", "disk"))
    assert 0 < in_memory <= 200_000
    assert in_memory + on_disk == COUNT * len(payload(0))
    assert value(found, "geartrain_cold_jobs") == on_disk / len(payload(0))
    assert value(found, "geartrain_queued_bytes") == in_memory + 512 * COUNT


def test_operators_see_payloads_that_are_on_disk(backlog: Backlog) -> None:
    http, last = backlog.http, COUNT - 1
    assert http.call("GET", f"/jobs/{backlog.handle(last)}/payload").data == payload(last)
    view = http.get(f"/jobs/{backlog.handle(last)}")
    assert (view["payload_size"], view["payload"][:7]) == (len(payload(last)), "000299:")
    listed = http.get("/jobs?limit=5")["items"]
    assert [job["payload"][:7] for job in listed] == [f"{last - place:06}:" for place in range(5)]
    found = http.get("/jobs?search=000250:")["items"]
    assert [job["handle"] for job in found] == [backlog.handle(250)]
    http.call("POST", f"/jobs/{backlog.handle(250)}/cancel")
    assert http.get("/jobs?search=000250:&state=queued")["items"] == []


def test_the_oldest_protocol_gets_them_too(backlog: Backlog) -> None:
    with danga_peer.Peer(backlog.port(2)).connect(FUNCTION) as worker:
        for number in range(COUNT):
            job = worker.take()
            assert job is not None, f"job {number} was not handed out"
            assert job.args == payload(number)
            worker.finish()


def test_workers_by_http_get_them_without_waiting_for_new_ones(backlog: Backlog) -> None:
    worker = backlog.http.worker("large")
    for number in range(40):
        job = worker.claim()
        assert job is not None, f"job {number} was not handed out"
        assert jsonbytes.decode(job["payload"]) == payload(number)
        worker.complete(job["handle"])


def test_gearmonkey_reads_the_input_of_a_job_that_is_on_disk(backlog: Backlog) -> None:
    last = backlog.handle(COUNT - 1).rpartition(":")[2].encode()
    with socket.create_connection(("127.0.0.1", backlog.port(3))) as peer:
        peer.sendall(resp(b"HGET", b"job:large:" + last, b"input") + resp(b"HGET", b"job:large:" + last, b"status"))
        expected = b"$%d\r\n%b\r\n$4\r\nidle\r\n" % (len(payload(0)), payload(COUNT - 1))
        received = b""
        while len(received) < len(expected):
            part = peer.recv(65536)
            assert part, received
            received += part
    assert received == expected


def test_a_dump_has_every_payload(backlog: Backlog, tmp_path: Path) -> None:
    file = tmp_path / "all.dump"
    command = [sys.executable, "-m", "geartrain", "dump", str(file), "--server", backlog.server.url]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    with file.open("rb") as lines:
        entries = list(DumpReader().read(lines))
    assert [entry.payload for entry in entries if isinstance(entry, Job)] == [payload(n) for n in range(COUNT)]


def resp(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
