"""The incomplete packets of all peers have a bound, by every door; small ones are always taken."""

from collections.abc import Iterator

import pytest

from tests.support import serving
from tests.support.peer import RawPeer, connect

DOORS = ("gearman", "gearmonkey", "http")
PART = bytes(300_000)  # of a packet of a million bytes
BEGUN = {
    "gearman": b"\0REQ\0\0\0\x12" + (1_000_000).to_bytes(4, "big"),
    "gearmonkey": b"*2\r\n$4\r\nPING\r\n$1000000\r\n",
    "http": b"POST /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\n",
}
REFUSED = {"gearman": b"LIMIT_REACHED\0", "gearmonkey": b"-LIMIT_REACHED ", "http": b"HTTP/1.1 503 "}


@pytest.fixture(scope="module")
def server() -> Iterator[serving.ServerProcess]:
    listen = [word for door in DOORS for word in ("--listen", f"{door}://127.0.0.1:0")]
    with serving.serve("--store", "memory", "--max-inflight-bytes", "100kB", *listen) as server:
        yield server


def open_peer(server: serving.ServerProcess, door: str) -> RawPeer:
    url = server.urls[DOORS.index(door)]
    return RawPeer(connect(int(url.rpartition(":")[2])))


@pytest.mark.parametrize("door", DOORS)
def test_a_large_packet_is_refused_while_it_arrives(server: serving.ServerProcess, door: str) -> None:
    with open_peer(server, door) as peer:
        peer.raw(BEGUN[door] + PART)
        answer = peer.rest()
    assert REFUSED[door] in answer
    assert b"max_inflight_bytes" in answer


def test_small_packets_are_taken(server: serving.ServerProcess) -> None:
    with open_peer(server, "gearman") as peer:
        for byte in b"version\n":
            peer.raw(bytes((byte,)))
        assert peer.line().startswith(b"OK ")
