"""The scalability protocols' wire as a REQ socket speaks it: `sp.py` from the other side.

A pipe is dialled: this side sends its greeting first, and every message that arrives is a reply. Over WebSocket
(`websocket_client.py`) an HTTP request takes the greeting's place.

>>> pipe = StreamPipe(sp.TCP)
>>> pipe.greeting.hex()
'0053500000300000'
>>> pipe.feed(sp.greeting(sp.REP) + bytes.fromhex("0000000000000009 87fc1697") + b"hello")
>>> pipe.next(), pipe.data[pipe.start:pipe.end]
(True, b'\\x87\\xfc\\x16\\x97hello')
"""

from typing import Final

from geartrain.errors import WireError
from geartrain.wire import sp

_LAST_WORD: Final = 0x80000000


class StreamPipe(sp.StreamPipe):
    """A pipe over TCP or a socket file to a REP server."""

    __slots__ = ()

    def __init__(self, prefix: bytes, max_message: int = sp.MAX_MESSAGE) -> None:
        super().__init__(prefix, max_message)
        self.greeting = sp.greeting(sp.REQ)

    def _greet(self, received: bytes) -> None:
        if received != sp.greeting(sp.REP):
            raise WireError("PROTOCOL", f"a broker begins with the SP greeting of REP (0x31), not with {received!r}")
        self.greeted = True


def request_id(number: int) -> bytes:
    """A request's own word: its highest bit ends the backtrace."""
    return (number & (_LAST_WORD - 1) | _LAST_WORD).to_bytes(4, "big")
