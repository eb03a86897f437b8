"""Every request of every door, with every scope: it is allowed or refused as tests/support/rights_table.py says."""

import contextlib
import http.client
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import geartrain
from geartrain.doors.danga import commands as danga_commands
from geartrain.doors.gearman import admin_commands
from geartrain.doors.gearman import commands as gearman_commands
from geartrain.doors.gearmonkey import commands as gearmonkey_commands
from geartrain.doors.memodb import commands as memodb_commands
from geartrain.doors.periodic import commands as periodic_commands
from geartrain.rights import ADMIN, SCOPES
from tests.support import danga_peer, memodb_peer, periodic_peer, rights_table, serving
from tests.support.gearman_peer import Kind, Peer
from tests.support.peer import RawPeer, connect, until
from tests.support.rights_table import FUNCTION, Row

SCHEMES = ("gearman", "danga", "periodic", "memodb+tcp", "gearmonkey", "http")

_serial = itertools.count(1)


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


class Server:
    """A server with an address for each door and scope, and one where everything is allowed."""

    def __init__(self, process: serving.ServerProcess, pairs: list[tuple[str, str]]) -> None:
        self.process = process
        self.ports = {
            (scheme.partition("+")[0], scope): port_of(url)
            for (scheme, scope), url in zip(pairs, process.urls, strict=False)
        }
        self.open_port = port_of(process.urls[-1])

    def jobs(self, function: str) -> list[Any]:
        """The jobs of a function, as an operator sees them."""
        with geartrain.Client(f"gearman://{serving.HOST}:{self.open_port}") as client:
            asked = json.dumps({"do": "jobs", "function": function})
            jobs: list[Any] = json.loads(client.run("geartrain.control", asked))["answer"]["items"]
            return jobs

    def queued_job(self) -> str:
        with Peer(self.open_port) as client:
            client.send(Kind.SUBMIT_JOB_BG, FUNCTION.encode(), b"", b"")
            return client.packet()[1].decode()

    def dead_job(self) -> str:
        """A job whose only attempt was lost with its worker."""
        function = b"rights.dead.%d" % next(_serial)
        with Peer(self.open_port) as client:
            client.send(Kind.SUBMIT_JOB_BG, function, b"", b"")
            handle = client.packet()[1]
            with Peer(self.open_port) as worker:
                worker.send(Kind.CAN_DO, function).send(Kind.GRAB_JOB)
                assert worker.packet()[0] == Kind.JOB_ASSIGN
            until(lambda: any(handle in line for line in client.text("show dead jobs").block()), "the job is dead")
        return handle.decode()


@contextlib.contextmanager
def serving_every_scope(scopes: tuple[str, ...] = SCOPES) -> Iterator[Server]:
    pairs = [(scheme, scope) for scheme in SCHEMES for scope in scopes]
    listens = [f"--listen={scheme}://{serving.HOST}:0?may={scope}" for scheme, scope in pairs]
    flags = ["--store=memory", "--max-attempts=1", *listens, f"--listen=gearman://{serving.HOST}:0"]
    with serving.serve(*flags) as process:
        yield Server(process, pairs)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving_every_scope() as running:
        yield running


# How each door is asked, and how its refusal is known. All return whether the request was refused.


def gearman_packet(server: Server, row: Row, scope: str) -> bool:
    with Peer(server.ports["gearman", scope]) as peer:
        peer.send(Kind[row.name], *row.arguments).send(Kind.ECHO_REQ, b"end")
        refused = False
        while (packet := peer.packet()) != (Kind.ECHO_RES, b"end"):
            refused |= packet[0] == Kind.ERROR and packet[1].startswith(b"NOT_ALLOWED")
        return refused


def gearman_line(server: Server, row: Row, scope: str) -> bool:
    line = row.request
    if "{handle}" in line:
        line = line.format(handle=server.queued_job())
    elif "{dead}" in line:
        line = line.format(dead=server.dead_job())
    with Peer(server.ports["gearman", scope]) as peer:
        peer.text(line).text("verbose")
        answer = peer.line()
        last = answer
        while last != b"OK INFO\n":
            last = peer.line()
        return answer.startswith(b"ERR NOT_ALLOWED ")


def danga_packet(server: Server, row: Row, scope: str) -> bool:
    with danga_peer.Peer(server.ports["danga", scope]) as peer:
        peer.send(danga_peer.Kind[row.name.upper()], *row.arguments)
        if row.name == "job_create_req":
            return peer.body(danga_peer.Kind.JOB_CREATE_RES) == b""
        peer.send(danga_peer.Kind.JOB_STATUS_REQ, b"nothing")
        try:
            peer.streamed_status()
        except (AssertionError, OSError):
            return True
        return False


