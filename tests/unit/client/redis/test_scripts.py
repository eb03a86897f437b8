"""Scripts are run by their hashes, also on a server that has forgotten them."""

import pytest

from geartrain.client.redis import flow, scripts
from geartrain.client.redis.flow import NoScriptError, Request


class Redis:
    """Answers commands, and is started anew a few times just after it has loaded a script."""

    def __init__(self, restarts: int) -> None:
        self.restarts = restarts
        self.known: set[str] = set()

    def answer(self, request: Request) -> object:
        assert isinstance(request, flow.RedisCommand)
        assert request.repeatable
        ((name, *arguments),) = request.commands
        if name == "SCRIPT":
            if self.restarts:
                self.restarts -= 1
            else:
                self.known.add(scripts.FINISH.sha1)
            return scripts.FINISH.sha1
        assert (name, arguments[0]) == ("EVALSHA", scripts.FINISH.sha1)
        if arguments[0] not in self.known:
            raise NoScriptError
        return 1


def evaluate(redis: Redis) -> object:
    act = flow.evaluate(scripts.FINISH, ["key"], ["argument"])
    request = next(act)
    while True:
        try:
            answer = redis.answer(request)
        except NoScriptError as error:
            request = act.throw(error)
            continue
        try:
            request = act.send(answer)
        except StopIteration as end:
            return end.value


@pytest.mark.parametrize("restarts", [0, 1, 4])
def test_a_script_is_loaded_until_it_is_known(restarts: int) -> None:
    assert evaluate(Redis(restarts)) == 1


def test_a_server_that_never_learns_it_is_an_error() -> None:
    with pytest.raises(NoScriptError):
        evaluate(Redis(1000))
