"""kill -9 and a time to live: a job whose time passed while the server was down is not run."""

import contextlib
from pathlib import Path

import apsw

from tests.crash.conftest import Start
from tests.support.http_peer import Peer

HTTP = ("--listen", "http://127.0.0.1:0")


def test_job_that_expired_while_the_server_was_down(start: Start, path: Path) -> None:
    with start(*HTTP) as server:
        peer = Peer(server.urls[1])
        old = peer.submit("f", "old", expires=3600)["handle"]
        new = peer.submit("f", "new", expires=7200)["handle"]
        server.kill()
    with contextlib.closing(apsw.Connection(str(path))) as store:
        store.execute("UPDATE jobs SET expires_at = expires_at - 3601")  # as if an hour had passed
    with start(*HTTP) as server:
        peer = Peer(server.urls[1])
        assert peer.get(f"/jobs/{old}")["state"] == "expired"
        job = peer.worker("f").claim()
        assert (job["handle"], job["payload"]) == (new, "new")
        server.kill()
    with start(*HTTP) as server:
        assert Peer(server.urls[1]).get(f"/jobs/{old}")["state"] == "expired"
