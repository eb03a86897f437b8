"""What our workers say to a server that looks after its jobs by itself: the document's commands, to the letter."""

from typing import Any

from geartrain.client.redis import worker_flow

SCRIPT = (
    "local item = redis.call('ZRANGEBYSCORE', KEYS[1], 0, ARGV[1], 'LIMIT', 0, 1); if (#item > 0) then redis.call("
    "'ZREM', KEYS[1], item[1]); return { KEYS[1],  item[1] }; end"
)
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


def test_worker() -> None:
    said: list[str] = []
    duties = worker_flow.WorkerFlow(30)
    duties.functions.append("reverse")
    information = {"geartrain_version": "1"}
    say(duties.start(), {"SCRIPT": SHA1.encode(), "INFO": information}, said)
    assert not duties.has_leases
    fields = {b"status": b"idle", b"input": b"abc"}
    task = say(duties.next(1), {"BRPOP": (b"queue:reverse:low", b"7"), "HGETALL": fields}, said)
    assert task == ("reverse", "low", 7, b"abc")
    say(duties.update(task, 1, 2), {}, said)
    assert say(duties.finish(task, "success", "cba"), {}, said) is True
    say(duties.stop(), {}, said)
    assert said[3].startswith(f"EVALSHA {SHA1} 1 queue:reverse:scheduled ")
    assert [line for line in said if not line.startswith("EVALSHA")] == [
        f"SCRIPT LOAD {SCRIPT}",
        "INFO",
        "INCR count:reverse",
        "BRPOP queue:reverse:high queue:reverse:normal queue:reverse:low 1",
        "HGETALL job:reverse:7",
        "PUBLISH channel:reverse start:7",
        "HMSET job:reverse:7 status busy",
        "HMSET job:reverse:7 status:dividend 1 status:divisor 2",
        "HMSET job:reverse:7 status success output cba",
        "EXPIRE job:reverse:7 90000",
        "PUBLISH channel:reverse finish:7",
        "LPUSH lock:reverse:7 OK",
        "EXPIRE lock:reverse:7 10",
        "DECR count:reverse",
    ]


def test_scheduled_job_comes_by_the_documents_script() -> None:
    said: list[str] = []
    duties = worker_flow.WorkerFlow(30)
    duties.functions.append("reverse")
    say(duties.start(), {"SCRIPT": SHA1.encode(), "INFO": {"geartrain_version": "1"}}, said)
    due = [b"queue:reverse:scheduled", b"9"]
    task = say(duties.next(1), {"EVALSHA": due, "HGETALL": {b"status": b"idle"}}, said)
    assert task == ("reverse", "scheduled", 9, b"")
    assert not any(line.startswith("BRPOP") for line in said)
