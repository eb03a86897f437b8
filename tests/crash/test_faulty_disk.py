"""A server whose disk fails: what cannot be kept is refused, the rest goes on, and all of it does afterwards."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.crash import faulty_disk, store_file
from tests.crash.conftest import Start
from tests.support import serving
from tests.support.gearman_peer import Kind, Peer, worker
from tests.support.peer import until

BG = Kind.SUBMIT_JOB_BG
QUEUE_ERROR = ("QUEUE_ERROR", "QUEUE_ERROR")
HERE = Path(faulty_disk.__path__[0])

Faulty = Callable[[str], None]


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> Faulty:
    """From now on servers are started with a disk that fails like this."""

    ours = os.environ.get("PYTHONPATH")

    def begin(how: str) -> None:
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(HERE), ours))))
        monkeypatch.setenv("FAULTY_DISK", how)

    return begin


class Switch:
    """While it is on, no write and no sync of the server's disk succeeds."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextlib.contextmanager
    def on(self) -> Iterator[None]:
        self.path.touch()
        yield
        self.path.unlink()


@pytest.fixture
def switch(tmp_path: Path, faulty: Faulty) -> Switch:
    switch = Switch(tmp_path / "switch")
    faulty(f"switch {switch.path}")
    return switch


def said(server: serving.ServerProcess, words: str) -> bool:
    return server.says(words)


FAILING = "commit failed; refusing new background jobs"
WORKING = "commits work again"


def try_to_submit(client: Peer, data: bytes, function: bytes = b"f", unique: bytes = b"") -> bytes | None:
    """The handle, or None if the server says that it cannot keep the job."""
    client.send(BG, function, unique, data)
    kind, body = client.packet()
    if kind == Kind.JOB_CREATED:
        return body
    assert (kind, body) == (Kind.ERROR, b"QUEUE_ERROR\0QUEUE_ERROR")
    return None


def drain(port: int, function: bytes = b"f") -> list[bytes]:
    with worker(port, function) as taker:
        found = []
        while (job := taker.take()) is not None:
            found.append(job.data)
            taker.send(Kind.WORK_COMPLETE, job.handle, b"")
        return found


def test_job_that_cannot_be_kept_is_refused(start: Start, switch: Switch) -> None:
    with start() as server, Peer(server.port) as client:
        kept = client.submit(b"f", b"", b"before", kind=BG)
        with switch.on():
            for _ in range(3):
                client.send(BG, b"f", b"", b"refused")
                assert client.error() == QUEUE_ERROR
        after = client.submit(b"f", b"", b"after", kind=BG)
        assert client.status(kept)[0] == client.status(after)[0] == 1
        assert drain(server.port) == [b"before", b"after"]
        assert said(server, FAILING)
        assert said(server, WORKING)


def test_refused_jobs_are_gone_for_good(start: Start, switch: Switch) -> None:
    """Also for the next server, and also if this one is killed when it has accepted the next job."""
    with start() as server, Peer(server.port) as client:
        client.submit(b"f", b"", b"before", kind=BG)
        with switch.on():
            assert [try_to_submit(client, b"refused %d" % number) for number in range(5)] == [None] * 5
        client.submit(b"f", b"", b"after", kind=BG)
        server.kill()
    with start() as server:
        assert drain(server.port) == [b"before", b"after"]


def test_key_of_a_refused_job_is_free(start: Start, switch: Switch) -> None:
    with start() as server, Peer(server.port) as client:
        client.submit(b"f", b"", b"", kind=BG)
        with switch.on():
            assert try_to_submit(client, b"refused", unique=b"key") is None
        handle = try_to_submit(client, b"accepted", unique=b"key")
        assert handle is not None
        server.kill()
    with start() as server, Peer(server.port) as client:
        assert client.submit(b"f", b"key", b"twin", kind=BG) == handle
        assert sorted(drain(server.port)) == [b"", b"accepted"]