def periodic_command(server: Server, row: Row, scope: str) -> bool:
    """A worker of this function makes RUN_JOB wait for it; without one, every RUN_JOB would get NO_WORKER."""
    command = periodic_peer.Command
    with Peer(server.open_port) as worker:
        worker.send(Kind.CAN_DO, FUNCTION.encode()).send(Kind.ECHO_REQ, b"")
        assert worker.packet()[0] == Kind.ECHO_RES
        with periodic_peer.Peer(server.ports["periodic", scope]) as peer:
            asked = peer.send(command[row.name], b"".join(row.arguments))
            ping = peer.send(command.PING)
            answers: dict[bytes, int] = {}
            while ping not in answers:
                payload = peer.payload()
                answers.setdefault(payload[:4], payload[4])
    return answers.get(asked) == (command.NO_WORKER if row.name == "RUN_JOB" else command.UNKNOWN)


def memodb_message(server: Server, row: Row, scope: str) -> bool:
    """A job is dropped without an answer, and a pipe that nothing else uses is closed."""
    function = f"{FUNCTION}.memodb.{scope}"
    with memodb_peer.Pipe.tcp(server.ports["memodb", scope]) as pipe:
        if row.name == "READY":
            ready = pipe.ready(function)
            pipe.heartbeat(memodb_peer.STRANGER)
            return pipe.next().request == ready
        pipe.job(function, b"")
        pipe.heartbeat(memodb_peer.STRANGER)
        try:
            assert pipe.next().kind == memodb_peer.DISCONNECT
        except (AssertionError, OSError):
            assert not server.jobs(function)
            return True
        return not server.jobs(function)


def gearmonkey_command(server: Server, row: Row, scope: str) -> bool:
    request = row.request
    if "{id}" in request:
        with RawPeer(connect(server.ports["gearmonkey", ADMIN])) as client:
            number = send_redis(client, f"INCR uid:{FUNCTION}").removeprefix(b":").decode().strip()
            assert send_redis(client, f"HMSET job:{FUNCTION}:{number} status idle input data") == b"+OK\r\n"
        request = request.format(id=number)
    with RawPeer(connect(server.ports["gearmonkey", scope])) as peer:
        answer = send_redis(peer, request)
    assert "{id}" not in row.request or answer.startswith((b":", b"-NOPERM ")), answer
    return answer.startswith(b"-NOPERM ")


def send_redis(peer: RawPeer, command: str) -> bytes:
    """The first line of the reply."""
    words = command.encode().split()
    peer.raw(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words))
    return peer.line()


def http_request(server: Server, row: Row, scope: str) -> bool:
    method, path = row.request.replace("{name}", "rights.unknown").replace("{", "").replace("}", "").split()
    connection = http.client.HTTPConnection(serving.HOST, server.ports["http", scope], timeout=60)
    with contextlib.closing(connection):
        body = json.dumps({"function": FUNCTION}) if method != "GET" else None
        connection.request(method, path, body, {"Content-Type": "application/json"})
        return connection.getresponse().status in (401, 403)


ASK: dict[str, Callable[[Server, Row, str], bool]] = {
    "danga": danga_packet,
    "periodic": periodic_command,
    "memodb": memodb_message,
    "gearmonkey": gearmonkey_command,
    "http": http_request,
}


def ask(server: Server, row: Row, scope: str) -> bool:
    if row.door == "gearman":
        return (gearman_packet if row in rights_table.GEARMAN_PACKETS else gearman_line)(server, row, scope)
    return ASK[row.door](server, row, scope)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("row", rights_table.ROWS, ids=lambda row: f"{row.door} {row.request}")
def test_request(server: Server, row: Row, scope: str) -> None:
    if row.ends_server and row.allows(scope):
        with serving_every_scope((scope,)) as own:
            with contextlib.suppress(AssertionError, OSError):
                assert not ask(own, row, scope)
            assert own.process.wait() == 0
        return
    assert ask(server, row, scope) != row.allows(scope)
    assert server.process.process.poll() is None


# The table is complete


def named(door: str) -> set[str]:
    return {row.name for row in rights_table.ROWS if row.door == door} | set(rights_table.EVERYBODY[door])


def test_every_request_has_a_row() -> None:
    gearman = [Kind(number).name for number in (*gearman_commands._FREQUENT, *gearman_commands._OTHERS)]
    gearman += [name.decode() for name in admin_commands.COMMANDS]
    assert named("gearman") == set(gearman)
    assert named("danga") == {danga_peer.Kind(number).name.lower() for number in danga_commands.HANDLERS}
    assert named("periodic") == {periodic_peer.Command(number).name for number in periodic_commands.COMMANDS}
    messages = {memodb_peer.READY: "READY", memodb_peer.JOB: "JOB"}
    messages |= {memodb_peer.RESULT: "RESULT", memodb_peer.HEARTBEAT: "HEARTBEAT"}
    assert named("memodb") == {messages[number] for number in memodb_commands.HANDLERS}
    assert named("gearmonkey") == {name.decode() for name in gearmonkey_commands.COMMANDS}


def test_admin_is_in_every_row() -> None:
    assert all(row.allows(ADMIN) for row in rights_table.ROWS)
