"""Server-sent events: what is to be said gathers in a feed that never grows, and leaves as fast as the peer reads."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.responses import Response

from geartrain.web.problems import Refusal

if TYPE_CHECKING:
    from geartrain.web.house import House

FRAMES_KEPT: Final = 1000
BYTES_KEPT: Final = 1024 * 1024
# A comment now and then keeps proxies from closing a stream on which nothing happens.
HEARTBEAT_SECONDS: Final = 15.0
_OPENING: Final = b"retry: 2000\n\n"
_HEARTBEAT: Final = b": still here\n\n"

Receive = Callable[[], Awaitable[Any]]


def frame(event: str, data: Any) -> bytes:
    """One event; JSON has no line ends in it.

    >>> frame("progress", {"numerator": 1})
    b'event: progress\\ndata: {"numerator":1}\\n\\n'
    """
    return b"event: %b\ndata: %b\n\n" % (event.encode(), msgspec.json.encode(data))


class Feed:
    """What one listener has yet to hear. A listener that is too slow misses events, and hears that it did."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._frames: deque[bytes] = deque()
        self._size = 0  # bytes in the frames
        self._missed = 0
        self._news: asyncio.Future[None] | None = None  # somebody waits for the next frame
        self.ended = False

    def say(self, frame: bytes, last: bool = False) -> None:
        """One more frame; the last one is never left out."""
        if self.ended:
            return
        full = len(self._frames) >= FRAMES_KEPT or self._size + len(frame) > BYTES_KEPT
        if full and self._frames and not last:  # a single large one is as much as a peer may send at once anyway
            self._missed += 1
            return
        self._frames.append(frame)
        self._size += len(frame)
        self.ended = last
        self._announce()

    def take(self) -> bytes:
        """All that has gathered; nothing if there is nothing."""
        if self._missed:
            self._frames.append(b": %d events were left out, since this listener is too slow\n\n" % self._missed)
            self._missed = 0
        taken = b"".join(self._frames)
        self._frames.clear()
        self._size = 0
        return taken

    def news(self) -> "asyncio.Future[None]":
        """Done when there is something to take."""
        if self._news is None or self._news.done():
            self._news = self._loop.create_future()
            if self._frames or self.ended:
                self._announce()
        return self._news

    def _announce(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)


class EventStream(Response):
    """An answer that goes on until its feed ends, its listener leaves, or the door closes."""

    media_type = "text/event-stream"

    def __init__(self, house: "House", feed: Feed, left: Callable[[], None]) -> None:
        super().__init__()
        del self.headers["content-length"]
        self.headers["X-Accel-Buffering"] = "no"
        self._house = house
        self._feed = feed
        self._left = left  # called once, when nobody listens any more

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self._house.listeners += 1
        gone = asyncio.ensure_future(hung_up(receive))
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            await send(_part(_OPENING))
            await self._pass_on(send, gone)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._house.listeners -= 1
            gone.cancel()
            self._left()

    async def _pass_on(self, send: Any, gone: "asyncio.Future[None]") -> None:
        feed, ending = self._feed, self._house.ending
        while not gone.done():
            taken = feed.take()
            if taken:
                await send(_part(taken))
            elif feed.ended or ending.done():
                return
            else:
                news = feed.news()
                await asyncio.wait({gone, ending, news}, timeout=HEARTBEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                if not news.done() and not gone.done() and not ending.done():
                    await send(_part(_HEARTBEAT))


async def hung_up(receive: Receive) -> None:
    """Return when the peer has gone. Its request must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


def require_room(house: "House") -> None:
    """Refuse one listener too many."""
    if house.listeners >= house.options.listeners:
        raise Refusal("unavailable", f"{house.listeners} listen already, which is the limit (http_listeners)")


def _part(data: bytes) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": True}
