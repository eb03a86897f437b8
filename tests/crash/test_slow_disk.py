"""A server whose disk is slow: only what waits for the disk waits.

strace delays the syncs of the server inside the kernel. A VFS in Python, as in `faulty_disk`, cannot show what this
shows: it takes and releases Python's global lock itself.
"""

import select
from pathlib import Path

import pytest

from tests.crash.conftest import Start
from tests.support import serving
from tests.support.gearman_peer import Kind, Peer

BG = Kind.SUBMIT_JOB_BG
SYNCS = "fsync,fdatasync"
# Of each sync. Long enough for the round trips below on the slowest machine; the test does not wait for its end.
DELAY_SECONDS = 1
ROUND_TRIPS = 20
SLOW_DISK = (
    "strace", "-D", "-f", "--seccomp-bpf", "--quiet=all", "-o", "/dev/null",
    "-e", f"trace={SYNCS}", "-e", f"inject={SYNCS}:delay_enter={DELAY_SECONDS}s",
)  # fmt: skip


@pytest.mark.peer("strace")
def test_other_connections_are_answered_during_a_sync(start: Start, path: Path) -> None:
    with start():
        pass  # the file exists now: the next start syncs less often
    flags = ("--store", f"sqlite://{path}", "--listen", "gearman://127.0.0.1:0")
    with serving.serve(*flags, under=SLOW_DISK) as server, Peer(server.port) as client, Peer(server.port) as other:
        client.send(BG, b"f", b"", b"slow")
        for _ in range(ROUND_TRIPS):
            other.text("version")
            assert other.line().startswith(b"OK ")
        assert not _has_answer(client), "all other connections waited for the sync"
        assert client.packet()[0] == Kind.JOB_CREATED
        server.kill()


def _has_answer(client: Peer) -> bool:
    return bool(select.select([client.socket], [], [], 0)[0])
