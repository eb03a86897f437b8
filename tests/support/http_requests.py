"""Requests for what is tested below the HTTP door's connections."""

import asyncio
from typing import Any

from geartrain.doors.door import Limits
from geartrain.doors.http.app import HttpApp
from geartrain.doors.http.connection import HttpConnection
from geartrain.doors.http.door import HttpDoor, Options
from geartrain.doors.http.request import ClientAddress, Request
from geartrain.engine.engine import Engine
from geartrain.rights import Identity
from geartrain.runtime.tick import TickLoop
from geartrain.wire.http import RequestReader


def request(
    method: str = "GET", target: str = "/", *, client: str = "", connection: Any = None, **headers: str
) -> Request:
    """What a client asks, with these headers: `x_forwarded_for` is the header X-Forwarded-For."""
    scheme = headers.pop("scheme", "http")
    lines = [f"{method} {target} HTTP/1.1", *(f"{name.replace('_', '-')}: {text}" for name, text in headers.items())]
    reader = RequestReader(0)
    reader.feed("\r\n".join([*lines, "", ""]).encode())
    head = reader.next_head()
    assert head is not None
    return Request(head, connection, ClientAddress(client, 40000) if client else None, scheme)


def connection(identity: Identity) -> HttpConnection:
    """A connection without a transport, whose peer has this identity."""
    loop = asyncio.new_event_loop()
    try:
        tick_loop = TickLoop(loop, Engine(), lambda: 0.0)
        admin: Any = None  # which no request of such a connection reaches
        door = HttpDoor(tick_loop, Limits(), Options(), admin)
        made = HttpConnection(door, HttpApp(tick_loop, door.limits, door.options, admin))
        made.identity = identity
        return made
    finally:
        loop.close()
