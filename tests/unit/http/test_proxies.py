"""Headers of reverse proxies are believed only from trusted addresses."""

import pytest

from geartrain.doors.http.proxies import TrustedProxies
from geartrain.doors.http.request import Request
from tests.support import http_requests


def request(client: str, scheme: str = "http", **headers: str) -> Request:
    return http_requests.request(client=client, scheme=scheme, **headers)


@pytest.mark.parametrize(
    ("client", "scheme", "forwarded", "is_https"),
    [
        ("10.0.0.7", "http", "https", True),
        ("fd00::7", "http", "HTTPS", True),
        ("10.0.0.7", "http", "https, http", True),
        ("10.0.0.7", "http", "http", False),
        ("10.0.0.7", "http", "", False),
        ("10.0.1.7", "http", "https", False),
        ("127.0.0.1", "http", "https", False),
        ("", "http", "https", False),
        ("10.0.1.7", "https", "http", True),
    ],
)
def test_https(client: str, scheme: str, forwarded: str, is_https: bool) -> None:
    proxies = TrustedProxies(("10.0.0.0/24", "fd00::/16"))
    assert proxies.is_https(request(client, scheme, x_forwarded_proto=forwarded)) is is_https


def test_no_proxy_is_trusted_by_default() -> None:
    assert not TrustedProxies().is_https(request("127.0.0.1", x_forwarded_proto="https"))
    assert TrustedProxies().client_of(request("127.0.0.1", x_forwarded_for="192.0.2.1")) == "127.0.0.1"


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("192.0.2.66, 192.0.2.1", "192.0.2.1"),  # what a client writes itself stands left
        ("192.0.2.1, 10.0.0.8", "192.0.2.1"),
        ("", "10.0.0.7"),
        ("10.0.0.9,", "10.0.0.9"),
    ],
)
def test_the_client_behind_a_trusted_proxy(forwarded: str, client: str) -> None:
    assert TrustedProxies(("10.0.0.0/24",)).client_of(request("10.0.0.7", x_forwarded_for=forwarded)) == client
