"""URLs that name an address, and the words for those that do not."""

import pytest

from geartrain import address
from geartrain.errors import AddressError


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("gearman://127.0.0.1:4731", ("gearman", "127.0.0.1", 4731, "")),
        ("gearman://127.0.0.1:0", ("gearman", "127.0.0.1", 0, "")),
        ("gearman://localhost", ("gearman", "localhost", 4730, "")),
        ("gearman://localhost/", ("gearman", "localhost", 4730, "")),
        ("gearman://[::1]:5000", ("gearman", "::1", 5000, "")),
        ("GEARMAN://LocalHost", ("gearman", "localhost", 4730, "")),
        ("danga://0.0.0.0", ("danga", "0.0.0.0", 7003, "")),
        ("periodic://127.0.0.1", ("periodic", "127.0.0.1", 5000, "")),
        ("periodic+unix:///run/geartrain.sock", ("periodic+unix", "", 0, "/run/geartrain.sock")),
        ("memodb+tcp://127.0.0.1", ("memodb+tcp", "127.0.0.1", 12703, "")),
        ("memodb+ipc:///tmp/memo.ipc", ("memodb+ipc", "", 0, "/tmp/memo.ipc")),
        ("memodb+ws://127.0.0.1/memo", ("memodb+ws", "127.0.0.1", 12704, "/memo")),
        ("gearmonkey://127.0.0.1/2", ("gearmonkey", "127.0.0.1", 6379, "/2")),
        ("http://127.0.0.1", ("http", "127.0.0.1", 4780, "")),
    ],
)
def test_parse(url: str, expected: tuple[str, str, int, str]) -> None:
    assert address.parse(url) == (*expected, False, None, address.TlsParameters())


@pytest.mark.parametrize(("plain", "secure"), address.TLS_SCHEMES.items())
def test_scheme_with_tls(plain: str, secure: str) -> None:
    server = address.parse(f"{secure}://127.0.0.1")
    assert server == (plain, "127.0.0.1", address.DEFAULT_PORTS[plain], "", True, None, address.TlsParameters())
    assert str(server) == f"{secure}://127.0.0.1:{server.port}"


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("", "unsupported scheme"),
        ("127.0.0.1:4730", "unsupported scheme"),
        ("localhost:4730", "unsupported scheme"),
        ("gopher://127.0.0.1", "unsupported scheme"),
        ("gearman://", "has no host"),
        ("gearman://:4730", "has no host"),
        ("gearman://127.0.0.1:port", "invalid URL"),
        ("gearman://127.0.0.1:65536", "invalid URL"),
        ("gearman://127.0.0.1:-1", "invalid URL"),
        ("gearman://[::1", "invalid URL"),
        ("gearman://127.0.0.1/queue", "have no path"),
        ("gearman://127.0.0.1?tls=1", "unknown parameter 'tls'; there are may, certificate"),
        ("gearman://127.0.0.1?may", "write `may=` once, and with a value"),
        ("gearman://127.0.0.1?may=read&may=work", "write `may=` once, and with a value"),
        ("gearman://127.0.0.1?ca=ca.pem", "`ca` is for addresses with TLS; use gearmans:// instead of gearman://"),
        ("memodb+ipc:///memo.ipc?key=key.pem", "`key` is for addresses with TLS; memodb.ipc:// cannot have it"),
        ("gearmans://127.0.0.1?client_certificate=yes", "must be one of required, optional, none"),
        ("gearman://127.0.0.1#x", "must have only a scheme"),
        ("gearman://user@127.0.0.1", "must have only a scheme"),
        ("periodic+unix://run/geartrain.sock", "absolute path"),
        ("periodic+unix:", "absolute path"),
        ("memodb+ipc:memo.ipc", "absolute path"),
    ],
)
def test_invalid_url_is_refused_with_the_reason(url: str, complaint: str) -> None:
    with pytest.raises(AddressError, match=complaint):
        address.parse(url)


@pytest.mark.parametrize("scheme", address.DEFAULT_PORTS)
def test_default_port(scheme: str) -> None:
    assert address.parse(f"{scheme}://127.0.0.1").port == address.DEFAULT_PORTS[scheme]


@pytest.mark.parametrize(
    "url",
    [
        "gearman://127.0.0.1:4730",
        "gearman://[::1]:4730",
        "periodic+unix:///run/geartrain.sock",
        "memodb+ws://127.0.0.1:12704/memo",
        "gearmonkey://127.0.0.1:6379/2",
        "memodb+wss://127.0.0.1:12704/memo",
    ],
)
def test_text_of_an_address_parses_to_the_same(url: str) -> None:
    assert str(address.parse(url)) == url
