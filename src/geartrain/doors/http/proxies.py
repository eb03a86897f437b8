"""Trusted proxies: what a reverse proxy says about its client is believed only from the addresses of the settings.

Any client can send `X-Forwarded-Proto` and `X-Forwarded-For`, so from other addresses both headers are ignored.
"""

import ipaddress
from collections.abc import Iterable

from geartrain.doors.http.request import Request


class TrustedProxies:
    """The proxies of the settings, as addresses or networks."""

    def __init__(self, networks: Iterable[str] = ()) -> None:
        self._networks = tuple(ipaddress.ip_network(network, strict=False) for network in networks)

    def is_https(self, request: Request) -> bool:
        """Whether the client's connection is encrypted: to this server, or to a trusted proxy that says so."""
        if request.scheme == "https":
            return True
        # A chain of proxies lists one scheme for each; the first is that of the client.
        scheme = request.headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower()
        return scheme == "https" and self._includes(_peer(request))

    def client_of(self, request: Request) -> str:
        """The address of the client: of the peer, or of the client that trusted proxies forward for."""
        client = _peer(request)
        forwarded = request.headers.get("x-forwarded-for", "").split(",")
        # Each proxy appends the address it was asked from, so only what stands right of untrusted ones is known.
        while forwarded and self._includes(client):
            client = forwarded.pop().strip() or client
        return client

    def _includes(self, host: str) -> bool:
        if not self._networks:
            return False
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        return any(address in network for network in self._networks)


def _peer(request: Request) -> str:
    return request.client.host if request.client is not None else ""
