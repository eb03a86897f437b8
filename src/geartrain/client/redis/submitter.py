"""How a client submits jobs: on a real Redis with the document's commands, one after the other; at a Geartrain server
with one round trip for each job.

A Geartrain server gives out ids in blocks, publishes by itself that a job was created, and refuses an id that it does
not know. So a client takes ids ahead of its jobs, and sends the hash of a job and its id together.
"""

import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from geartrain.client.redis import client_flow, flow, names
from geartrain.client.redis.client_flow import no_name
from geartrain.client.redis.flow import BrokenError, CommandError, Flow, NotSentError
from geartrain.client.redis.job import Options
from geartrain.errors import UncertainError

_LARGEST_BLOCK: Final = 64  # ids
_MOST_AHEAD: Final = 1000  # ids of all functions that were taken and are not used; the server has a limit too
_KEPT_FOR: Final = 600.0  # seconds; the server deletes ids that are not used within an hour


class Submitter:
    """What a client knows of its server. One for each connection, or `reset` after the connection broke."""

    def __init__(self, is_geartrain: bool | None = None) -> None:
        self._is_geartrain = is_geartrain  # None: not known yet
        self._ids: dict[str, IdBlock] = {}  # by function

    def reset(self) -> None:
        """The next connection may lead to another server."""
        self._is_geartrain = None
        self._ids.clear()

    def submit(
        self,
        function: str,
        payload: Any,
        priority: str,
        options: Options,
        scheduled: float | None,
        named: Callable[[int], None] = no_name,
    ) -> Flow[int]:
        """Put a job into its queue and return its id. `named` is called with the id before a worker can see the job."""
        client_flow.check(function, priority, scheduled)
        if Options.ROLLCALL in options:
            yield from client_flow.roll_call(function)
        if self._is_geartrain is None:
            self._is_geartrain = yield from _is_geartrain()
        if not self._is_geartrain:
            return (yield from client_flow.submit(function, payload, priority, scheduled, named))
        queue = names.queue(function, priority)
        while True:
            number, is_new = yield from self._next_id(function)
            named(number)
            push = ("LPUSH", queue, number) if scheduled is None else ("ZADD", queue, scheduled, number)
            written, pushed = yield from _send(function, number, payload, push)
            if not isinstance(pushed, CommandError):
                return number
            if is_new or not isinstance(written, CommandError):
                raise written if isinstance(written, CommandError) else pushed
            self._ids.pop(function, None)  # the server does not know them any more

    def _next_id(self, function: str) -> Flow[tuple[int, bool]]:
        """An id, and whether it was taken just now. While a block is on its way, others take one id each."""
        block = self._ids.get(function)
        if block is None:
            block = self._ids[function] = IdBlock()
        number = block.pop()
        if number:
            return number, False
        size = block.next_size()
        if size == 1 or sum(len(other) for other in self._ids.values()) + size > _MOST_AHEAD:
            return int((yield flow.repeatable("INCR", names.uid(function)))), True
        block.is_coming = True
        try:
            last = int((yield flow.repeatable("INCRBY", names.uid(function), size)))
        finally:
            block.is_coming = False
        block.add(range(last - size + 2, last + 1))
        return last - size + 1, True


class IdBlock:
    """Ids of one function that were taken ahead. A block is twice as large as the one before."""

    __slots__ = ("_ids", "_size", "_taken_at", "is_coming")

    def __init__(self) -> None:
        self._ids: deque[int] = deque()
        self._size = 0
        self._taken_at = 0.0
        self.is_coming = False  # a block was asked for

    def __len__(self) -> int:
        return len(self._ids)

    def pop(self) -> int:
        """The next id; 0 if there is none."""
        if self._ids and time.monotonic() - self._taken_at > _KEPT_FOR:
            self._ids.clear()
        return self._ids.popleft() if self._ids else 0

    def next_size(self) -> int:
        """How many ids to take now."""
        if self.is_coming:
            return 1
        self._size = min(max(2 * self._size, 1), _LARGEST_BLOCK)
        return self._size

    def add(self, ids: range) -> None:
        self._ids.extend(ids)
        self._taken_at = time.monotonic()


def _is_geartrain() -> Flow[bool]:
    """Whether this is a Geartrain server; a Redis may refuse to say."""
    try:
        return "geartrain_version" in (yield flow.repeatable("INFO"))
    except CommandError:
        return False


def _send(function: str, number: int, payload: Any, push: tuple[Any, ...]) -> Flow[list[Any]]:
    """Write the hash and push the id; the replies to both.

    If the connection breaks before the replies, both are sent again: at this server a repeated push has no effect.
    """
    command = flow.together(("HMSET", names.job(function, number), "status", "idle", "input", payload), push)
    try:
        replies: list[Any] = yield command
        return replies
    except NotSentError:
        raise
    except BrokenError as error:
        broken = error
    try:
        replies = yield command
        if not isinstance(replies[1], CommandError):
            return replies
    except BrokenError as error:
        broken = error
    raise UncertainError(f"job {number} of {function!r} may be queued or not: {broken}", number) from broken
