"""A peer that floods the server, or does not read what it has caused, takes neither memory nor time from others."""

import pytest

from tests.acceptance.gearman.test_bad_peers import MEGABYTE, resident
from tests.support import serving
from tests.support.gearman_peer import Kind, Peer, Start, request, worker
from tests.support.peer import until

JOBS = 20_000
LISTS = 6_000  # of all jobs: more than two gigabytes

pytestmark = pytest.mark.differs_from_gearmand


def fill(peer: Peer) -> None:
    peer.raw(request(Kind.SUBMIT_JOB_BG, b"f", b"", b"x") * JOBS)
    for _ in range(JOBS):
        peer.body(Kind.JOB_CREATED)


def test_pipelined_lists_that_nobody_reads(start: Start) -> None:
    with start() as server, Peer(server.port) as other, Peer(server.port) as flood:
        fill(other)
        before = resident(server.pid)
        flood.raw(b"show jobs\n" * LISTS)
        assert len(flood.line()) > 1, "the first list does not wait"
        for _ in range(20):
            assert other.text("version").line().startswith(b"OK ")
        assert resident(server.pid) - before < 64 * MEGABYTE
        assert len(flood.block()) == JOBS - 1, "the peer that reads on gets the rest"


def test_one_job_that_is_joined_very_often(start: Start) -> None:
    joins = 2_000
    result = bytes(MEGABYTE)
    with start() as server, Peer(server.port) as client, worker(server.port, b"f") as busy:
        client.raw(request(Kind.SUBMIT_JOB, b"f", b"unique", b"") * joins)
        handles = {client.body(Kind.JOB_CREATED) for _ in range(joins)}
        before = resident(server.pid)
        job = busy.grab()
        assert handles == {job.handle}
        busy.send(Kind.WORK_COMPLETE, job.handle, result)
        assert busy.text("version").line().startswith(b"OK ")
        assert resident(server.pid) - before < 64 * MEGABYTE
        for _ in range(20):
            client.expect(Kind.WORK_COMPLETE, job.handle, result)


def test_a_peer_that_reads_nothing_for_too_long_is_disconnected_and_logged() -> None:
    options = ["--store", "memory", "--listen", "gearman://127.0.0.1:0", "--slow-reader-timeout", "300ms"]
    with (
        serving.serve(*options, "--log-level", "error") as server,
        Peer(server.port) as other,
        Peer(server.port) as flood,
    ):
        fill(other)
        flood.submit(b"foreground")
        flood.raw(b"show jobs\n" * LISTS)
        until(lambda: "connection dropped" in server.stderr, "a line in the log")
        assert "slow_reader_timeout" in server.stderr
        until(lambda: [b"foreground", b"0", b"0", b"0"] in other.listing("status"), "the end of its job")
