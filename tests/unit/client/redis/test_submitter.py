"""What our clients say when they submit: to a real Redis the document's commands, to a Geartrain server less."""

from typing import Any

import pytest

from geartrain.client.redis import submitter
from geartrain.client.redis.flow import BrokenError, CommandError, NotSentError, RedisCommand
from geartrain.client.redis.job import Options
from geartrain.client.redis.submitter import Submitter
from geartrain.errors import UncertainError


class Server:
    """Answers the commands of a flow, and writes down what was sent together."""

    def __init__(self, is_geartrain: bool = True) -> None:
        self.information: Any = "geartrain_version:1" if is_geartrain else "redis_version:7"
        self.last = 0  # id
        self.forgotten = 0  # ids up to this one are unknown
        self.sent: list[str] = []
        self.breaks: list[Exception] = []  # raised instead of the replies to the next pushes

    def run(self, flow: Any) -> Any:
        answer: Any = None
        try:
            while True:
                request = flow.throw(answer) if isinstance(answer, Exception) else flow.send(answer)
                answer = self._answer(request)
        except StopIteration as end:
            return end.value

    def submit(self, client: Submitter, priority: str = "normal", scheduled: float | None = None) -> int:
        number: int = self.run(client.submit("f", "x", priority, Options.NONE, scheduled))
        return number

    def _answer(self, request: RedisCommand) -> Any:
        self.sent.append(" + ".join(" ".join(map(str, words)) for words in request.commands))
        if len(request.commands) > 1 and self.breaks:
            return self.breaks.pop(0)
        replies = [self._reply(*words) for words in request.commands]
        return replies[0] if len(replies) == 1 else replies

    def _reply(self, name: str, *words: Any) -> Any:
        if name == "INFO":
            return self.information
        if name in ("INCR", "INCRBY"):
            self.last += words[1] if name == "INCRBY" else 1
            return self.last
        number = int(str(words[0 if name == "HMSET" else -1]).rpartition(":")[2])
        return CommandError("ERR there is no such job") if number <= self.forgotten else 1


def test_real_redis() -> None:
    server, client = Server(is_geartrain=False), Submitter()
    assert [server.submit(client), server.submit(client)] == [1, 2]
    hash_and_event = ["HMSET job:f:1 status idle input x", "PUBLISH channel:f create:1"]
    assert server.sent[:5] == ["INFO", "INCR uid:f", *hash_and_event, "LPUSH queue:f:normal 1"]
    assert server.sent[5] == "INCR uid:f"


def test_server_that_refuses_to_say_what_it_is() -> None:
    server, client = Server(), Submitter()
    server.information = CommandError("NOPERM")
    assert server.submit(client) == 1
    assert "PUBLISH channel:f create:1" in server.sent


def test_geartrain_server() -> None:
    server, client = Server(), Submitter()
    assert [server.submit(client) for _ in range(4)] == [1, 2, 3, 4]
    assert server.sent == [
        "INFO",
        "INCR uid:f",
        "HMSET job:f:1 status idle input x + LPUSH queue:f:normal 1",
        "INCRBY uid:f 2",
        "HMSET job:f:2 status idle input x + LPUSH queue:f:normal 2",
        "HMSET job:f:3 status idle input x + LPUSH queue:f:normal 3",
        "INCRBY uid:f 4",
        "HMSET job:f:4 status idle input x + LPUSH queue:f:normal 4",
    ]
    assert server.submit(client, "scheduled", 9.5) == 5
    assert server.sent[-1] == "HMSET job:f:5 status idle input x + ZADD queue:f:scheduled 9.5 5"
    assert server.submit(client) == 6  # the rest of the block
    client.reset()
    server.submit(client)
    assert server.sent[-3:-1] == ["INFO", "INCR uid:f"]


def test_large_numbers_of_jobs_take_few_round_trips() -> None:
    server, client = Server(), Submitter()
    assert [server.submit(client) for _ in range(1000)] == list(range(1, 1001))
    assert len(server.sent) < 1000 + 30


def test_ids_that_the_server_has_forgotten() -> None:
    server, client = Server(), Submitter(is_geartrain=True)
    numbers = [server.submit(client) for _ in range(4)]  # three ids are left
    server.forgotten = server.last
    numbers.append(server.submit(client))
    assert numbers == [1, 2, 3, 4, 8]


def test_refused_submission_is_not_repeated() -> None:
    server, client = Server(), Submitter(is_geartrain=True)
    server.forgotten = 10
    with pytest.raises(CommandError, match="no such job"):
        server.submit(client)
    assert len(server.sent) == 2


def test_old_ids_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    server, client = Server(), Submitter(is_geartrain=True)
    assert [server.submit(client) for _ in range(4)] == [1, 2, 3, 4]
    monkeypatch.setattr(submitter, "_KEPT_FOR", -1.0)
    assert server.submit(client) == 8


def test_many_functions_take_few_ids_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submitter, "_MOST_AHEAD", 3)
    server, client = Server(), Submitter(is_geartrain=True)
    for _ in range(4):
        server.submit(client)
    assert "INCRBY uid:f 4" not in server.sent


def test_one_block_at_a_time_is_on_its_way() -> None:
    server, client = Server(), Submitter(is_geartrain=True)
    server.submit(client)
    first, second = (client.submit("f", "x", "normal", Options.NONE, None) for _ in range(2))
    assert next(first).commands == (("INCRBY", "uid:f", 2),)
    assert next(second).commands == (("INCR", "uid:f"),)


@pytest.mark.parametrize("more", [[], [BrokenError("again")]])
def test_broken_connection(more: list[Exception]) -> None:
    """A push is repeated once: at a Geartrain server it has no effect the second time."""
    server, client = Server(), Submitter(is_geartrain=True)
    server.breaks = [BrokenError("lost"), *more]
    if not more:
        assert server.submit(client) == 1
    else:
        with pytest.raises(UncertainError, match="job 1 of 'f' may be queued or not: again") as caught:
            server.submit(client)
        assert caught.value.id == 1
    assert len(server.sent) == 3


def test_repeated_push_that_is_refused() -> None:
    """The job may be over, or its server was another one."""
    server, client = Server(), Submitter(is_geartrain=True)
    server.breaks = [BrokenError("lost")]
    server.forgotten = 1
    with pytest.raises(UncertainError):
        server.submit(client)


def test_connection_that_ended_before() -> None:
    server, client = Server(), Submitter(is_geartrain=True)
    server.breaks = [NotSentError("closed")]
    with pytest.raises(NotSentError):
        server.submit(client)
