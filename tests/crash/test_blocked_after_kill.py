"""kill -9 while jobs wait for others: none runs before those are done, and none is forgotten."""

import random

from tests.crash.conftest import Start
from tests.support.http_peer import Peer

HTTP = ("--listen", "http://127.0.0.1:0")
MEMBERS, KILLS = 40, 5


def test_a_callback_runs_once_after_all_others(start: Start) -> None:
    chance = random.Random(7)
    with start(*HTTP) as server:
        peer = Peer(server.urls[1])
        members = [peer.submit("f", f"member {number}")["handle"] for number in range(MEMBERS)]
        callback = peer.submit("f", "callback", after=members)["handle"]
        server.kill()
    done: set[str] = set()
    for life in range(KILLS + 1):
        with start(*HTTP) as server:
            peer = Peer(server.urls[1])
            worker = peer.worker("f")
            most = chance.randrange(1, MEMBERS // KILLS) if life < KILLS else MEMBERS
            for _ in range(most):
                job = worker.claim()
                if job["payload"] == "callback":
                    break
                worker.complete(job["handle"])
                done.add(job["handle"])
            assert (peer.get(f"/jobs/{callback}")["state"] == "blocked") is (len(done) < MEMBERS)
            if life < KILLS:
                server.kill()
                continue
            assert done == set(members)
            worker.complete(callback)
            assert worker.claim() is None
            server.kill()
