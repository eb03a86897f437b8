"""CONFIG_GET and CONFIG_SET: names old and new, what they govern, and that they stay."""

import time

import pytest

from tests.acceptance.periodic.conftest import Start
from tests.support import serving
from tests.support.peer import until
from tests.support.periodic_peer import WORKER, Dialect, Peer

DEFAULTS = {
    b"poll-interval": 300,
    b"revert-interval": 300,
    b"timeout": 600,
    b"keepalive": 300,
    b"max-batch-size": 250,
    b"lock-timeout": 300,
    b"expiration": 300,
    b"assign-wait": 2,
    b"max-pool-size": 10,
    b"run-job-aggressive": 0,
}
OLD_NAMES = {
    b"poll-delay": b"poll-interval",
    b"revert-delay": b"revert-interval",
    b"max-patch": b"max-batch-size",
}


def test_defaults(client: Peer) -> None:
    for key, value in DEFAULTS.items():
        assert client.get(key) == value, key


@pytest.mark.parametrize(("old", "new"), OLD_NAMES.items())
def test_old_and_new_names_are_one_value(client: Peer, old: bytes, new: bytes) -> None:
    client.set(old, 123)
    assert client.get(new) == client.get(old) == 123
    client.set(new, DEFAULTS[new])
    assert client.get(old) == DEFAULTS[new]


def test_unknown_keys(client: Peer) -> None:
    for key in (b"", b"Timeout", b"periodic.timeout", b"x" * 255, b"\xff"):
        client.set(key, 1)
        assert client.get(key) == 0


@pytest.mark.parametrize("value", [0, 1, 2**32 - 1])
def test_the_server_works_on_with_any_value(start: Start, value: int) -> None:
    with start() as server, Peer(server.port, Dialect.TODAY, WORKER) as worker:
        for key in (*DEFAULTS, *OLD_NAMES):
            if (key, value) != (b"keepalive", 1):  # it would close us while we wait
                worker.set(key, value)
                assert worker.get(key) == value
        worker.offer(b"f")
        for name, run_at in ((b"now", 0), (b"soon", int(time.time()) + 1)):
            worker.submit(b"f", name, run_at=run_at)
            given = worker.take()
            assert given.name == name
            worker.done(given)


def test_values_survive_a_stop(store: str, dialect: Dialect) -> None:
    _check_kept(store, dialect, kill=False)


def test_values_survive_a_kill(store: str, dialect: Dialect) -> None:
    _check_kept(store, dialect, kill=True)


def _check_kept(store: str, dialect: Dialect, kill: bool) -> None:
    listen = ("--store", store, "--listen", "periodic://127.0.0.1:0")
    with serving.serve(*listen) as server, Peer(server.port, dialect) as client:
        client.set(b"timeout", 7)
        client.set(b"max-patch", 11)
        client.set(b"timeout", 9)
        if kill:
            server.kill()
    with serving.serve(*listen) as server, Peer(server.port, dialect) as client:
        assert client.get(b"timeout") == 9
        assert client.get(b"max-batch-size") == 11
        assert client.get(b"keepalive") == 300


def test_keepalive_closes_who_is_silent(start: Start, dialect: Dialect) -> None:
    """Any frame counts as a sign of life; jobs of a silent worker go to another."""
    with (
        start("--listen", "gearman://127.0.0.1:0") as server,
        Peer(server.port, dialect, WORKER) as silent,
        Peer(server.port, dialect, WORKER) as lively,
    ):
        silent.offer(b"f")
        lively.offer(b"f")
        lively.submit(b"f", b"name")
        silent.take()
        lively.set(b"keepalive", 2)
        grab = lively.grab()
        until(lambda: lively.status()[b"f"][0] == 1, "the silent one is gone")
        silent.closed()
        assert lively.assigned(grab).name == b"name"
        assert server.says("peer silent, disconnecting")


def test_keepalive_that_is_turned_off(start: Start) -> None:
    with start() as server, Peer(server.port, Dialect.DOCUMENT) as client:
        client.set(b"keepalive", 0)
        # When a wait is over, the server looks round for silent peers too.
        assert client.data(client.run(b"f", b"name", timeout=1)) == b""
        client.silence()
