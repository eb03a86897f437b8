"""Peers that speak HTTP or TLS to a port of another protocol.

Doors whose packets begin with fixed bytes refuse them anyway; `hint` tells the person who reads the error why.

Other doors read lines of text. A web page can send a POST with any body to any port of its user's machine. A door
that answered the lines of the request's head with errors would carry out the body. So the first such line ends the
connection. TLS is refused as well: the site of a page chooses the session tickets that a browser sends.

>>> name(b"POST /shutdown HTTP/1.1\\r"), name(b"Host: 127.0.0.1:4730"), name(b"\\x16\\x03\\x01...")
('HTTP', 'HTTP', 'TLS')
>>> name(b"post /")
'HTTP'
>>> name(b"GET key"), name(b"status"), name(b"SET /path HTTP/1.1")
('', '', '')
"""

import re
from typing import Final

# Neither Gearman's administrative commands nor those of Redis have this form: GET has one argument, the other methods
# are no commands.
_REQUEST_LINE: Final = re.compile(
    rb"(?:GET|HEAD|POST|PUT|DELETE|CONNECT|OPTIONS|TRACE|PATCH|PRI) +\S.* HTTP/[0-9.]+[ \r]*", re.DOTALL
)
# Beginnings of lines, in any case, that are of no command: also without the rest of a request's first line.
_BEGINNINGS: Final = (b"host:", b"post ")
_HANDSHAKE: Final = b"\x16\x03"  # the type and the version of the record that begins a TLS connection


def hint(received: bytes) -> str:
    """The last words of an error about the first bytes of a connection; empty unless they are those of TLS."""
    return "; this port does not speak TLS" if received.startswith(_HANDSHAKE) else ""


def name(line: bytes) -> str:
    """Which other protocol this line belongs to; empty if none."""
    if line.startswith(_HANDSHAKE):
        return "TLS"
    return "HTTP" if line[:5].lower() in _BEGINNINGS or _REQUEST_LINE.fullmatch(line) else ""
