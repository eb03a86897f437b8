"""SP over WebSocket (RFC 6455), the client's side: `websocket.py` from the other side.

A client asks by HTTP, and masks every frame that it sends; a server masks none.
"""

import base64
import os
from typing import Final

from geartrain.errors import WireError
from geartrain.wire import websocket
from geartrain.wire.sp import MAX_MESSAGE

_MASK_SIZE: Final = 4
_FIN: Final = 0x80
_CONTINUATION: Final = 0x0
_BINARY: Final = 0x2


class ClientPipe(websocket.WebSocketPipe):
    """A pipe to a REP server over WebSocket. Its greeting is the HTTP request."""

    __slots__ = ("_key",)

    def __init__(self, host: str, port: int, path: str, max_message: int = MAX_MESSAGE) -> None:
        super().__init__(path, max_message)
        self._frames = websocket.FrameReader(masked=False)
        self._key = base64.b64encode(os.urandom(16)).decode()
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self.greeting = (
            f"GET {path or '/'} HTTP/1.1\r\n"
            f"Host: {place}\r\n"
            "Upgrade: websocket\r\n"
            "Connection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {self._key}\r\n"
            f"Sec-WebSocket-Protocol: {websocket.SUBPROTOCOL}\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n"
        ).encode()

    def framed(self, head: bytes, payload: bytes) -> list[bytes]:
        """A message of these two, masked, in as many frames as it needs."""
        message = head + payload
        frames = []
        kind = _BINARY
        for at in range(0, len(message), websocket.MAX_FRAME):
            part = message[at : at + websocket.MAX_FRAME]
            last = _FIN if at + len(part) == len(message) else 0
            frames.append(_masked(kind | last, part))
            kind = _CONTINUATION
        return frames

    def _upgrade(self, head: bytes) -> None:
        """The server's answer to the HTTP request."""
        first, *lines = head.decode("latin-1").split("\r\n")
        if not first.startswith("HTTP/1.1 101"):
            raise WireError("HTTP", f"the server did not accept the WebSocket: {first!r}")
        fields = {}
        for line in lines:
            name, _, value = line.partition(":")
            fields[name.strip().lower()] = value.strip()
        if fields.get("sec-websocket-accept") != websocket.token(self._key):
            raise WireError("HTTP", "the server's answer does not match the key of the request")
        if fields.get("sec-websocket-protocol") != websocket.SUBPROTOCOL:
            raise WireError("HTTP", f"the server does not speak {websocket.SUBPROTOCOL}")
        self.greeted = True

    def _control_frame(self, kind: int, payload: bytes) -> bytes:
        return _masked(_FIN | kind, payload)


def _masked(first: int, payload: bytes) -> bytes:
    """One frame."""
    mask = os.urandom(_MASK_SIZE)
    head = websocket.frame_head(first, len(payload))
    return b"%c%c%b%b%b" % (head[0], head[1] | _FIN, head[2:], mask, websocket.exclusive_or(payload, mask))
