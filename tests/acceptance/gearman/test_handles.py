"""Handles: `H:<host>:<number>`, one counter for the whole server, a prefix of one's own if wanted."""

import os
import re

import pytest

from tests.support.gearman_peer import Kind, Peer, Start, worker


def test_a_handle_names_the_host_and_counts(client: Peer, function: bytes) -> None:
    handles = [client.submit(function), client.submit(function + b" other", kind=Kind.SUBMIT_JOB_LOW_BG)]
    host = re.escape(os.uname().nodename.encode())
    matches = [re.fullmatch(rb"H:" + host + rb":([1-9][0-9]*)", handle) for handle in handles]
    first, second = (int(match[1]) for match in matches if match)
    assert second == first + 1


def test_connections_share_the_counter(client: Peer, admin: Peer, function: bytes) -> None:
    handles = [peer.submit(function) for peer in (client, admin, client, admin)]
    assert len(set(handles)) == 4


@pytest.mark.differs_from_gearmand
def test_a_restarted_server_gives_no_handle_twice(start: Start) -> None:
    """gearmand counts from one again, and a client's old handle then means somebody else's job."""
    handles = set()
    for _ in range(2):
        with start() as server, Peer(server.port) as client:
            handles |= {client.submit(b"f"), client.submit(b"f")}
    assert len(handles) == 4


def test_a_prefix_of_ones_own(drop_in: Start) -> None:
    with drop_in("--job-handle-prefix=X:pre") as server, Peer(server.port) as client:
        handle = client.submit(b"f", b"", b"data")
        assert re.fullmatch(rb"X:pre:[1-9][0-9]*", handle)
        with worker(server.port, b"f") as busy:
            busy.send(Kind.GRAB_JOB)
            busy.expect(Kind.JOB_ASSIGN, handle, b"f", b"data")
            busy.send(Kind.WORK_COMPLETE, handle, b"result")
            client.expect(Kind.WORK_COMPLETE, handle, b"result")


def test_a_handle_fits_in_64_bytes_with_its_nul(drop_in: Start) -> None:
    """However long the prefix: libraries keep handles in a buffer of that size."""
    with drop_in("--job-handle-prefix=" + "x" * 40) as server, Peer(server.port) as client:
        handle = client.submit(b"f", b"", b"data")
        assert len(handle) <= 63
        assert client.status(handle) == (1, 0, 0, 0)
