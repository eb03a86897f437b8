"""Limits of the whole server, at every door: each refuses in its own protocol's way, and others are served."""

import contextlib
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.acceptance.gearmonkey import redis_py_peer
from tests.support import certificates, danga_peer, gearman_peer, http_peer, memodb_peer, periodic_peer, serving

DOORS = ("gearman", "danga", "periodic", "memodb+tcp", "gearmonkey", "http")
LONG = b"f" * 513
LONG_KEY = b"k" * 256
EXTRA = b"extra"  # a function that is one too many
KNOWN = [b"known-%d" % number for number in range(4)]


def serve(*flags: str) -> contextlib.AbstractContextManager[serving.ServerProcess]:
    listens = [word for door in DOORS for word in ("--listen", f"{door}://{serving.HOST}:0")]
    return serving.serve("--store", "memory", *listens, *flags)


def port_of(server: serving.ServerProcess, scheme: str) -> int:
    [url] = [url for url in server.urls if url.startswith(f"{scheme}://")]
    return int(url.rpartition(":")[2])


class Peers:
    """A peer of each protocol, connected when it is used."""

    def __init__(self, server: serving.ServerProcess, stack: contextlib.ExitStack) -> None:
        self.server = server
        self.stack = stack

    def gearman(self) -> gearman_peer.Peer:
        return self.stack.enter_context(gearman_peer.Peer(port_of(self.server, "gearman")))

    def danga(self) -> danga_peer.Peer:
        return self.stack.enter_context(danga_peer.Peer(port_of(self.server, "danga")))

    def periodic(self, kind: int = periodic_peer.CLIENT) -> periodic_peer.Peer:
        return self.stack.enter_context(periodic_peer.Peer(port_of(self.server, "periodic"), kind=kind))

    def memodb(self) -> memodb_peer.Pipe:
        return self.stack.enter_context(memodb_peer.Pipe.tcp(port_of(self.server, "memodb+tcp")))

    def redis(self) -> "redis.Redis":
        connection = redis_py_peer.connect(port_of(self.server, "gearmonkey"))
        self.stack.callback(connection.close)
        return connection

    def http(self) -> http_peer.Peer:
        return http_peer.Peer(f"http://{serving.HOST}:{port_of(self.server, 'http')}")


@pytest.fixture
def stack() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture(scope="module")
def server() -> Iterator[serving.ServerProcess]:
    """Four functions exist, and there may be no more; a worker may offer three."""
    with serve("--max-functions", "4", "--max-abilities", "3") as server:
        with gearman_peer.Peer(port_of(server, "gearman")) as admin:
            for name in KNOWN:
                assert admin.text(b"create function " + name).line() == b"OK\r\n"
                assert admin.text(b"maxqueue " + name + b" 100").line() == b"OK\r\n"  # so that none makes room
        yield server


@pytest.fixture
def peers(server: serving.ServerProcess, stack: contextlib.ExitStack) -> Peers:
    return Peers(server, stack)


def test_gearman(peers: Peers) -> None:
    peer = peers.gearman()
    for name, code in ((LONG, "INVALID_NAME"), (EXTRA, "LIMIT_REACHED")):
        peer.send(gearman_peer.Kind.SUBMIT_JOB_BG, name, b"", b"x")
        assert peer.error()[0] == code
        peer.send(gearman_peer.Kind.CAN_DO, name)
        assert peer.error()[0] == code
        assert peer.text(b"create function " + name).line().startswith(f"ERR {code} ".encode())
    for name in KNOWN:
        peer.send(gearman_peer.Kind.CAN_DO, name)
    assert "max_abilities" in peer.error()[1]
    assert peer.submit(KNOWN[0], kind=gearman_peer.Kind.SUBMIT_JOB_BG), "the connection goes on"


