"""Addresses: the URLs on which servers listen and to which clients connect, for every protocol.

>>> parse("gearman://127.0.0.1:4730")
Address(scheme='gearman', host='127.0.0.1', port=4730, path='')
>>> str(parse("gearman://[::1]"))
'gearman://[::1]:4730'
"""

import urllib.parse
from typing import NamedTuple

from geartrain.errors import AddressError

DEFAULT_PORTS = {
    "gearman": 4730,
    "danga": 7003,
    "periodic": 5000,
    "memodb+tcp": 12703,
    "memodb+ws": 12704,
    "gearmonkey": 6379,
    "http": 4780,
}
PATH_SCHEMES = frozenset({"periodic+unix", "memodb+ipc"})
SCHEMES = (*DEFAULT_PORTS, *sorted(PATH_SCHEMES))


class Address(NamedTuple):
    """A parsed URL: host and port, or the path of a socket file."""

    scheme: str
    host: str
    port: int
    path: str

    def __str__(self) -> str:
        if self.scheme in PATH_SCHEMES:
            return f"{self.scheme}://{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"


def parse(url: str) -> Address:
    """Parse a URL; an AddressError says what is wrong with it."""
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise AddressError(f"invalid URL {url!r}: {error}") from None
    if parts.scheme not in SCHEMES:
        raise AddressError(f"unsupported scheme in {url!r}; supported: {', '.join(SCHEMES)}")
    if parts.query or parts.fragment or parts.username is not None:
        raise AddressError(f"{url!r} must have only a scheme, a host, a port and a path")
    if parts.scheme in PATH_SCHEMES:
        if parts.netloc or not parts.path.startswith("/"):
            raise AddressError(f"{url!r} needs an absolute path, as in {parts.scheme}:///run/geartrain.sock")
        return Address(parts.scheme, "", 0, parts.path)
    if not parts.hostname:
        raise AddressError(f"{url!r} has no host; use {parts.scheme}://127.0.0.1:{DEFAULT_PORTS[parts.scheme]}")
    if parts.path not in ("", "/") and parts.scheme not in ("memodb+ws", "gearmonkey"):
        raise AddressError(f"{url!r}: {parts.scheme} URLs have no path")
    path = parts.path if parts.path != "/" else ""
    return Address(parts.scheme, parts.hostname, DEFAULT_PORTS[parts.scheme] if port is None else port, path)
