"""What gearmand loses in a crash, one test each: here it is all there after kill -9."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.gearmonkey import redis_py_peer
from tests.crash import store_file
from tests.crash.conftest import Start
from tests.support import http_peer
from tests.support.gearman_peer import Assignment, Kind, Peer, worker
from tests.support.peer import until

BG = Kind.SUBMIT_JOB_BG


@contextlib.contextmanager
def killed(start: Start, *flags: str) -> Iterator[Peer]:
    """A client of a server that is killed at the end of the block."""
    with start(*flags) as server, Peer(server.port) as client:
        yield client
        server.kill()


def drain(port: int, function: bytes) -> list[Assignment]:
    with worker(port, function) as taker:
        taken = []
        while (job := taker.take(Kind.GRAB_JOB_UNIQ)) is not None:
            taken.append(job)
            taker.send(Kind.WORK_COMPLETE, job.handle, b"")
        return taken


def after(start: Start, function: bytes) -> list[Assignment]:
    """Every job that the next server hands out."""
    with start() as server:
        return drain(server.port, function)


def shown(jobs: list[Assignment]) -> list[tuple[bytes, bytes, bytes]]:
    return [(job.handle, job.unique, job.data) for job in jobs]


def test_three_jobs_with_an_empty_unique_survive_as_three(start: Start) -> None:
    with killed(start) as client:
        handles = [client.submit(b"f", b"", b"same", kind=BG) for _ in range(3)]
    assert shown(after(start, b"f")) == [(handle, b"", b"same") for handle in handles]


def test_jobs_with_unique_dash_and_different_data_survive(start: Start) -> None:
    with killed(start) as client:
        one, two = client.submit(b"f", b"-", b"one", kind=BG), client.submit(b"f", b"-", b"two", kind=BG)
    assert one != two
    assert shown(after(start, b"f")) == [(one, b"-", b"one"), (two, b"-", b"two")]


def test_unique_dash_still_coalesces_after_a_restart(start: Start) -> None:
    with killed(start) as client:
        handle = client.submit(b"f", b"-", b"one", kind=BG)
    with start() as server, Peer(server.port) as client:
        assert client.submit(b"f", b"-", b"one", kind=BG) == handle
        assert client.submit(b"f", b"-", b"two", kind=BG) != handle


def test_unique_key_still_coalesces_after_a_restart(start: Start) -> None:
    with killed(start) as client:
        handle = client.submit(b"f", b"key", b"one", kind=BG)
    with start() as server, Peer(server.port) as client:
        assert client.submit(b"f", b"key", b"two", kind=BG) == handle
        assert client.submit(b"g", b"key", b"two", kind=BG) != handle
        assert shown(drain(server.port, b"f")) == [(handle, b"key", b"one")]


def test_job_with_empty_data_survives_and_the_server_starts(start: Start) -> None:
    with killed(start) as client:
        handle = client.submit(b"f", b"", b"", kind=BG)
    assert shown(after(start, b"f")) == [(handle, b"", b"")]


def test_background_job_survives_a_foreground_client_that_joined_and_left(start: Start) -> None:
    """gearmand drops it when the client leaves, and has it back only after a restart."""
    with killed(start) as client:
        handle = client.submit(b"f", b"key", b"data", kind=BG)
        with Peer(client.socket.getpeername()[1]) as joiner:
            assert joiner.submit(b"f", b"key", b"other") == handle
            until(lambda: clients(client, b"key") == 1, "it waits for the job")
        until(lambda: clients(client, b"key") == 0, "the server noticed that it left")
        assert client.status(handle)[0] == 1
    assert shown(after(start, b"f")) == [(handle, b"key", b"data")]


def clients(peer: Peer, unique: bytes) -> int:
    peer.send(Kind.GET_STATUS_UNIQUE, unique)
    return int(peer.body(Kind.STATUS_RES_UNIQUE).rsplit(b"\0", 1)[1])


def test_foreground_job_that_a_background_submit_joined_survives(start: Start) -> None:
    with killed(start) as client:
        handle = client.submit(b"f", b"key", b"data")
        assert client.submit(b"f", b"key", b"other", kind=BG) == handle
    assert shown(after(start, b"f")) == [(handle, b"key", b"data")]


def test_foreground_jobs_do_not_survive(start: Start) -> None:
    """They live as long as their clients wait, and those are gone."""
    with killed(start) as client:
        client.submit(b"f", b"", b"data")
        kept = client.submit(b"f", b"", b"kept", kind=BG)
    assert shown(after(start, b"f")) == [(kept, b"", b"kept")]


def test_running_jobs_come_back(start: Start) -> None:
    with killed(start) as client:
        handles = [client.submit(b"f", b"", b"%d" % number, kind=BG) for number in range(2)]
        taker = worker(client.socket.getpeername()[1], b"f")
        assert [taker.grab().handle for _ in range(2)] == handles
        # Its acknowledgement means that whatever happened before it is durable as well.
        handles.append(client.submit(b"f", b"", b"2", kind=BG))
    taker.close()
    assert [job.handle for job in after(start, b"f")] == handles


def test_finished_jobs_do_not_come_back(start: Start, path: Path) -> None:
    with killed(start) as client:
        done, failed, left = (client.submit(b"f", b"", b"%d" % number, kind=BG) for number in range(3))
        with worker(client.socket.getpeername()[1], b"f") as taker:
            assert [taker.grab().handle for _ in range(2)] == [done, failed]
            taker.send(Kind.WORK_COMPLETE, done, b"result").send(Kind.WORK_FAIL, failed)
            store_file.wait_for(path, "SELECT count(*) FROM records", lambda rows: rows == [(2,)])
    assert [job.handle for job in after(start, b"f")] == [left]
    records = store_file.query(path, "SELECT handle, state, result FROM records ORDER BY seq LIMIT 2")
    assert records == [(done, 3, b"result"), (failed, 4, b"")]


def test_completion_is_durable_though_the_worker_says_no_more(start: Start, path: Path) -> None:
    """Nobody else talks to the server either: there is no other reason for it to do anything."""
    with killed(start) as client:
        port = client.socket.getpeername()[1]
        handle = client.submit(b"f", b"", b"", kind=BG)
        client.close()
        with worker(port, b"f") as taker:
            assert taker.grab().handle == handle
            taker.send(Kind.WORK_COMPLETE, handle, b"")
            store_file.wait_for(path, "SELECT count(*) FROM jobs", lambda rows: rows == [(0,)])
    assert after(start, b"f") == []


def test_attempts_survive(start: Start, path: Path) -> None:
    with killed(start) as client:
        handle = client.submit(b"f", b"", b"", kind=BG)
        for attempt in (1, 2, 3):
            with worker(client.socket.getpeername()[1], b"f") as taker:
                assert taker.grab().handle == handle
            store_file.wait_for(path, "SELECT attempts FROM jobs", lambda rows, n=attempt: rows == [(n,)])  # type: ignore[misc]
    with start() as server, Peer(server.port) as admin:
        assert admin.listing("show jobs") == [[handle, b"3", b"0", b"1"]]


def test_job_that_is_given_up_after_a_restart_had_all_its_attempts(start: Start, path: Path) -> None:
    limit = ("--max-attempts", "3")
    with killed(start, *limit) as client:
        handle = client.submit(b"f", b"", b"poison", kind=BG)
        for attempt in (1, 2):
            with worker(client.socket.getpeername()[1], b"f") as taker:
                assert taker.grab().handle == handle
            store_file.wait_for(path, "SELECT attempts FROM jobs", lambda rows, n=attempt: rows == [(n,)])  # type: ignore[misc]
    with killed(start, *limit) as client:
        with worker(client.socket.getpeername()[1], b"f") as taker:
            assert taker.grab().handle == handle
        store_file.wait_for(path, "SELECT state FROM jobs", lambda rows: rows == [(6,)])
    with start(*limit) as server, worker(server.port, b"f") as taker:
        assert taker.take() is None, "it is dead, also in the next life"
        assert taker.status(handle)[0] == 0
    ((reason, payload),) = store_file.query(path, "SELECT reason, payload FROM jobs WHERE state = 6")
    assert reason.startswith("gave up after 3 attempts")
    assert payload == b"poison"


def test_order_survives(start: Start) -> None:
    """By priority, then first in, first out; also over several restarts."""
    kinds = {b"high": Kind.SUBMIT_JOB_HIGH_BG, b"normal": BG, b"low": Kind.SUBMIT_JOB_LOW_BG}
    submitted: dict[bytes, list[bytes]] = {level: [] for level in kinds}
    for life in range(3):
        with killed(start) as client:
            for number in range(10):
                for level in (b"low", b"normal", b"high"):
                    data = b"%b %d %d" % (level, life, number)
                    client.submit(b"f", b"", data, kind=kinds[level])
                    submitted[level].append(data)
    assert [job.data for job in after(start, b"f")] == [data for level in kinds for data in submitted[level]]


def test_job_that_was_put_back_keeps_its_place_at_the_end(start: Start, path: Path) -> None:
    with killed(start) as client:
        first, second = (client.submit(b"f", b"", data, kind=BG) for data in (b"first", b"second"))
        with worker(client.socket.getpeername()[1], b"f") as taker:
            assert taker.grab().handle == first
        store_file.wait_for(path, "SELECT attempts FROM jobs ORDER BY id", lambda rows: rows == [(1,), (0,)])
        third = client.submit(b"f", b"", b"third", kind=BG)
    assert [job.handle for job in after(start, b"f")] == [second, first, third]


def test_schedule_survives(start: Start, path: Path) -> None:
    """One is due while no server runs, one a moment after the start, one in years."""
    now = int(time.time())
    later = 4_000_000_000
    with killed(start) as client:

        def schedule(when: int, data: bytes) -> bytes:
            client.send(Kind.SUBMIT_JOB_EPOCH, b"f", b"", b"%d" % when, data)
            return client.body(Kind.JOB_CREATED)

        never = schedule(later, b"never")
        soon = schedule(now + 3, b"soon")
    with start() as server, worker(server.port, b"f") as taker:
        assert taker.status(never)[0] == 1
        job = taker.grab()
        assert (job.handle, job.data) == (soon, b"soon")
        assert time.time() >= now + 3
        taker.send(Kind.WORK_COMPLETE, soon, b"")
        assert taker.take() is None
    assert store_file.query(path, "SELECT handle, run_at FROM jobs") == [(never, float(later))]


def test_handles_are_never_given_out_again(start: Start) -> None:
    """Not after a kill, not after a stop, not those of foreground jobs, not those of jobs that are done."""
    seen: set[bytes] = set()
    for life in range(4):
        with start() as server, Peer(server.port) as client:
            new = [client.submit(b"f", kind=kind) for kind in (BG, Kind.SUBMIT_JOB, BG, Kind.SUBMIT_JOB_LOW)]
            assert len(set(new)) == 4
            assert not seen & set(new)
            seen |= set(new)
            drain(server.port, b"f")
            if life % 2:
                server.kill()


@pytest.mark.parametrize("size", [100_000, 16 * 1024 * 1024])
def test_result_whose_completion_was_acknowledged_survives_byte_for_byte(start: Start, size: int) -> None:
    """HTTP workers get an answer to their completion."""
    result = bytes(range(256)) * (size // 256)
    http = ("--listen", "http://127.0.0.1:0")
    with start(*http) as server:
        peer = http_peer.Peer(server.urls[1])
        handle = peer.submit("f")["handle"]
        worker = peer.worker("f")
        worker.claim()
        worker.complete(handle, result)
        server.kill()
    with start(*http) as server:
        answer = http_peer.Peer(server.urls[1]).call("GET", f"/jobs/{handle}/result")
        assert (answer.status, answer.data == result) == (200, True)


def test_keep_for_survives(start: Start, path: Path) -> None:
    """A job of the GearMonkey door that is restored keeps its record for the 25 hours of that door."""
    door = ("--listen", "gearmonkey://127.0.0.1:0")
    with start(*door) as server, redis_py_peer.connect(int(server.urls[1].rpartition(":")[2])) as raw:
        number = raw.incr("uid:f")
        raw.hset(f"job:f:{number}", mapping={"status": "idle", "input": "x"})
        raw.lpush("queue:f:normal", number)
        server.kill()
    assert len(after(start, b"f")) == 1
    ((seconds,),) = store_file.query(path, "SELECT keep_until - finished_at FROM records")
    assert seconds == pytest.approx(25 * 3600)


@pytest.mark.parametrize("size", [1, 1_000_000, 8 * 1024 * 1024])
def test_payload_survives_byte_for_byte(start: Start, size: int) -> None:
    data = bytes(range(256)) * (size // 256) + b"\0" * (size % 256)
    with killed(start) as client:
        handle = client.submit(b"f\xff", b"\xfe key", data, kind=BG)
    assert shown(after(start, b"f\xff")) == [(handle, b"\xfe key", data)]


def test_reducer_survives(start: Start) -> None:
    with killed(start) as client:
        client.send(Kind.SUBMIT_REDUCE_JOB_BG, b"f", b"key", b"sum", b"0", b"data")
        handle = client.body(Kind.JOB_CREATED)
    with start() as server, worker(server.port, b"f") as taker:
        job = taker.grab(Kind.GRAB_JOB_ALL)
        assert (job.handle, job.reducer, job.data) == (handle, b"sum", b"data")


def test_cancelled_job_does_not_come_back(start: Start, path: Path) -> None:
    with killed(start) as client:
        handle = client.submit(b"f", b"", b"", kind=BG)
        client.text(b"cancel job " + handle)
        assert client.line() == b"OK\r\n"
        store_file.wait_for(path, "SELECT count(*) FROM jobs", lambda rows: rows == [(0,)])
    assert after(start, b"f") == []