def test_danga(peers: Peers, server: serving.ServerProcess) -> None:
    peer = peers.danga()
    assert peer.create(LONG) == b""
    assert peer.create(EXTRA) == b""
    assert peer.create(KNOWN[0], LONG_KEY) == b""
    assert peer.create(KNOWN[0], LONG_KEY[1:])
    for names in ((LONG,), (EXTRA,), KNOWN):
        peers.danga().send(danga_peer.Kind.WORKER_CONNECT, b"\0".join(names)).closed()
    assert server.says("max_abilities")


@pytest.mark.parametrize("name", [LONG[:255], EXTRA])
def test_periodic(peers: Peers, name: bytes) -> None:
    client, worker = peers.periodic(), peers.periodic(periodic_peer.WORKER)
    command, unknown = periodic_peer.Command, periodic_peer.Command.UNKNOWN
    client.expect(client.send(command.SUBMIT_JOB, periodic_peer.job(name, b"n")), unknown)
    worker.expect(worker.send(command.CAN_DO, periodic_peer.text(name)), unknown)
    worker.expect(worker.send(command.BROADCAST, periodic_peer.text(name)), unknown)
    worker.offer(*KNOWN[:3])
    worker.expect(worker.send(command.CAN_DO, periodic_peer.text(KNOWN[3])), unknown)
    client.submit(KNOWN[0], b"n")


@pytest.mark.parametrize("names", [[LONG], [EXTRA], KNOWN])
def test_memodb(peers: Peers, names: list[bytes]) -> None:
    worker = peers.memodb()
    reply = worker.reply(worker.ready(*(name.decode() for name in names)))
    assert reply.kind == memodb_peer.DISCONNECT
    client = peers.memodb()
    if names is not KNOWN:
        client.job(names[0].decode())
        client.closed()


def test_gearmonkey(peers: Peers) -> None:
    connection = peers.redis()
    for name in (LONG.decode(), EXTRA.decode()):
        id = connection.incr(f"uid:{name}")
        connection.hset(f"job:{name}:{id}", "input", "x")
        with pytest.raises(redis.ResponseError, match="function"):
            connection.lpush(f"queue:{name}:normal", id)
        with pytest.raises(redis.ResponseError, match="function"):
            connection.rpop(f"queue:{name}:normal")
    with pytest.raises(redis.ResponseError, match="max_abilities"):
        connection.brpop([f"queue:{name.decode()}:high" for name in KNOWN], timeout=1)
    assert connection.ping()


def test_payloads_of_all_jobs(stack: contextlib.ExitStack) -> None:
    """Two jobs fit. What is coalesced or refused takes nothing, and what ends makes room."""
    with serve("--max-queued-bytes", "2kB") as server:
        peers = Peers(server, stack)
        gearman, danga, periodic, memodb = peers.gearman(), peers.danga(), peers.periodic(), peers.memodb()
        redis_peer, http = peers.redis(), peers.http()
        handle = gearman.submit(b"f", b"", b"x" * 488, kind=gearman_peer.Kind.SUBMIT_JOB_BG)
        gearman.submit(b"f", b"", b"x" * 488, kind=gearman_peer.Kind.SUBMIT_JOB_BG)
        gearman.send(gearman_peer.Kind.SUBMIT_JOB, b"f", b"", b"")
        assert gearman.error() == ("QUEUE_ERROR", "Job queue is full")
        assert danga.create(b"f") == b""
        request = periodic.send(periodic_peer.Command.SUBMIT_JOB, periodic_peer.job(b"f", b"n"))
        periodic.expect(request, periodic_peer.Command.UNKNOWN)
        memodb.job("f")
        memodb.closed()
        id = redis_peer.incr("uid:f")
        redis_peer.hset(f"job:f:{id}", "input", "x")
        with pytest.raises(redis.ResponseError, match="max_queued_bytes"):
            redis_peer.lpush("queue:f:normal", id)
        assert http.call("POST", "/jobs", {"function": "f"}).status == 429
        assert http.get("/overview")["queued_bytes"] == 2000
        assert b"\ngeartrain_queued_bytes 2000\n" in http.ask("GET", "/metrics").data
        assert gearman.text(b"cancel job " + handle).line() == b"OK\r\n"
        assert http.submit("f")


