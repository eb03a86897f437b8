"""The control function works through every door, and does not appear in lists."""

import json

import pytest

from tests.acceptance.admin.conftest import CONTROL, WAYS, Ask, Ports, asker
from tests.support.gearman_peer import Kind, Peer
from tests.support.peer import until

EVERY_DOOR = pytest.mark.parametrize("door", WAYS)


@EVERY_DOOR
def test_ping(ports: Ports, door: str) -> None:
    answer = asker(ports, door)("ping")["answer"]
    assert answer["server"] == "geartrain"
    assert answer["version"]


@EVERY_DOOR
def test_pause_and_resume(ports: Ports, door: str, peer: Peer, function: bytes) -> None:
    ask = asker(ports, door)
    peer.register(function)
    assert ask("pause", function=function.decode()) == {"answer": None}
    handle = peer.submit(function, b"", b"payload", kind=Kind.SUBMIT_JOB_BG)
    assert peer.take() is None
    assert ask("function", name=function.decode())["answer"]["paused"] is True
    assert ask("resume", function=function.decode()) == {"answer": None}
    assert peer.grab().handle == handle
    peer.send(Kind.WORK_COMPLETE, handle, b"")


def test_the_control_function_is_hidden(peer: Peer, ask: Ask) -> None:
    answers = [ask("overview")["answer"] for _ in range(3)]
    # Only this function is looked for: workers of earlier tests may still be on their way out.
    for command in ("status", "workers", "prioritystatus"):
        assert not any(CONTROL in word for line in peer.listing(command) for word in line), command
    assert len({(answer["submitted"], answer["completed"], answer["running"]) for answer in answers}) == 1
    assert all(view["name"] != CONTROL.decode() for view in ask("functions")["answer"]["items"])
    assert all(view["function"] != CONTROL.decode() for view in ask("jobs")["answer"]["items"])
    assert peer.text("show unique jobs").block() == []


def test_no_worker_can_register_the_control_function(peer: Peer, ask: Ask) -> None:
    peer.register(CONTROL)
    peer.sleep()
    peer.silence()
    assert ask("ping")["answer"]["server"] == "geartrain"
    assert peer.take() is None


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (b"", "not JSON"),
        (b"[]", "JSON object"),
        (b'{"do": 5}', "JSON object"),
        (b"[" * 100_000, "not JSON"),
        (b'{"do": "explode"}', "unknown verb 'explode'"),
        (b'{"do": "pause"}', "needs the argument 'function'"),
        (b'{"do": "pause", "function": 5}', "function: must be a string"),
        (b'{"do": "pause", "function": "f", "more": 1}', "no argument 'more'"),
        (b'{"do": "pause", "function": "geartrain.control"}', "the server itself"),
        (b'{"do": "jobs", "limit": "many"}', "limit: Expected `int`"),
        (b'{"do": "jobs", "state": "lost"}', "unknown state 'lost'"),
        (b'{"do": "bulk", "action": "explode"}', "unknown action 'explode'"),
        (b'{"do": "bulk", "action": "retry", "filter": {"state": "queued"}}', "retry applies to jobs that are dead"),
        (b'{"do": "tail", "what": ["nothing"]}', "unknown event 'nothing'"),
    ],
)
def test_bad_requests_are_answered(peer: Peer, payload: bytes, words: str) -> None:
    handle = peer.submit(CONTROL, b"", payload)
    name, result = peer.body(Kind.WORK_COMPLETE).split(b"\0", 1)
    error = json.loads(result)["error"]
    assert (name, error["kind"]) == (handle, "bad-request")
    assert words in error["text"]


def test_unknown_names_are_not_found(ask: Ask) -> None:
    for verb, arguments in {
        "function": {"name": "nobody's"},
        "resume": {"function": "nobody's"},
        "job": {"handle": "H:nowhere:1"},
        "cancel": {"handle": "H:nowhere:1"},
        "cron": {"name": "never"},
    }.items():
        assert ask(verb, **arguments)["error"]["kind"] == "not-found", verb


