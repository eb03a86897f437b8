"""Addresses: the URLs on which servers listen and to which clients connect, for every protocol.

>>> address = parse("gearman://127.0.0.1")
>>> address.scheme, address.host, address.port
('gearman', '127.0.0.1', 4730)
>>> str(parse("gearmans://[::1]"))
'gearmans://[::1]:4730'
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
# Between the servers of a cluster; clients do not speak it.
PEER, PEER_WITH_TLS, PEER_PORT = "peer", "peers", 4740
PATH_SCHEMES = frozenset({"periodic+unix", "memodb+ipc"})
# The schemes of encrypted connections, by the scheme of the same protocol without TLS. They share a default port.
TLS_SCHEMES = {
    "gearman": "gearmans",
    "danga": "dangas",
    "periodic": "periodics",
    "memodb+tcp": "memodb+tls",
    "memodb+ws": "memodb+wss",
    "gearmonkey": "gearmonkeys",
    "http": "https",
}
_WITH_TLS = {**TLS_SCHEMES, PEER: PEER_WITH_TLS}
_WITHOUT_TLS = {secure: plain for plain, secure in _WITH_TLS.items()}
SCHEMES = (*DEFAULT_PORTS, *sorted(PATH_SCHEMES), PEER, *_WITHOUT_TLS)

CLIENT_CERTIFICATE = ("required", "optional", "none")  # what a listening address may ask of its peers


class TlsParameters(NamedTuple):
    """What the URL of a listening address says about its TLS; what is empty is as the settings say."""

    certificate: str = ""  # files, all PEM
    key: str = ""
    ca: str = ""
    crl: str = ""
    client_certificate: str = ""  # one of CLIENT_CERTIFICATE


_NO_TLS_PARAMETERS = TlsParameters()
_PARAMETERS = ("may", *TlsParameters._fields)


class Address(NamedTuple):
    """A parsed URL: host and port, or the path of a socket file."""

    scheme: str  # without TLS: `gearman` for gearmans://, so that it tells the protocol and its transport
    host: str
    port: int
    path: str
    tls: bool = False
    may: str | None = None  # of a listening address: the rights of peers that prove no identity; None: the default
    tls_parameters: TlsParameters = _NO_TLS_PARAMETERS  # of a listening address with TLS

    @property
    def url_scheme(self) -> str:
        """The scheme as it is written."""
        return _WITH_TLS[self.scheme] if self.tls else self.scheme

    def __str__(self) -> str:
        if self.scheme in PATH_SCHEMES:
            return f"{self.scheme}://{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.url_scheme}://{host}:{self.port}{self.path}"


def parse(url: str) -> Address:
    """Parse a URL; an AddressError says what is wrong with it."""
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise AddressError(f"invalid URL {url!r}: {error}") from None
    if parts.scheme not in SCHEMES:
        raise AddressError(f"unsupported scheme in {url!r}; supported: {', '.join(SCHEMES)}")
    if parts.fragment or parts.username is not None:
        raise AddressError(f"{url!r} must have only a scheme, a host, a port and a path")
    scheme = _WITHOUT_TLS.get(parts.scheme, parts.scheme)
    parameters = _parameters(parts.query, url)
    may = parameters.pop("may", None)
    if parameters and parts.scheme == scheme:
        secure = _WITH_TLS.get(scheme)
        instead = f"use {secure}:// instead of {scheme}://" if secure else f"{scheme}:// cannot have it"
        raise AddressError(f"{url!r}: `{next(iter(parameters))}` is for addresses with TLS; {instead}")
    if scheme in PATH_SCHEMES:
        if parts.netloc or not parts.path.startswith("/"):
            raise AddressError(f"{url!r} needs an absolute path, as in {parts.scheme}:///run/geartrain.sock")
        return Address(scheme, "", 0, parts.path, may=may)
    if not parts.hostname:
        raise AddressError(f"{url!r} has no host; use {parts.scheme}://127.0.0.1:{_default_port(scheme)}")
    if parts.path not in ("", "/") and scheme not in ("memodb+ws", "gearmonkey"):
        raise AddressError(f"{url!r}: {parts.scheme} URLs have no path")
    return Address(
        scheme=scheme,
        host=parts.hostname,
        port=_default_port(scheme) if port is None else port,
        path=parts.path if parts.path != "/" else "",
        tls=parts.scheme != scheme,
        may=may,
        tls_parameters=TlsParameters(**parameters) if parameters else _NO_TLS_PARAMETERS,
    )


def _default_port(scheme: str) -> int:
    return DEFAULT_PORTS.get(scheme, PEER_PORT)


def _parameters(query: str, url: str) -> dict[str, str]:
    """The parameters of a URL by name. A plus sign stands for itself."""
    parameters: dict[str, str] = {}
    for word in query.split("&") if query else ():
        name, equals, value = word.partition("=")
        if name not in _PARAMETERS:
            raise AddressError(f"{url!r}: unknown parameter {name!r}; there are {', '.join(_PARAMETERS)}")
        if not equals or not value or name in parameters:
            raise AddressError(f"{url!r}: write `{name}=` once, and with a value")
        parameters[name] = urllib.parse.unquote(value)
    wanted = parameters.get("client_certificate", CLIENT_CERTIFICATE[0])
    if wanted not in CLIENT_CERTIFICATE:
        raise AddressError(f"{url!r}: client_certificate must be one of {', '.join(CLIENT_CERTIFICATE)}")
    return parameters
