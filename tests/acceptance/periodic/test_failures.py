"""WORK_FAIL: tried again after a delay that grows, and set aside as dead after so many attempts."""

import time
from collections.abc import Callable

from tests.acceptance.periodic.conftest import Start, port_of
from tests.support import gearman_peer
from tests.support.periodic_peer import WORKER, Dialect, Peer


def test_the_delay_grows(client: Peer, worker: Peer, function: bytes) -> None:
    client.submit(function, b"name", b"payload")
    for delay in (1, 2):
        given = worker.take()
        assert given.payload == b"payload"
        before = int(time.time())
        worker.fail(given)
        worker.silence()
        after = int(time.time())
        [entry] = [entry for entry in client.dump() if entry.function == function]
        assert before + delay <= entry.run_at <= after + delay


def test_the_last_attempt(start: Start, dialect: Dialect) -> None:
    with (
        start("--max-attempts", "2", "--listen", "gearman://127.0.0.1:0") as server,
        Peer(server.port, dialect, WORKER) as worker,
        Peer(server.port, dialect) as client,
        gearman_peer.Peer(port_of(server, "gearman")) as admin,
    ):
        worker.offer(b"f")
        client.submit(b"f", b"name")
        given = worker.take()
        waiting = client.run(b"f", b"name")
        client.silence()
        worker.fail(given)
        assert admin.listing("show dead jobs") == []
        worker.fail(worker.take())
        assert client.data(waiting) == (b"failed" if dialect is Dialect.TODAY else b"")
        assert client.status()[b"f"][1:3] == [0, 0]
        [[_, function, attempts, reason]] = admin.listing("show dead jobs")
        assert (function, attempts) == (b"f", b"2")
        assert reason.startswith(b"gave up after 2 attempts")
        # The name is free again, and the new job has all its attempts before it.
        client.submit(b"f", b"name", b"new")
        given = worker.take()
        assert given.payload == b"new"
        worker.fail(given)
        worker.silence()
        assert client.status()[b"f"][1:3] == [1, 0]
        assert len(admin.listing("show dead jobs")) == 1


def test_putting_off_is_no_failure(start: Start, dialect: Dialect) -> None:
    with start("--max-attempts", "1") as server, Peer(server.port, dialect, WORKER) as worker:
        worker.offer(b"f")
        worker.submit(b"f", b"name")
        for count in range(5):
            given = worker.take()
            assert given.count == count
            worker.later(given, 0, 1)


def test_lost_workers_count_as_attempts(start: Start, hire: Callable[..., Peer], dialect: Dialect) -> None:
    with start("--max-attempts", "2") as server, Peer(server.port, dialect) as client:
        client.submit(b"f", b"name")
        for _ in range(2):
            with Peer(server.port, dialect, WORKER) as worker:
                worker.offer(b"f")
                worker.take()
        with Peer(server.port, dialect, WORKER) as worker:
            worker.offer(b"f").grab()
            while client.status()[b"f"][0] > 1:
                pass
            worker.silence()
        assert client.status()[b"f"][1:3] == [0, 0]
