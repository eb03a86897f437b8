"""The TLS of listening addresses: what their URLs say, what the settings say, and contradictions."""

import dataclasses

import pytest

from geartrain import address
from geartrain.errors import SettingsError
from geartrain.server.config import listener_tls
from geartrain.server.config.listener_tls import ListenerTls
from geartrain.server.config.settings import Settings

SETTINGS = Settings(tls_certificate="server.pem", tls_key="server.key", tls_ca="ca.pem", tls_crl="crl.pem")
BARE = Settings(tls_certificate="server.pem")


@pytest.mark.parametrize(
    ("query", "settings", "expected"),
    [
        ("", BARE, ("server.pem", "", "", "", "none")),
        ("", SETTINGS, ("server.pem", "server.key", "ca.pem", "crl.pem", "required")),
        ("client_certificate=optional", SETTINGS, ("server.pem", "server.key", "ca.pem", "crl.pem", "optional")),
        ("client_certificate=none", SETTINGS, ("server.pem", "server.key", "", "", "none")),
        ("certificate=/a+b%26.pem", SETTINGS, ("/a+b&.pem", "", "ca.pem", "crl.pem", "required")),
        ("certificate=a.pem&key=a.key", SETTINGS, ("a.pem", "a.key", "ca.pem", "crl.pem", "required")),
        ("ca=own.pem", SETTINGS, ("server.pem", "server.key", "own.pem", "", "required")),
        ("crl=own.pem", SETTINGS, ("server.pem", "server.key", "ca.pem", "own.pem", "required")),
        (
            "ca=own.pem&crl=crl.pem&client_certificate=optional",
            BARE,
            ("server.pem", "", "own.pem", "crl.pem", "optional"),
        ),
        ("certificate=a.pem", Settings(), ("a.pem", "", "", "", "none")),
    ],
)
def test_url_and_settings(query: str, settings: Settings, expected: tuple[str, ...]) -> None:
    listening = address.parse(f"gearmans://127.0.0.1?{query}")
    assert listener_tls.of_address(listening, settings) == ListenerTls(*expected, min_version="1.2")


@pytest.mark.parametrize(
    ("query", "settings", "complaint"),
    [
        (
            "",
            Settings(),
            "https://127.0.0.1:4780 needs a certificate: set tls_certificate, or `certificate` in the URL",
        ),
        ("key=a.key", BARE, "`key` needs `certificate` beside it"),
        ("client_certificate=required", BARE, "client_certificate=required needs authorities"),
        ("client_certificate=optional", BARE, "client_certificate=optional needs authorities"),
        ("crl=crl.pem", BARE, "`ca` and `crl` check client certificates"),
        ("ca=ca.pem&client_certificate=none", BARE, "`ca` and `crl` check client certificates"),
    ],
)
def test_contradictions(query: str, settings: Settings, complaint: str) -> None:
    listening = address.parse(f"https://127.0.0.1?{query}")
    with pytest.raises(SettingsError, match=complaint):
        listener_tls.check(dataclasses.replace(settings, listen=(listening,)))


@pytest.mark.parametrize("name", ["tls_key", "tls_ca"])
def test_tls_needs_a_certificate(name: str) -> None:
    with pytest.raises(SettingsError, match=f"{name} is set without tls_certificate"):
        listener_tls.check(dataclasses.replace(Settings(), **{name: "some.pem"}))


def test_certificate_alone_is_enough() -> None:
    listener_tls.check(BARE)


def test_certificates_of_addresses_are_enough() -> None:
    own = address.parse("gearmans://127.0.0.1?certificate=own.pem")
    listener_tls.check(Settings(listen=(own,), tls_ca="ca.pem"))


def test_certificate_must_be_used() -> None:
    plain = address.parse("gearman://127.0.0.1")
    with pytest.raises(SettingsError, match="tls_certificate is set, but no listen address uses TLS"):
        listener_tls.check(Settings(tls_certificate="both.pem", listen=(plain,)))
    listener_tls.check(Settings(tls_certificate="both.pem", listen=(plain, address.parse("gearmans://[::1]"))))


def test_revocation_lists_need_authorities() -> None:
    with pytest.raises(SettingsError, match="tls_crl is set without tls_ca"):
        listener_tls.check(Settings(tls_certificate="both.pem", tls_crl="crl.pem"))
