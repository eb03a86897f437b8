"""Names with control characters, for places that cannot carry them: lines of lists, environment variables, C strings.

Every control character, and the percent sign itself, becomes a percent sign and two hexadecimal digits, as in URLs.
Names without control characters stay as they are, so nearly all names look the same everywhere.

>>> escape(b"report"), escape(b"100%"), escape(b"100%\\0a\\n")
(b'report', b'100%', b'100%25%00a%0A')
>>> unescape(b"100%25%00a%0A")
b'100%\\x00a\\n'
"""

import re
import urllib.parse
from typing import Final

CONTROL_CHARACTERS: Final = bytes((*range(0x20), 0x7F))
_ESCAPED: Final = re.compile(rb"[%\x00-\x1f\x7f]")


def has_control_characters(name: bytes) -> bool:
    """Whether a name has a NUL or another control character of ASCII."""
    return len(name.translate(None, CONTROL_CHARACTERS)) != len(name)


def escape(name: bytes) -> bytes:
    """The name without control characters."""
    return _ESCAPED.sub(_percent, name) if has_control_characters(name) else name


def unescape(name: bytes) -> bytes:
    """The name of which this is the escaped form."""
    return urllib.parse.unquote_to_bytes(name)


def _percent(found: re.Match[bytes]) -> bytes:
    return b"%%%02X" % found[0][0]
