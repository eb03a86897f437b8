"""Schedules by HTTP."""

from typing import Any

import pytest

from tests.support.http_peer import Peer

NIGHTLY = {"expression": "15 3 * * *", "function": "report", "payload": "all", "timezone": "Europe/Vienna"}


def put(peer: Peer, name: str, order: Any) -> Any:
    answer = peer.call("PUT", f"/schedules/{name}", order)
    assert answer.status == 200, answer
    return answer.json


def test_the_life_of_a_schedule(peer: Peer) -> None:
    made = put(peer, "nightly", NIGHTLY)
    assert (made["expression"], made["function"], made["timezone"]) == ("15 3 * * *", "report", "Europe/Vienna")
    assert made["next_at"] > peer.get("/overview")["now"]
    assert peer.get("/schedules/nightly") == made
    assert made in peer.get("/schedules")
    assert made["missed"] == "once"
    assert put(peer, "nightly", {**NIGHTLY, "missed": "all"})["missed"] == "all"
    changed = put(peer, "nightly", {**NIGHTLY, "payload": "some"})
    assert changed["payload"] == "some"
    assert peer.post("/schedules/nightly/pause")["paused"] is True
    assert peer.post("/schedules/nightly/resume")["paused"] is False
    run = peer.post("/schedules/nightly/run")
    job = peer.get(f"/jobs/{run['handle']}")
    assert (job["function"], job["payload"], job["door"]) == ("report", "some", "cron")
    assert peer.call("DELETE", "/schedules/nightly").status == 204
    assert peer.call("GET", "/schedules/nightly").status == 404


@pytest.mark.parametrize(
    "wrong",
    [
        {"expression": "every day"},
        {"expression": "61 * * * *"},
        {"timezone": "Mars/Olympus"},
        {"priority": "urgent"},
        {"missed": "twice"},
        {"expression": "@every 0s"},
        {"function": "geartrain.control"},
        {"function": ""},
        {"more": 1},
    ],
)
def test_an_invalid_schedule(peer: Peer, wrong: dict[str, Any]) -> None:
    answer = peer.call("PUT", "/schedules/wrong", {**NIGHTLY, **wrong})
    assert (answer.status, answer.json["kind"]) == (400, "bad-request"), answer
    assert peer.call("GET", "/schedules/wrong").status == 404


@pytest.mark.parametrize("verb", ["run", "pause", "resume"])
def test_an_unknown_schedule(peer: Peer, verb: str) -> None:
    assert peer.call("POST", f"/schedules/none/{verb}").status == 404
    assert peer.call("DELETE", "/schedules/none").status == 404


def test_the_name_of_a_schedule_must_be_utf8(peer: Peer) -> None:
    assert peer.call("PUT", "/schedules/%FF", NIGHTLY).status == 400
