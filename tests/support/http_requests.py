"""Requests for what is tested below the HTTP door's connections."""

from typing import Any

from geartrain.doors.http.request import ClientAddress, Request
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