def test_everything_else_goes_on_while_the_disk_fails(start: Start, switch: Switch) -> None:
    """Foreground jobs, workers, status and echoes need no disk."""
    with start() as server, Peer(server.port) as client, worker(server.port, b"f") as taker:
        background = client.submit(b"f", b"", b"background", kind=BG)
        with switch.on():
            assert try_to_submit(client, b"refused") is None
            assert taker.grab().handle == background
            taker.send(Kind.WORK_COMPLETE, background, b"")
            for number in range(5):
                handle = client.submit(b"f", b"", b"%d" % number)
                assert taker.grab().data == b"%d" % number
                assert client.status(handle)[:2] == (1, 1)
                taker.send(Kind.WORK_COMPLETE, handle, b"result")
                client.expect(Kind.WORK_COMPLETE, handle, b"result")
            client.silence()
        until(lambda: said(server, WORKING), "the disk works again, and what happened meanwhile is kept")
        server.kill()
    with start() as server:
        assert drain(server.port) == [], "the job that was done while the disk failed does not run again"


def test_questions_of_an_admin_are_answered_while_the_disk_fails(start: Start, switch: Switch) -> None:
    with start() as server, Peer(server.port) as client, worker(server.port, b"f") as taker:
        handle = client.submit(b"f", b"", b"", kind=BG)
        assert taker.grab().handle == handle
        with switch.on():
            assert try_to_submit(client, b"refused") is None
            taker.send(Kind.WORK_COMPLETE, handle, b"").silence()
            for _ in range(3):
                assert client.listing("status") == [[b"f", b"0", b"0", b"1"]]
                client.text("version")
                assert client.line().startswith(b"OK ")


def test_several_clients_hear_each_about_their_own(start: Start, switch: Switch) -> None:
    with start() as server, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Peer(server.port)) for _ in range(5)]
        with switch.on():
            for number, client in enumerate(clients):
                for part in range(10):
                    client.send(BG, b"f", b"", b"%d %d" % (number, part))
                    client.send(Kind.ECHO_REQ, b"%d" % part)
            for client in clients:
                for part in range(10):
                    assert client.error() == QUEUE_ERROR
                    client.expect(Kind.ECHO_RES, b"%d" % part)
        assert drain(server.port) == []


@pytest.mark.parametrize("kind", ["write", "sync"])
@pytest.mark.parametrize("first", [5, 8, 21])
def test_answers_tell_the_truth_whichever_write_fails(
    start: Start, path: Path, faulty: Faulty, kind: str, first: int
) -> None:
    """From the n-th on, some fail: each job was acknowledged and is there after a kill, or refused and is not."""
    with start() as server:  # the file is made by a server whose disk works
        server.kill()
    faulty(f"{kind} {first} 4")
    accepted: list[bytes] = []
    refused: list[bytes] = []
    with start() as server, Peer(server.port) as client:
        for number in range(40):
            data = b"%d" % number
            (refused if try_to_submit(client, data) is None else accepted).append(data)
        server.kill()
    assert accepted
    assert accepted[-1] == b"39", "it works again"
    faulty("sync 1000000 1")
    with start() as server:
        assert drain(server.port) == accepted
    assert len(accepted) + len(refused) == 40
    assert not list(path.parent.glob("*.damaged-*"))


def test_disk_that_fails_when_the_server_starts(path: Path, start: Start, faulty: Faulty, tmp_path: Path) -> None:
    """It says why in one line, and the next start finds everything as it was."""
    with start() as server, Peer(server.port) as client:
        client.submit(b"f", b"", b"kept", kind=BG)
        server.kill()
    for kind in ("write", "sync"):
        faulty(f"{kind} 1 1000000")
        with (
            pytest.raises(AssertionError, match=r"geartrain: cannot (open|write) .*jobs\.db: .*"),
            start(),
        ):
            pass
    faulty("sync 1000000 1")
    with start() as server:
        assert drain(server.port) == [b"kept"]


