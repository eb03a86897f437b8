"""SHUTDOWN: no answer, and the server stops, for peers of its own machine."""

from tests.acceptance.periodic.conftest import Start
from tests.support.periodic_peer import Command, Dialect, Peer


def test_over_tcp(start: Start, dialect: Dialect) -> None:
    with start() as server, Peer(server.port, dialect) as client:
        client.send(Command.SHUTDOWN)
        client.closed()
        assert server.wait() == 0


def test_over_a_socket_file(start: Start, dialect: Dialect, socket_file: str) -> None:
    path = f"{socket_file}.shutdown"
    with start("--listen", f"periodic+unix://{path}") as server, Peer(path, dialect) as client:
        client.send(Command.SHUTDOWN)
        client.closed()
        assert server.wait() == 0
