"""Real NNG programs as MemoDB clients and workers: nngcat (Debian's nng) and pynng (a newer nng)."""

import contextlib
import hashlib
import re
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import cbor2
import pytest

from tests.interop import libraries
from tests.interop.peer import Spawn, told
from tests.support import process, serving
from tests.support.memodb_peer import Pipe
from tests.support.peer import until

PLACES = ("tcp", "ipc", "ws")
NO_RESEND = -1
MANY = 200


@pytest.fixture(scope="module")
def nng_server() -> Iterator[serving.ServerProcess]:
    places = ["memodb+tcp://127.0.0.1:0", "memodb+ipc:///proc/self/cwd/door.sock", "memodb+ws://127.0.0.1:0/memo"]
    with serving.serve("--store", "memory", *(word for place in places for word in ("--listen", place))) as server:
        yield server


def url_of(server: serving.ServerProcess, place: str) -> str:
    """Where NNG programs find a door."""
    if place == "ipc":
        return f"ipc://{server.home}/door.sock"
    [url] = [url for url in server.urls if url.startswith(f"memodb+{place}:")]
    return url.removeprefix("memodb+")


def port_of(server: serving.ServerProcess) -> int:
    return int(url_of(server, "tcp").rpartition(":")[2])


class Peers:
    """Starts pynng scripts."""

    def __init__(self, spawn: Spawn) -> None:
        self._spawn = spawn

    def client(
        self, url: str, service: str, payload: bytes, contexts: int = 1, resend: int = 60_000
    ) -> process.Process:
        arguments = [url, service, str(contexts), str(resend)]
        client = self._spawn(*libraries._python("pynng_client.py"), *arguments, stdin=True)
        client.write(payload, end=True)
        return client

    def worker(self, url: str, service: str, contexts: int = 1, gate: bool = False) -> process.Process:
        arguments = [url, service, str(contexts), str(int(gate))]
        worker = self._spawn(*libraries._python("pynng_worker.py"), *arguments, stdin=True)
        worker.wait_for_line("ready\t")
        return worker


def heard(client: process.Process) -> list[str]:
    assert client.wait() == 0, client.account()
    return [told(line) for line in client.lines]


@pytest.fixture
def pynng(spawn: Spawn) -> Peers:
    return Peers(spawn)


@pytest.mark.peer("pynng")
@pytest.mark.parametrize("place", PLACES)
def test_pynng_on_both_sides(nng_server: serving.ServerProcess, pynng: Peers, function: str, place: str) -> None:
    url = url_of(nng_server, place)
    pynng.worker(url, function)
    assert heard(pynng.client(url, function, b"abc")) == ["complete 0 cba"]


@pytest.mark.peer("pynng")
@pytest.mark.parametrize("place", PLACES)
def test_hundreds_of_contexts_on_one_socket(
    nng_server: serving.ServerProcess, pynng: Peers, function: str, place: str
) -> None:
    worker = pynng.worker(url_of(nng_server, "tcp"), function, contexts=20)
    client = pynng.client(url_of(nng_server, place), function, b"job", contexts=MANY)
    assert heard(client) == [f"complete {f'job {number}'[::-1]}" for number in range(MANY)]
    assert sum(line.startswith("running") for line in worker.lines) == MANY


@pytest.mark.peer("pynng")
@pytest.mark.parametrize("place", PLACES)
def test_eight_megabytes(nng_server: serving.ServerProcess, pynng: Peers, function: str, place: str) -> None:
    url = url_of(nng_server, place)
    payload = bytes(range(256)) * (8 * 1024 * 4)
    pynng.worker(url, function)
    client = pynng.client(url, function, payload)
    assert client.wait() == 0, client.account()
    digest = hashlib.sha256((payload + b" 0")[::-1]).hexdigest()
    assert client.lines == [f"complete\t{digest}"]


class Proxy:
    """Passes on what a client and the server say to each other, and counts the client's requests."""

    def __init__(self, port: int) -> None:
        self._listener = socket.create_server((serving.HOST, 0))
        self.url = f"tcp://{serving.HOST}:{self._listener.getsockname()[1]}"
        self._port = port
        self._changed = threading.Condition()
        self.requests = 0
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._run)]
        self._threads[0].start()

    def wait_for_requests(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.requests >= count, process.PATIENCE), self.requests

    def close(self) -> None:
        for sock in self._sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(process.PATIENCE)
        for sock in (*self._sockets, self._listener):
            sock.close()

    def _run(self) -> None:
        client, _ = self._listener.accept()
        server = socket.create_connection((serving.HOST, self._port))
        self._sockets += [client, server]
        back = threading.Thread(target=self._pass, args=[server, client])
        self._threads.append(back)
        back.start()
        self._pass(client, server, self._count)

    def _count(self, said: bytes) -> None:
        """Requests by the version in their headers: the payloads do not contain it."""
        with self._changed:
            self.requests = said.count(b"memo01")
            self._changed.notify_all()

    def _pass(
        self, source: socket.socket, target: socket.socket, look: Callable[[bytes], None] = lambda said: None
    ) -> None:
        said = b""
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
                said += data
                look(said)


@pytest.mark.peer("pynng")
def test_a_request_that_is_sent_again_runs_once(nng_server: serving.ServerProcess, pynng: Peers, function: str) -> None:
    workers = pynng.worker(url_of(nng_server, "tcp"), function, contexts=4, gate=True)
    with contextlib.closing(Proxy(port_of(nng_server))) as proxy:
        client = pynng.client(proxy.url, function, b"once", resend=1000)
        workers.wait_for_line(f"running\t{b'once 0'.hex()}")
        proxy.wait_for_requests(5)  # the first and four copies: this nng sends one each second
        with Pipe.tcp(port_of(nng_server)) as pipe:
            pipe.silence()
        workers.write(b"\n")
        assert heard(client) == ["complete 0 ecno"]
    assert [line for line in workers.lines if line.startswith("running")] == [f"running\t{b'once 0'.hex()}"]