def test_disk_that_fails_when_the_server_stops(path: Path, start: Start, switch: Switch) -> None:
    with start() as server, Peer(server.port) as client, worker(server.port, b"f") as taker:
        done, left = (client.submit(b"f", b"", data, kind=BG) for data in (b"done", b"left"))
        assert taker.grab().handle == done
        switch.path.touch()
        taker.send(Kind.WORK_COMPLETE, done, b"").silence()
        until(lambda: said(server, FAILING), "it noticed")
        server.stop()
        assert said(server, "changes lost: the last commit failed")
        switch.path.unlink()
    assert left
    with start() as server:
        assert drain(server.port) == [b"done", b"left"], "the end of a job that could not be kept: it runs again"


@pytest.fixture
def stall(tmp_path: Path, faulty: Faulty) -> Path:
    """While this file exists, no sync of the server's disk ends."""
    path = tmp_path / "stall"
    faulty(f"stall {path}")
    return path


def test_slow_disk_holds_up_only_those_who_wait_for_it(start: Start, stall: Path, path: Path) -> None:
    with start() as server, Peer(server.port) as client, Peer(server.port) as other:
        client.submit(b"f", b"", b"0", kind=BG)
        stall.touch()
        client.send(BG, b"f", b"", b"1").send(Kind.ECHO_REQ, b"behind it")
        with worker(server.port, b"g") as taker:
            handle = other.submit(b"g", b"", b"foreground")
            assert taker.grab().handle == handle
            taker.send(Kind.WORK_COMPLETE, handle, b"result")
            other.expect(Kind.WORK_COMPLETE, handle, b"result")
        stall.unlink()
        client.body(Kind.JOB_CREATED)
        client.expect(Kind.ECHO_RES, b"behind it")


def test_job_is_not_acknowledged_before_it_is_on_the_disk(start: Start, stall: Path) -> None:
    """The server is killed while the disk syncs: nobody was told anything."""
    with start() as server, Peer(server.port) as client, Peer(server.port) as other:
        client.submit(b"f", b"", b"0", kind=BG)
        stall.touch()
        client.send(BG, b"f", b"", b"1")
        other.silence()
        other.silence()
        server.kill()
        assert client.rest() == b""
        stall.unlink()


def test_job_that_arrives_while_the_server_stops_is_kept_or_not_acknowledged(start: Start, stall: Path) -> None:
    with start() as server, Peer(server.port) as client, Peer(server.port) as other:
        client.submit(b"f", b"", b"before", kind=BG)
        stall.touch()
        client.send(BG, b"f", b"", b"held")
        client_is_heard(other)
        server.process.terminate()
        other.closed()  # it has begun to stop
        client.send(BG, b"f", b"", b"late")
        with contextlib.suppress(OSError):
            Peer(server.port).close()
        stall.unlink()
        answers = client.rest()
        assert server.wait() == 0
    acknowledged = answers.count(b"\0RES" + Kind.JOB_CREATED.to_bytes(4, "big"))
    with start() as server:
        assert drain(server.port) == [b"before", b"held", b"late"][: 1 + acknowledged]


def client_is_heard(other: Peer) -> None:
    """What another connection sent before this call has been handled after it."""
    for _ in range(3):
        other.silence()


def test_file_that_cannot_be_read_by_another_is_in_use(start: Start, path: Path) -> None:
    """A second server on the same file is refused, says who has it, and harms nothing."""
    with start() as server, Peer(server.port) as client:
        client.submit(b"f", b"", b"kept", kind=BG)
        with (
            pytest.raises(AssertionError, match=rf"geartrain: .*jobs\.db is in use by process {server.pid};"),
            start(),
        ):
            pass
        assert drain(server.port) == [b"kept"]
    assert store_file.query(path, "SELECT count(*) FROM jobs") == [(0,)]