def test_connections(stack: contextlib.ExitStack) -> None:
    """All doors count together; what is refused is closed, and a connection that ends makes room."""
    with serve("--max-connections", "2") as server:
        peers = Peers(server, stack)
        assert peers.gearman().text("version").line()
        peers.danga().silence()
        refused = peers.gearman()
        assert refused.error()[0] == "LIMIT_REACHED"
        refused.closed()
        with pytest.raises((redis.ConnectionError, redis.ResponseError), match="max number of clients"):
            peers.redis().ping()
        assert peers.http().call("GET", "/ping").status == 503
        stack.enter_context(memodb_peer.Pipe.tcp(port_of(server, "memodb+tcp"), greet=False)).closed()
        stack.enter_context(periodic_peer.Peer(port_of(server, "periodic"), kind=None)).closed()
        assert server.says("connection limit reached")
        assert server.stderr.count("connection limit reached") == 1
        stack.close()
        assert any(is_served(server) for _ in range(1000)), "the server notices that the others are gone"


def is_served(server: serving.ServerProcess) -> bool:
    """Whether another connection is admitted."""
    with contextlib.suppress(OSError, AssertionError), gearman_peer.Peer(port_of(server, "gearman")) as peer:
        return peer.text("version").receive(3) == b"OK "
    return False


def test_descriptors_are_kept_for_the_store(stack: contextlib.ExitStack, tmp_path: Path) -> None:
    listen = ("--listen", f"gearman://{serving.HOST}:0")
    under = ("prlimit", "--nofile=150:150")
    with serving.serve("--store", f"sqlite:///{tmp_path}/jobs.db", *listen, under=under) as server:
        first = stack.enter_context(gearman_peer.Peer(server.port))
        others = [stack.enter_context(gearman_peer.Peer(server.port)) for _ in range(200)]
        assert others[-1].error()[0] == "LIMIT_REACHED"
        assert first.submit(b"f", kind=gearman_peer.Kind.SUBMIT_JOB_BG)
        assert len(first.listing("workers")) == 150 - 64
        stack.close()


def test_descriptors_that_run_out_are_logged(tmp_path: Path) -> None:
    """The limit of open files is lowered while the server runs, so that it has no place even for a few peers."""
    certificate = str(certificates.self_signed(tmp_path).both)
    listen = [word for scheme in ("gearman", "gearmans") for word in ("--listen", f"{scheme}://{serving.HOST}:0")]
    with serving.serve("--store", "memory", *listen, "--tls-certificate", certificate) as server:
        limits = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (len(os.listdir(f"/proc/{server.pid}/fd")), limits[1]))
        with gearman_peer.Peer(port_of(server, "gearman")) as plain, gearman_peer.Peer(port_of(server, "gearmans")):
            plain.closed()
            assert server.says('out of file descriptors, connections refused  why="Too many open files"')
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, limits)
        assert any(is_served(server) for _ in range(1000)), "it accepts connections again"
        with gearman_peer.Peer(port_of(server, "gearmans")) as peer:
            peer.text("version")
            assert server.says("TLS handshake failed"), "so does the address with TLS"


def test_http(peers: Peers) -> None:
    peer = peers.http()

    def post(path: str, value: object) -> int:
        return peer.call("POST", path, value).status

    for name, status in ((LONG.decode(), 400), (EXTRA.decode(), 503)):
        assert post("/jobs", {"function": name}) == status
        assert post("/workers", {"functions": [name]}) == status
    assert post("/jobs", {"function": "known-0", "unique": LONG_KEY.decode()}) == 400
    assert post("/workers", {"functions": [name.decode() for name in KNOWN]}) == 503
    workers = peer.get("/workers")["items"]
    assert all(len(worker["functions"]) < len(KNOWN) for worker in workers), "no part of a refused worker is left"
    assert post("/functions/extra/pause", None) == 409
    assert post(f"/functions/{LONG.decode()}/pause", None) == 400
    assert peer.submit("known-0")
