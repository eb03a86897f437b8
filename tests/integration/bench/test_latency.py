"""The load that does not wait for the server: what it counts, what it refuses, and short runs on real servers."""

import contextlib
import json
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench import contenders, gearman_load, latency, run
from tests.support import serving

TWO_CORES = pytest.mark.skipif(not contenders.PINNED, reason="the servers and the load need a core each")
PUSH_SIZE = len(b"*3\r\n$5\r\nLPUSH\r\n$7\r\nlatency\r\n$64\r\n") + 64 + len(b"\r\n")
JOBS = 100

Play = Callable[[list[socket.socket]], None]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return gearman_load.compile_into(tmp_path_factory.mktemp("load"), latency.SOURCE)


@contextlib.contextmanager
def played(play: Play) -> Iterator[int]:
    """A server for one load, played by a function that gets its connections."""
    with socket.create_server(("127.0.0.1", 0)) as listener, contextlib.ExitStack() as stack:

        def serve() -> None:
            peers = [stack.enter_context(listener.accept()[0]) for _ in range(latency.CONNECTIONS)]
            with contextlib.suppress(ConnectionError):  # a load that gives up hangs up
                play(peers)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            thread.join(60)
            assert not thread.is_alive()


def requests_of(peer: socket.socket, count: int) -> None:
    """Read so many requests."""
    left = count * PUSH_SIZE
    while left:
        data = peer.recv(min(left, 65536))
        assert data
        left -= len(data)


def share_of(number: int) -> int:
    """How many of the jobs a connection has: they take turns."""
    return JOBS // latency.CONNECTIONS + (number < JOBS % latency.CONNECTIONS)


@pytest.mark.peer("cc")
def test_jobs_come_whether_or_not_the_server_answers(program: Path) -> None:
    """It answers when it has all requests. The first jobs have waited longest, from when they were due."""

    def play(peers: list[socket.socket]) -> None:
        for number, peer in enumerate(peers):
            requests_of(peer, share_of(number))
        for number, peer in enumerate(peers):
            peer.sendall(b":1\r\n" * share_of(number))

    with played(play) as port:
        found = latency.run(program, port, "push", 2000, JOBS)
    assert found["jobs"] == JOBS
    assert found["most"] >= found["p999"] >= found["p99"] > found["p50"] > 0
    assert found["late_most"] >= found["late_p99"] >= found["late_p50"] >= 0


@pytest.mark.peer("cc")
@pytest.mark.parametrize("by", [1, 3, 1000])
def test_a_closed_load_has_a_window(program: Path, by: int) -> None:
    """Each connection sends so many requests and no more, until they are answered; however the answers are cut."""
    jobs = latency.CONNECTIONS * latency.WINDOW * 2

    def play(peers: list[socket.socket]) -> None:
        for _ in range(2):
            for peer in peers:
                requests_of(peer, latency.WINDOW)
                peer.setblocking(False)
                with pytest.raises(BlockingIOError):
                    peer.recv(1)
                peer.setblocking(True)
            for peer in peers:
                answers = b":1000\r\n" * latency.WINDOW
                for at in range(0, len(answers), by):
                    peer.sendall(answers[at : at + by])

    with played(play) as port:
        found = latency.run(program, port, "push", 0, jobs)
    assert found["jobs"] == jobs
    assert found["late_most"] == 0


@pytest.mark.peer("cc")
def test_a_refusal_is_told(program: Path) -> None:
    def play(peers: list[socket.socket]) -> None:
        requests_of(peers[0], 1)
        peers[0].sendall(b"-OOM command not allowed\r\n")

    with played(play) as port, pytest.raises(gearman_load.LoadError, match="did not accept a job: -OOM command"):
        latency.run(program, port, "push", 1000, JOBS)


@pytest.mark.peer("cc")
@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        ("4730", 2, "usage: latency_load PORT WORK RATE"),
        ("4730 sideways 1 1 1 1 1", 2, 'WORK is foreground, background, put or push, not "sideways"'),
        ("4730 foreground 1 1 1 1 0", 2, 'WORKERS must be a number from 1 to 10000, not "0"'),
        ("1 background 1 1 1 1 0", 1, "cannot connect to 127.0.0.1:1: Connection refused"),
    ],
)
def test_the_load_says_what_is_wrong(program: Path, words: str, code: int, reason: str) -> None:
    done = subprocess.run([str(program), *words.split()], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, reason in done.stderr) == (code, True), done.stderr


@pytest.mark.peer("cc")
@pytest.mark.parametrize("rate", [0, 2000])
@pytest.mark.parametrize("work", ["foreground", "background"])
def test_jobs_of_a_real_server(program: Path, server: serving.ServerProcess, work: str, rate: int) -> None:
    found = latency.run(program, server.port, work, rate, 300)
    assert found["jobs"] == 300
    assert found["most"] >= found["p50"] > 0


@TWO_CORES
@pytest.mark.peer("cc", "gearmand", "redis-server")
def test_a_whole_run(tmp_path: Path) -> None:
    """beanstalkd takes part where it is installed."""
    file = tmp_path / "found.json"
    latency.main(["--quick", "--json", str(file), "--svg", str(tmp_path)])
    found = json.loads(file.read_text())
    assert found["failures"] == []
    rows = {row["row"]: row for row in found["rows"]}
    assert len(rows) == 2 * (1 + 3 * 3)
    for key in ("latency", "durable-latency"):
        assert all(each["median"] > 0 for each in rows[f"{key}-rate"]["contenders"])
        for share in latency.SHARES:
            names = [each["name"] for each in rows[f"{key}-{share}-p99"]["contenders"]]
            figures = [rows[f"{key}-{share}-{name}"]["contenders"] for name in latency.PERCENTILES]
            for p50, p99, p999 in zip(*figures, strict=True):
                assert 0 < p50["median"] <= p99["median"] <= p999["median"]
                assert p999["rounds"][0]["late_p99"] >= 0
            assert {"latency": "gearmand", "durable-latency": "Redis lists, on disk"}[key] in names
        ElementTree.fromstring((tmp_path / f"bench-{key}.svg").read_text())


@TWO_CORES
@pytest.mark.peer("cc")
def test_without_gearmand_the_rate_is_our_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(run, "absent_peers", lambda board: {"gearmand": "a test has taken it away"})
    file = tmp_path / "found.json"
    assert run.main(["--quick", "--only", "latency-30-p50", "--json", str(file)]) == 1  # a peer is missing
    [row] = json.loads(file.read_text())["rows"]
    assert [each["name"] for each in row["contenders"]] == ["Geartrain, memory"]
