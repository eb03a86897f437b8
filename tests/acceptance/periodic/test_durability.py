"""Scheduled jobs and kill -9: what was confirmed is there, runs at its time, and once per schedule."""

import contextlib
import time
from collections.abc import Iterator

from tests.support import serving
from tests.support.periodic_peer import WORKER, Command, Dialect, Peer, job, jobs, text


@contextlib.contextmanager
def serve(store: str) -> Iterator[serving.ServerProcess]:
    with serving.serve("--store", store, "--listen", "periodic://127.0.0.1:0") as server:
        yield server


def test_a_scheduled_job_survives_and_runs_at_its_time(store: str, dialect: Dialect) -> None:
    run_at = int(time.time()) + 3
    with serve(store) as server, Peer(server.port, dialect) as client:
        client.submit(b"f", b"name", b"payload", run_at, count=-4, timeout=77)
        client.submit(b"f", b"far", run_at=4_000_000_000)
        server.kill()
    with serve(store) as server, Peer(server.port, dialect, WORKER) as worker:
        given = worker.offer(b"f").take()
        assert given[1:7] == (b"f", b"name", b"payload", run_at, -4, 77)
        assert time.time() >= run_at - 0.001
        worker.done(given)
        worker.grab()
        worker.silence()


def test_a_chain_of_schedules_with_kills_in_between(store: str, dialect: Dialect) -> None:
    """The worker puts the job off three times; however the server ends in between, each schedule runs once."""
    with serve(store) as server, Peer(server.port, dialect) as client:
        client.submit(b"f", b"chain")
        server.kill()
    for step in range(3):
        with serve(store) as server, Peer(server.port, dialect, WORKER) as worker:
            given = worker.offer(b"f").take()
            assert (given.name, given.count) == (b"chain", step)
            assert time.time() >= given.run_at
            worker.later(given, 1, 1)
            # In the document's dialect that is not confirmed; what comes after it is.
            worker.submit(b"other", b"barrier")
            server.kill()
    with serve(store) as server, Peer(server.port, dialect, WORKER) as worker:
        given = worker.offer(b"f").take()
        assert given.count == 3
        worker.done(given)
        worker.submit(b"other", b"barrier")
        server.kill()
    with serve(store) as server, Peer(server.port, dialect, WORKER) as worker:
        assert {entry.name for entry in worker.dump()} == {b"barrier"}


def test_today_s_sched_later_is_confirmed_when_it_is_on_disk(store: str) -> None:
    for count in range(3):
        with serve(store) as server, Peer(server.port, Dialect.TODAY, WORKER) as worker:
            if not count:
                worker.submit(b"f", b"name")
            given = worker.offer(b"f").take()
            assert given.count == count
            worker.later(given, 0, 1)
            server.kill()


def test_a_job_that_runs_when_the_server_is_killed_runs_again(store: str, dialect: Dialect) -> None:
    with serve(store) as server, Peer(server.port, dialect, WORKER) as worker:
        worker.submit(b"f", b"name", b"payload")
        worker.offer(b"f").take()
        server.kill()
    with serve(store) as server, Peer(server.port, dialect, WORKER) as worker:
        assert worker.offer(b"f").take().payload == b"payload"


def test_replaced_removed_and_dropped_jobs_stay_so(store: str, dialect: Dialect) -> None:
    far = 4_000_000_000
    with serve(store) as server, Peer(server.port, dialect) as client:
        for name in (b"replaced", b"removed", b"kept"):
            client.submit(b"f", name, b"old", far)
        client.submit(b"dropped", b"name", b"", far)
        client.submit(b"f", b"replaced", b"new", far + 1)
        client.succeed(Command.REMOVE_JOB, text(b"f") + text(b"removed"))
        client.succeed(Command.DROP_FUNC, text(b"dropped"))
        server.kill()
    with serve(store) as server, Peer(server.port, dialect) as client:
        found = {(entry.name, entry.payload, entry.run_at) for entry in client.dump()}
        assert found == {(b"replaced", b"new", far + 1), (b"kept", b"old", far)}


def test_a_loaded_dump_is_durable(store: str, dialect: Dialect) -> None:
    entries = [job(b"f", b"%d" % number, run_at=4_000_000_000) for number in range(1000)]
    with serve(store) as server, Peer(server.port, dialect) as client:
        client.succeed(Command.LOAD, jobs(*entries))
        server.kill()
    with serve(store) as server, Peer(server.port, dialect) as client:
        assert len(client.dump()) == 1000
