"""Hear of jobs that are submitted to Redis, so that they need not wait until the next look.

Clients publish an event before they put a job into its queue, and it may be lost: it is a hint, no more.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import Any, Final

from geartrain.client.credentials import credentials_for
from geartrain.client.redis import connection, names
from geartrain.client.redis.pipeline import Pipeline
from geartrain.errors import ClientError

# From the event until the job is in its queue: a round trip of its client.
_QUEUED_SECONDS: Final = 0.005


class Arrivals:
    """A subscription to the functions that are joined."""

    def __init__(self, url: str, password: str, arrived: Callable[[str], None]) -> None:
        self._address = connection.parse(url)
        self._credentials = credentials_for(self._address, None, password)
        self._arrived = arrived
        self._pipeline: Pipeline | None = None
        self._subscribed: set[str] = set()

    async def subscribe(self, functions: Iterable[str]) -> None:
        """Subscribe to these functions as well; to all again if the connection broke."""
        if self._pipeline is None:
            self._subscribed.clear()
            pipeline = Pipeline(self._broken, pushed=self._pushed)
            with contextlib.suppress(OSError, ClientError):  # tried again with the next look
                await pipeline.open(self._address, self._credentials.tls, self._credentials.token)
                self._pipeline = pipeline
        for function in functions:
            if self._pipeline is not None and function not in self._subscribed:
                self._subscribed.add(function)
                self._pipeline.send_unanswered("SUBSCRIBE", names.channel(function))

    def close(self) -> None:
        """Close the connection."""
        if self._pipeline is not None:
            self._pipeline.abandon()

    def _broken(self, error: Exception) -> None:
        self._pipeline = None

    def _pushed(self, message: list[Any]) -> None:
        kind, channel, text = message
        if kind == b"message" and text.startswith(b"create:"):
            function = channel.decode("utf-8", "surrogateescape").removeprefix("channel:")
            asyncio.get_running_loop().call_later(_QUEUED_SECONDS, self._arrived, function)
