"""The table of settings is complete, and its defaults are what it shows."""

import dataclasses
import os

import pytest

from geartrain.server.config import settings as table
from geartrain.server.config import types
from geartrain.server.config.settings import TABLE, Settings


def test_every_field_has_a_row() -> None:
    assert TABLE.keys() == {field.name for field in dataclasses.fields(Settings)} - {"settings_file"}


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
