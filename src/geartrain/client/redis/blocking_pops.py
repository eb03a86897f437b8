"""Connections that do nothing but wait for a job, one per queue, for workers without asyncio.

BRPOPLPUSH knows one queue only. So each queue has its bell; when one rings, the other waits are called off with CLIENT
UNBLOCK, and whatever has come by then is told.
"""

import selectors
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

from geartrain.client.redis import connection, flow, replies
from geartrain.wire import resp

LetGo = Callable[[Sequence[int]], None]


class PendingPop:
    """One connection, without redis-py, whose connections cannot be waited for together."""

    def __init__(self, url: str) -> None:
        settings = connection.settings(url)
        place = (settings["host"], settings["port"])
        self._socket = socket.create_connection(place, connection.CONNECT_SECONDS)
        self._socket.settimeout(connection.ANSWER_SECONDS)
        self._replies = replies.Replies()
        try:
            self._ask("SELECT", str(settings["db"]))
            self.id: int = self._ask("CLIENT", "ID")  # by which its wait is called off
        except BaseException:
            self.close()
            raise

    def fileno(self) -> int:
        """For a selector."""
        return self._socket.fileno()

    def send(self, *words: str) -> None:
        """Say something, and do not wait for the answer."""
        self._socket.sendall(resp.request(*(word.encode("utf-8", "surrogateescape") for word in words)))

    def answer(self) -> Any:
        """Wait for the answer."""
        while (answer := self._replies.next()) is replies.MORE:
            data = self._socket.recv(65536)
            if not data:
                raise ConnectionError("the server closed the connection")
            self._replies.feed(data)
        if isinstance(answer, replies.Fault):
            raise flow.RefusedError(answer.text)
        return answer

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def _ask(self, *words: str) -> Any:
        self.send(*words)
        return self.answer()


class BlockingPops:
    """All bells of a worker; `let_go` calls off the waits of connections with these ids."""

    def __init__(self, url: str, let_go: LetGo) -> None:
        self._url = url
        self._let_go = let_go
        self._pops: list[PendingPop] = []

    def wait(self, moves: flow.Moves) -> list[bytes | None]:
        """What was moved from each list; at least one, or the time is over."""
        try:
            while len(self._pops) < len(moves.lists):
                self._pops.append(PendingPop(self._url))
            return self._wait(self._pops[: len(moves.lists)], moves)
        except BaseException:
            # What has been moved meanwhile is known to Redis, and comes back after a lease.
            self.close()
            raise

    def close(self) -> None:
        """Hang up."""
        for bell in self._pops:
            bell.close()
        self._pops.clear()

    def _wait(self, pops: Sequence[PendingPop], moves: flow.Moves) -> list[bytes | None]:
        for bell, words in zip(pops, moves.commands(), strict=True):
            bell.send(*words)
        answers: dict[PendingPop, bytes | None] = {}
        seconds = moves.seconds
        deadline = time.monotonic() + moves.seconds + connection.ANSWER_SECONDS
        with selectors.DefaultSelector() as selector:
            for bell in pops:
                selector.register(bell, selectors.EVENT_READ, bell)
            while len(answers) < len(pops):
                for ready, _ in selector.select(seconds):
                    selector.unregister(ready.fileobj)
                    answers[ready.data] = ready.data.answer()
                seconds = flow.CALL_OFF_AGAIN
                self._let_go([bell.id for bell in pops if bell not in answers])
                if time.monotonic() > deadline:
                    raise ConnectionError("the server does not answer")
        return [answers[bell] for bell in pops]
