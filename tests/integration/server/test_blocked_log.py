"""A server whose log nobody reads: it answers on, and stops."""

import fcntl
import subprocess
from pathlib import Path

from tests.support import process, serving
from tests.support.gearman_peer import Peer

LINES = 300  # more than fit into the pipe


def test_server_answers_while_nobody_reads_its_log(tmp_path: Path) -> None:
    command = [str(serving.installed_command()), "serve", "--store", "memory", "--log-level", "debug"]
    with subprocess.Popen(
        [*command, "--listen", "gearman://127.0.0.1:0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pipesize=4096,
        env=process.clean_environment(tmp_path),
    ) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        try:
            assert fcntl.fcntl(server.stderr, fcntl.F_GETPIPE_SZ) == 4096
            port = int(server.stdout.readline().rpartition(b":")[2])
            for _ in range(LINES):
                with Peer(port) as peer:  # two lines each: connected and disconnected
                    peer.text("version")
                    assert peer.line().startswith(b"OK ")
            server.terminate()
            assert server.wait(process.PATIENCE) == 0
        finally:
            server.kill()
