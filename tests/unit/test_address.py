"""URLs that name an address, and the words for those that do not."""

import doctest

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
    assert address.parse(url) == expected


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("", "no known scheme"),
        ("127.0.0.1:4730", "no known scheme"),
        ("localhost:4730", "no known scheme"),
        ("gopher://127.0.0.1", "no known scheme"),
        ("gearman://", "names no host"),
        ("gearman://:4730", "names no host"),
        ("gearman://127.0.0.1:port", "is not an address"),
        ("gearman://127.0.0.1:65536", "is not an address"),
        ("gearman://127.0.0.1:-1", "is not an address"),
        ("gearman://[::1", "is not an address"),
        ("gearman://127.0.0.1/queue", "have no path"),
        ("gearman://127.0.0.1?tls=1", "more than a scheme"),
        ("gearman://127.0.0.1#x", "more than a scheme"),
        ("gearman://user@127.0.0.1", "more than a scheme"),
        ("periodic+unix://run/geartrain.sock", "absolute path"),
        ("periodic+unix:", "absolute path"),
        ("memodb+ipc:memo.ipc", "absolute path"),
    ],
)
def test_what_is_not_an_address_is_refused_with_the_reason(url: str, complaint: str) -> None:
    with pytest.raises(AddressError, match=complaint):
        address.parse(url)


@pytest.mark.parametrize("scheme", address.DEFAULT_PORTS)
def test_a_scheme_without_a_port_means_its_default(scheme: str) -> None:
    assert address.parse(f"{scheme}://127.0.0.1").port == address.DEFAULT_PORTS[scheme]


@pytest.mark.parametrize(
    "url",
    [
        "gearman://127.0.0.1:4730",
        "gearman://[::1]:4730",
        "periodic+unix:///run/geartrain.sock",
        "memodb+ws://127.0.0.1:12704/memo",
        "gearmonkey://127.0.0.1:6379/2",
    ],
)
def test_a_printed_address_reads_back(url: str) -> None:
    assert str(address.parse(url)) == url


def test_the_examples_of_the_module_run() -> None:
    assert doctest.testmod(address) == (0, 2)
