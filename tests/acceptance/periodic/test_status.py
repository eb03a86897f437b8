"""STATUS: functions whose names clients cannot read are omitted and counted."""

from tests.acceptance.periodic.conftest import Start, port_of
from tests.support import gearman_peer
from tests.support.gearman_peer import Kind
from tests.support.periodic_peer import Dialect, Peer

EVENT = "functions omitted from status"


def test_names_that_break_the_lines_are_omitted(start: Start, dialect: Dialect) -> None:
    with (
        start("--listen", "gearman://127.0.0.1:0") as server,
        Peer(server.port, dialect) as client,
        gearman_peer.Peer(port_of(server, "gearman")) as gearman,
    ):
        for function in (b"one,two", b"caf\xe9", b"plain", "café".encode()):
            gearman.submit(function, kind=Kind.SUBMIT_JOB_BG)
        for _ in range(2):
            assert client.status().keys() == {b"plain", "café".encode()}
        assert server.says("2 with unsuitable names")
        assert server.stderr.count(EVENT) == 1

        gearman.submit(b"three,four", kind=Kind.SUBMIT_JOB_BG)
        assert client.status().keys() == {b"plain", "café".encode()}
        assert server.says("3 with unsuitable names")
        assert server.stderr.count(EVENT) == 2, "one line whenever the number changes"
