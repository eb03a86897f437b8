"""Web access: which requests of web pages a door accepts. The HTTP door and MemoDB's WebSockets share these rules.

Every page that is open in a browser on this machine can send requests to `127.0.0.1`. Two headers, which a browser
writes itself and a page cannot change, tell such requests from others:

- `Host` is the name that the browser connected to. A foreign name that resolves to an address of this machine (DNS
  rebinding) is not a name of this server.
- `Origin` is the site of the page. Programs other than browsers do not send it.

>>> access = WebAccess(hosts=("jobs.example",), origins=("https://app.example",))
>>> access.host_error("localhost:4780", everywhere=False), access.origin_error("https://app.example", "localhost")
('', '')
>>> access.host_error("evil.example", everywhere=False)
"Host 'evil.example' is not a name of this server; add it to the setting http_hosts"
"""

import ipaddress
import os
import re
from collections.abc import Iterable
from typing import Final

from geartrain.errors import WireError

_LOCAL_NAMES: Final = frozenset({"localhost"})
# RFC 3986, section 3.2, without user names, escapes and zones, which a browser never sends in these headers.
_AUTHORITY: Final = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::([0-9]{0,5}))?", re.ASCII | re.IGNORECASE)
_ORIGIN: Final = re.compile(r"([a-z][a-z0-9+.-]*)://(.+)", re.ASCII | re.IGNORECASE)
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_LONGEST_QUOTE: Final = 100  # characters of a header that an error quotes


def is_loopback(host: str) -> bool:
    """Whether a host is an address that only this machine can reach, or `localhost`."""
    if host.lower() in _LOCAL_NAMES:
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def host_of(authority: str) -> str:
    """The host of a Host header, without its port; empty if the header is malformed.

    >>> host_of("localhost:4780"), host_of("[::1]:4780"), host_of("127.0.0.1")
    ('localhost', '::1', '127.0.0.1')
    >>> host_of("[::1].evil.example"), host_of("127.0.0.1:80.evil.example")
    ('', '')
    """
    return _split(authority)[0]


def is_own_name(authority: str) -> bool:
    """Whether a Host header has an IP address or this machine's own name: no foreign name can lead a browser there.

    >>> is_own_name("192.0.2.7:8080"), is_own_name("[2001:db8::1]"), is_own_name("evil.example")
    (True, True, False)
    """
    host = host_of(authority)
    nodename = os.uname().nodename.lower()
    if host and host in (nodename, nodename.partition(".")[0]):
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_origin(text: str) -> bool:
    """Whether this is an origin as browsers write it: a scheme, a host and perhaps a port."""
    match = _ORIGIN.fullmatch(text)
    return match is not None and bool(host_of(match[2]))


class WebAccess:
    """The names of this server, and the other sites whose pages may use it."""

    def __init__(self, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        self._hosts = frozenset(_canonical(host) for host in hosts)
        self._origins = frozenset(origin.lower() for origin in origins)

    def host_error(self, authority: str, everywhere: bool) -> str:
        """Why a Host header is refused; empty if it is not.

        `everywhere`: other machines can reach the door, by names that we do not know unless the settings list them.
        """
        if everywhere and not self._hosts:
            return ""
        host = host_of(authority)
        if host and (host in self._hosts or is_loopback(host)):
            return ""
        return f"Host {_quote(host or authority)} is not a name of this server; add it to the setting http_hosts"

    def origin_error(self, origin: str, authority: str) -> str:
        """Why a page of this origin may not use the server at this Host; empty if it may."""
        if origin.lower() in self._origins or _is_own(origin, authority):
            return ""
        return f"Origin {_quote(origin)} is another site"

    def admit(self, everywhere: bool, authority: str, origin: str | None) -> None:
        """Check a request for a WebSocket; a WireError if it is refused.

        A page can read what a WebSocket receives, whatever its origin. So the page's Host has to be a name that we
        know, even where other machines can reach the door, unless its origin is one of the settings.
        """
        listed = origin is None or origin.lower() in self._origins
        error = self.host_error(authority, everywhere and listed)
        if error:
            raise WireError("MISDIRECTED", error)
        if origin is not None and self.origin_error(origin, authority):
            raise WireError("FORBIDDEN", f"Origin {_quote(origin)} is another site; memodb_origins can allow it")


def _split(authority: str) -> tuple[str, int | None]:
    """The host and the port; an empty host if this is not an authority."""
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        return "", None
    address, name, digits = match.groups()
    port = int(digits) if digits else None
    if port is not None and port > 0xFFFF:
        return "", None
    if name is not None:
        return name.lower(), port
    try:
        return ipaddress.IPv6Address(address).compressed, port
    except ValueError:
        return "", None


def _is_own(origin: str, authority: str) -> bool:
    """Whether an origin is this server's own. Schemes may differ: behind a proxy that terminates TLS they do."""
    match = _ORIGIN.fullmatch(origin)
    if match is None:
        return False
    default = _DEFAULT_PORTS.get(match[1].lower(), 0)
    host, port = _split(match[2])
    own_host, own_port = _split(authority)
    return bool(host) and host == own_host and (port or default) == (own_port or default)


def _canonical(host: str) -> str:
    """A host of the settings as `host_of` returns it; IPv6 addresses may be in brackets or not."""
    return host_of(host) or host_of(f"[{host}]") or host.lower()


def _quote(text: str) -> str:
    return repr(text[:_LONGEST_QUOTE])
