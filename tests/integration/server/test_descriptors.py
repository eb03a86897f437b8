"""A server that runs out of file descriptors: open connections stay, and the log says why new ones end."""

import contextlib
import resource

from tests.support import serving
from tests.support.gearman_peer import Peer
from tests.support.peer import until

FILES = 64
EVENT = "file descriptors nearly exhausted"


def test_exhausted_descriptors_are_logged() -> None:
    limit = ("prlimit", f"--nofile={FILES}:{FILES}")
    with (
        serving.serve("--store", "memory", "--listen", "gearman://127.0.0.1:0", under=limit) as server,
        contextlib.ExitStack() as stack,
    ):
        assert resource.prlimit(server.pid, resource.RLIMIT_NOFILE) == (FILES, FILES)
        first = stack.enter_context(Peer(server.port))
        first.silence()
        assert EVENT not in server.stderr
        for _ in range(FILES):
            stack.enter_context(Peer(server.port))
        first.silence()
        first.silence()
        until(lambda: EVENT in server.stderr, "the log says so")
        assert server.says(f'why="at most {FILES} files"')