def test_a_job_from_beginning_to_end(ask: Ask, peer: Peer, function: bytes) -> None:
    handle = peer.submit(function, b"key", b"payload", kind=Kind.SUBMIT_JOB_HIGH_BG)
    job = ask("job", handle=handle.decode())["answer"]
    assert (job["state"], job["priority"], job["unique"], job["payload"], job["door"]) == (
        "queued", "high", "key", "payload", "gearman",
    )  # fmt: skip
    assert ask("payload", handle=handle.decode())["answer"] == "payload"
    assert ask("result", handle=handle.decode())["error"]["kind"] == "conflict"
    peer.send(Kind.SET_CLIENT_ID, b"bob").register(function)
    peer.grab()
    peer.send(Kind.WORK_STATUS, handle, b"1", b"2").silence()
    job = ask("job", handle=handle.decode())["answer"]
    assert (job["state"], job["worker"], job["worker_door"], job["numerator"], job["denominator"]) == (
        "running", "bob", "gearman", 1, 2,
    )  # fmt: skip
    worker = ask("workers", search="bob")["answer"]["items"][0]
    assert (worker["running"], worker["functions"], worker["door"]) == (
        [handle.decode()],
        [function.decode()],
        "gearman",
    )
    assert worker["peer"] == "{}:{}".format(*peer.socket.getsockname())
    peer.send(Kind.WORK_COMPLETE, handle, b"\xff").silence()
    job = ask("job", handle=handle.decode())["answer"]
    assert (job["state"], job["result"], job["attempts"], job["worker"]) == ("done", {"base64": "/w=="}, 1, "bob")
    assert ask("result", handle=handle.decode())["answer"] == {"base64": "/w=="}
    assert ask("payload", handle=handle.decode())["error"]["kind"] == "not-found"


def test_a_worker_postpones_and_buries(ask: Ask, peer: Peer, function: bytes) -> None:
    peer.register(function)
    handle = peer.submit(function, b"", b"", kind=Kind.SUBMIT_JOB_BG)
    peer.grab()
    assert ask("postpone", handle=handle.decode(), seconds=3600, reason="busy") == {"answer": None}
    assert ask("job", handle=handle.decode())["answer"]["state"] == "scheduled"
    peer.send(Kind.WORK_COMPLETE, handle, b"late").silence()  # nobody minds
    assert ask("hasten", handle=handle.decode()) == {"answer": None}
    assert peer.grab().handle == handle
    assert ask("bury", handle=handle.decode(), reason="hopeless") == {"answer": None}
    job = ask("job", handle=handle.decode())["answer"]
    assert (job["state"], job["reason"], job["attempts"]) == ("dead", "hopeless", 2)
    assert ask("retry", handle=handle.decode()) == {"answer": None}
    assert peer.grab().handle == handle
    assert ask("cancel", handle=handle.decode()) == {"answer": None}
    assert ask("job", handle=handle.decode())["answer"]["state"] == "cancelled"


def test_bulk(ask: Ask, peer: Peer, function: bytes) -> None:
    for _ in range(5):
        peer.submit(function, b"", b"", kind=Kind.SUBMIT_JOB_BG)
    wanted = {"function": function.decode()}
    assert ask("jobs", **wanted, state="queued")["answer"]["total"] == 5
    assert ask("bulk", action="cancel", filter={**wanted, "limit": 3})["answer"] == {
        "done": 3, "refused": 0, "more": True,
    }  # fmt: skip
    assert ask("bulk", action="cancel", filter=wanted)["answer"] == {"done": 2, "refused": 0, "more": False}
    states = [view["state"] for view in ask("jobs", **wanted)["answer"]["items"]]
    assert states == ["cancelled"] * 5


def test_tail(peer: Peer, ports: Ports, ask: Ask, function: bytes) -> None:
    with Peer(ports["gearman"]) as listener:
        handle = listener.submit(CONTROL, b"", json.dumps({"do": "tail", "function": function.decode()}).encode())
        until(lambda: ask("overview")["answer"]["running"] == 0, "nobody counts a tail")
        job = peer.submit(function, b"", b"", kind=Kind.SUBMIT_JOB_BG)
        peer.submit(b"another " + function, b"", b"", kind=Kind.SUBMIT_JOB_BG)
        peer.register(function).grab()
        peer.send(Kind.WORK_STATUS, job, b"1", b"2").send(Kind.WORK_COMPLETE, job, b"")
        heard = []
        for _ in range(4):
            name, line = listener.body(Kind.WORK_DATA).split(b"\0", 1)
            assert name == handle
            event = json.loads(line)
            assert (event["handle"], event["function"]) == (job.decode(), function.decode())
            heard.append(event["what"])
        assert heard == ["submitted", "started", "progress", "done"]
    until(lambda: not _shown(peer), "the tail ends with its client")


def _shown(peer: Peer) -> bool:
    return any(columns[0] == CONTROL for columns in peer.listing("status"))


def test_system(ask: Ask, peer: Peer, function: bytes) -> None:
    peer.submit(function, b"", b"", kind=Kind.SUBMIT_JOB_BG)  # the handle is sent after the commit
    system = ask("system")["answer"]
    assert [door["protocol"] for door in system["doors"]] == [
        "gearman",
        "danga",
        "periodic",
        "memodb+tcp",
        "gearmonkey",
    ]
    assert system["doors"][0]["connections"] >= 1
    assert system["store"]["durable"] is True
    assert system["store"]["size"] > 0
    assert system["store"]["commits"] > 0
    assert system["memory"] > 1_000_000
