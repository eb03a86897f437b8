"""The table of settings is complete, and its defaults are what it shows."""

import dataclasses
import os

import pytest

from geartrain import address
from geartrain.errors import SettingsError
from geartrain.server.config import settings as table
from geartrain.server.config import types
from geartrain.server.config.settings import TABLE, Settings


def test_every_field_has_a_row() -> None:
    assert TABLE.keys() == {field.name for field in dataclasses.fields(Settings)}


@pytest.mark.parametrize("name", TABLE)
def test_row_is_documented(name: str) -> None:
    setting = TABLE[name]
    assert setting.help.endswith(".")
    assert setting.group
    assert setting.shown_default
    assert setting.flag == "--" + name.replace("_", "-")
    assert setting.variable == "GEARTRAIN_" + name.upper()


@pytest.mark.parametrize("name", [name for name, setting in TABLE.items() if not setting.empty_means])
def test_shown_default_means_the_default(name: str) -> None:
    setting = TABLE[name]
    assert setting.value_type.parse(setting.shown_default) == setting.default


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Settings().backlog = 5  # type: ignore[misc]


@pytest.mark.parametrize("name", ["tls_key", "tls_ca"])
def test_tls_needs_a_certificate(name: str) -> None:
    with pytest.raises(SettingsError, match=f"{name} is set without tls_certificate"):
        table.check(dataclasses.replace(Settings(), **{name: "some.pem"}))


def test_certificate_alone_is_enough() -> None:
    table.check(Settings(tls_certificate="both.pem"))


def test_certificate_must_be_used() -> None:
    with pytest.raises(SettingsError, match="tls_certificate is set, but no listen address uses TLS"):
        table.check(Settings(tls_certificate="both.pem", listen=(address.parse("gearman://127.0.0.1"),)))
    mixed = (address.parse("gearman://127.0.0.1"), address.parse("gearmans://127.0.0.1:4731"))
    table.check(Settings(tls_certificate="both.pem", listen=mixed))


def test_address_with_tls_needs_a_certificate() -> None:
    with pytest.raises(SettingsError, match=r"https://127.0.0.1:4780 needs a certificate: set tls_certificate"):
        table.check(Settings(listen=(address.parse("https://127.0.0.1"),)))


def test_handle_prefix_is_the_hosts_name() -> None:
    assert table.handle_prefix(Settings()) == f"H:{os.uname().nodename}".encode()[: types.PREFIX_LIMIT]


def test_long_host_name_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    name = os.uname_result(("Linux", "n" * 64, "6", "1", "x86_64"))
    monkeypatch.setattr(os, "uname", lambda: name)
    prefix = table.handle_prefix(Settings())
    assert prefix.startswith(b"H:nnn")
    assert len(prefix + b":%d" % (2**63 - 1)) == 63


def test_handle_prefix_of_the_settings_is_used() -> None:
    assert table.handle_prefix(Settings(handle_prefix="X:pre")) == b"X:pre"