@pytest.mark.peer("pynng")
def test_a_server_that_is_killed_in_the_middle_of_a_job(pynng: Peers, function: str) -> None:
    running = f"running\t{b'job 0'.hex()}"
    with serving.serve("--store", "memory", "--listen", "memodb+tcp://127.0.0.1:0") as server:
        url, port = url_of(server, "tcp"), server.port
        worker = pynng.worker(url, function, gate=True)
        client = pynng.client(url, function, b"job")
        worker.wait_for_line(running)
        server.kill()
    with serving.serve("--store", "memory", "--listen", f"memodb+tcp://127.0.0.1:{port}"):
        worker.write(b"\n")  # a result of a job that the new server knows nothing of
        worker.wait_for_line("disconnect\t")
        worker.wait_for_line(running, 2)  # the client's own resend
        worker.write(b"\n")
        assert heard(client) == ["complete 0 boj"]


@pytest.mark.peer("pynng")
def test_a_dropped_request_is_sent_again_by_itself(pynng: Peers, function: str) -> None:
    flags = ["--memodb-queue-timeout", "100ms"]
    with serving.serve("--store", "memory", "--listen", "memodb+tcp://127.0.0.1:0", *flags) as server:
        client = pynng.client(url_of(server, "tcp"), function, b"job", resend=NO_RESEND)
        assert client.wait() != 0  # without resends, a closed pipe is an error that a client hears of
        assert "ConnectionReset" in client.stderr
        client = pynng.client(url_of(server, "tcp"), function, b"job")
        until(lambda: server.stderr.count("request dropped") >= 2, "the second was dropped")
        pynng.worker(url_of(server, "tcp"), function)
        assert heard(client) == ["complete 0 boj"]


@pytest.mark.peer("pynng")
def test_a_pynng_worker_answers_heartbeats(pynng: Peers, function: str) -> None:
    flags = ["--memodb-heartbeat", "50ms", "--memodb-worker-timeout", "5s"]
    with serving.serve("--store", "memory", "--listen", "memodb+tcp://127.0.0.1:0", *flags) as server:
        worker = pynng.worker(url_of(server, "tcp"), function)
        worker.wait_for_line("heartbeat\t", 3)
        assert heard(pynng.client(url_of(server, "tcp"), function, b"abc")) == ["complete 0 cba"]
        assert "disconnect\t" not in worker.lines


@pytest.mark.peer("pynng")
@pytest.mark.parametrize("place", PLACES)
def test_another_pipe_cannot_answer_for_a_worker(
    nng_server: serving.ServerProcess, spawn: Spawn, function: str, place: str
) -> None:
    peers = spawn(*libraries._python("pynng_foreign_pipe.py"), url_of(nng_server, place), function)
    assert heard(peers) == ["worker 2 16 payload", "foreign 5", "foreign 5", "client honest"]


def nngcat(spawn: Spawn, url: str, message: bytes, folder: Path) -> process.Process:
    """One request, whose reply is printed in hexadecimal."""
    file = folder / "message"
    file.write_bytes(message)
    return spawn("nngcat", "--req0", f"--dial={url}", f"--file={file}", "--hex", "--recv-timeout=60")


def printed(cat: process.Process) -> bytes:
    assert cat.wait() == 0, cat.account()
    return bytes.fromhex("".join(re.findall(r"\\x([0-9A-Fa-f]{2})", "".join(cat.lines))))


@pytest.mark.peer("nngcat")
@pytest.mark.parametrize("place", ["tcp", "ipc"])
def test_nngcat(nng_server: serving.ServerProcess, spawn: Spawn, function: str, place: str, tmp_path: Path) -> None:
    url = url_of(nng_server, place)
    with Pipe.tcp(port_of(nng_server)) as pipe:
        waiting = pipe.ready(function)
        client = nngcat(spawn, url, cbor2.dumps(["memo01", 2, b"", function, 30_000]) + b"hello", tmp_path)
        assigned = pipe.reply(waiting)
        assert (assigned.rest, assigned.payload) == ([function, 30_000], b"hello")
        pipe.result(assigned.id, b"olleh")
        assert printed(client) == cbor2.dumps(["memo01", 3, b""]) + b"olleh"
    worker = nngcat(spawn, url, cbor2.dumps(["memo01", 1, b"", [f"{function}-cat"]]), tmp_path)
    with Pipe.tcp(port_of(nng_server)) as pipe:
        pipe.job(f"{function}-cat", b"meow", 30_000)
        reply = printed(worker)
        id = reply[10:26]
        assert reply == cbor2.dumps(["memo01", 2, id, f"{function}-cat", 30_000]) + b"meow"


@pytest.mark.peer("nngcat")
def test_nngcat_of_another_protocol(nng_server: serving.ServerProcess, spawn: Spawn, function: str) -> None:
    subscriber = spawn("nngcat", "--sub0", f"--dial={url_of(nng_server, 'tcp')}", "--recv-timeout=1", "--ascii")
    subscriber.wait()
    assert subscriber.lines == []
    with Pipe.tcp(port_of(nng_server)) as pipe:
        pipe.silence()
    assert nng_server.says("speaks SP protocol 0x21")
