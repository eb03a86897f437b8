"""kill -9, and limits and partitions are as before: both are stored."""

from tests.crash.conftest import Start
from tests.support.http_peer import Peer

HTTP = ("--listen", "http://127.0.0.1:0")
LIMITS = {
    "max_running": 3,
    "max_running_per_partition": 1,
    "rate": "100/s",
    "burst": 50,
    "rate_per_partition": "100/s",
    "burst_per_partition": 20,
    "partition_from_unique": ":",
}


def test_limits_and_partitions(start: Start) -> None:
    with start(*HTTP) as server:
        peer = Peer(server.urls[1])
        assert peer.call("PATCH", "/functions/f/limits", LIMITS).status == 200
        for number in range(3):
            peer.submit("f", f"a{number}", partition="a")
            peer.submit("f", f"b{number}", unique=f"b:{number}")
        worker = peer.worker("f")
        assert [worker.claim()["payload"] for _ in range(2)] == ["a0", "b0"]
        server.kill()
    with start(*HTTP) as server:
        peer = Peer(server.urls[1])
        function = peer.get("/functions/f")
        assert {name: function["running_limits"][name] for name in LIMITS} == LIMITS
        assert sorted(function["limits_set"]) == sorted(LIMITS)
        assert (function["queued"], function["partitions"]) == (6, 2)
        worker = peer.worker("f")
        first = worker.claim()
        assert [first["payload"], worker.claim()["payload"]] == ["a0", "b0"]
        assert worker.claim() is None  # each partition has one that runs
        worker.complete(first["handle"])
        assert worker.claim()["payload"] == "a1"
        server.kill()
