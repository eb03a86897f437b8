"""Workers that outlive their server: those whose library comes back by itself do so, and are served."""

import contextlib
from pathlib import Path

import pytest

from tests.interop.libraries import GEAR, GEARMAN, Library
from tests.interop.peer import Start, Worker
from tests.support.gearman_peer import Kind, Peer

# PHP, python3-gearman and aiogear leave it to the application; Perl looks again after 10 s at the earliest.
RETURNING = (GEARMAN, GEAR)


@pytest.mark.parametrize("library", RETURNING, ids=str)
def test_worker_comes_back_to_a_server_that_was_started_again(
    library: Library, start: Start, stack: contextlib.ExitStack, tmp_path: Path
) -> None:
    with start() as first:
        worker = Worker(library, first.port, "back", tmp_path)
        stack.callback(worker.kill)
        worker.wait_until_ready()
        _expect_reversed(first.port)
    with start(first.port) as second:
        _expect_reversed(second.port)


def _expect_reversed(port: int) -> None:
    with Peer(port) as client:
        handle = client.submit(b"back-reverse", b"", b"again")
        client.expect(Kind.WORK_COMPLETE, handle, b"niaga")
