"""GearMonkey's document, command by command, as programs with redis-py or ioredis send it: one client, one worker.

With a window of one, every command waits for the reply to the one before it. Otherwise each step of so many jobs is one
pipeline: the ids, the hashes and pushes, the pops, what follows a pop, the results.
"""

import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

from bench import crowd
from geartrain.client.redis import scripts
from geartrain.wire import resp, resp_client

FUNCTION: Final = "plain"
_QUEUES: Final = [f"queue:{FUNCTION}:{name}" for name in ("high", "normal", "low")]
_CHANNEL: Final = f"channel:{FUNCTION}"

Command = tuple[Any, ...]


class Peer:
    """A connection."""

    def __init__(self, port: int) -> None:
        self._socket = crowd.connect(port)
        self._replies = resp_client.ReplyReader()

    def ask(self, commands: Sequence[Command]) -> list[Any]:
        """Send these at once; the replies to all."""
        self._socket.sendall(b"".join([resp.request(*map(_word, command)) for command in commands]))
        replies: list[Any] = []
        while len(replies) < len(commands):
            reply = self._replies.next()
            if reply is resp_client.MORE:
                self._replies.feed(crowd.receive(self._socket))
            elif isinstance(reply, resp.ErrorReply):
                raise RuntimeError(f"the server refused: {reply}")
            else:
                replies.append(reply)
        return replies

    def close(self) -> None:
        self._socket.close()


class PlainCommands:
    """One client and one worker in turn, with `window` jobs at a time."""

    def __init__(self, port: int, window: int) -> None:
        self.waits: list[float] = []
        self._window = window
        self._client, self._worker = Peer(port), Peer(port)
        self._worker.ask([("SCRIPT", "LOAD", scripts.DUE.text)])

    def run(self, jobs: int) -> float:
        """Do at least so many; jobs per second."""
        self.waits.clear()
        done, began = 0, time.perf_counter()
        while done < jobs:
            asked = time.perf_counter()
            self._do(self._window)
            self.waits.append(time.perf_counter() - asked)
            done += self._window
        return done / (time.perf_counter() - began)

    def close(self) -> None:
        self._client.close()
        self._worker.close()

    def _do(self, count: int) -> None:
        ids = self._ask(self._client, [("INCR", f"uid:{FUNCTION}")] * count)
        self._ask(self._client, _all(map(_submission, ids)))
        pops = [("EVALSHA", scripts.DUE.sha1, 1, f"queue:{FUNCTION}:scheduled", int(time.time())), _pop()]
        popped = [int(reply[1]) for reply in self._ask(self._worker, pops * count)[1::2]]
        self._ask(self._worker, _all(map(_beginning, popped)))
        if self._window == 1:
            self._worker.ask(_ending(popped[0]))  # a transaction is sent at once, always
        else:
            self._worker.ask(_all(map(_ending, popped)))
        for fields in self._ask(self._client, [("HGETALL", f"job:{FUNCTION}:{id}") for id in ids]):
            if crowd.PAYLOAD not in fields:
                raise RuntimeError(f"a job has not been done right: {fields}")

    def _ask(self, peer: Peer, commands: Sequence[Command]) -> list[Any]:
        if self._window > 1:
            return peer.ask(commands)
        return [reply for command in commands for reply in peer.ask([command])]


def _submission(id: int) -> list[Command]:
    return [
        ("HMSET", f"job:{FUNCTION}:{id}", "status", "idle", "input", crowd.PAYLOAD),
        ("PUBLISH", _CHANNEL, f"create:{id}"),
        ("LPUSH", _QUEUES[1], id),
    ]


def _pop() -> Command:
    return ("BRPOP", *_QUEUES, 1)


def _beginning(id: int) -> list[Command]:
    return [
        ("HGETALL", f"job:{FUNCTION}:{id}"),
        ("PUBLISH", _CHANNEL, f"start:{id}"),
        ("HMSET", f"job:{FUNCTION}:{id}", "status", "busy"),
    ]


def _ending(id: int) -> list[Command]:
    return [
        ("MULTI",),
        ("HMSET", f"job:{FUNCTION}:{id}", "status", "success", "output", crowd.PAYLOAD),
        ("EXPIRE", f"job:{FUNCTION}:{id}", 90000),
        ("PUBLISH", _CHANNEL, f"finish:{id}"),
        ("LPUSH", f"lock:{FUNCTION}:{id}", "OK"),
        ("EXPIRE", f"lock:{FUNCTION}:{id}", 10),
        ("EXEC",),
    ]


def _all(lists: Iterable[list[Command]]) -> list[Command]:
    return [command for commands in lists for command in commands]


def _word(argument: Any) -> bytes:
    return argument if isinstance(argument, bytes) else str(argument).encode()
