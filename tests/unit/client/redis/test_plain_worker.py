"""What our workers say to a Geartrain server, which does the rest by itself."""

from typing import Any

import pytest

from geartrain.client.redis import worker_flow

SHA1 = "5231827cd49b540660ef44969b38cc858f157824"


def say(flow: Any, answers: dict[str, Any], said: list[str]) -> Any:
    """Carry out a flow with these answers; what it says is written down."""
    answer = None
    while True:
        try:
            request = flow.send(answer)
        except StopIteration as end:
            return end.value
        for words in request.commands:
            said.append(" ".join(map(str, words)))
            answer = answers.get(words[0])


def started(said: list[str]) -> worker_flow.WorkerFlow:
    flows = worker_flow.WorkerFlow(30)
    flows.functions.append("reverse")
    say(flows.start(), {"SCRIPT": SHA1.encode(), "INFO": {"geartrain_version": "1"}}, said)
    assert not flows.has_leases
    say(flows.tie(), {}, said)
    said.clear()
    return flows


def test_worker() -> None:
    said: list[str] = []
    flows = started(said)
    task = say(flows.next(1), {"BRPOP": [b"queue:reverse:low", b"7", b"abc"]}, said)
    assert task == ("reverse", "low", 7, b"abc")
    say(flows.update(task, 1, 2), {}, said)
    assert say(flows.finish(task, "success", "cba"), {}, said) is True
    say(flows.stop(), {}, said)
    assert said == [
        "BRPOP queue:reverse:high queue:reverse:normal queue:reverse:low 1",
        "HMSET job:reverse:7 status:dividend 1 status:divisor 2",
        "HMSET job:reverse:7 status success output cba",
        "DECR count:reverse",
    ]


@pytest.mark.parametrize(("status", "is_taken"), [(b"busy", True), (b"error", False)])
def test_reply_without_the_input(status: bytes, is_taken: bool) -> None:
    """Of an older server, or because the input is large; the job may be cancelled before it is read."""
    said: list[str] = []
    flows = started(said)
    answers = {"BRPOP": [b"queue:reverse:low", b"7"], "HGETALL": {b"status": status, b"input": b"abc"}}
    task = say(flows.take((), 0), answers, said)
    assert task == (("reverse", "low", 7, b"abc") if is_taken else None)
    assert said[-1] == "HGETALL job:reverse:7"
