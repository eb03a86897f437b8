"""Loading settings from flags, the environment and a settings file; the first of these that has a setting wins.

>>> load({"max_attempts": "3"}, {"GEARTRAIN_MAX_ATTEMPTS": "5", "GEARTRAIN_CONFIG": "/dev/null"}).max_attempts
3
"""

import difflib
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from geartrain.address import Address
from geartrain.errors import AddressError, SettingsError
from geartrain.server.config import listener_tls
from geartrain.server.config import settings as table
from geartrain.server.config.settings import Setting, Settings
from geartrain.store import url

CONFIG_FLAG = "--config"
CONFIG_VARIABLE = table.PREFIX + "CONFIG"
FILE_NAME = "geartrain.toml"
USERS_TABLE = "users"  # of the settings file; `server/users.py` reads it


class SettingValue(NamedTuple):
    """A value and where it comes from, for error messages."""

    value: Any
    source: str  # as its author wrote it: `--backlog x`, `GEARTRAIN_BACKLOG=x`, `file.toml: backlog = "x"`


def load(
    flags: Mapping[str, Any],
    environment: Mapping[str, str] | None = None,
    defaults: Mapping[str, Any] = MappingProxyType({}),
) -> Settings:
    """Load all settings; a SettingsError says which value is wrong and where it comes from.

    `flags` has the command line's values by setting name; `config` names the settings file. `defaults` are used
    instead of those of the table, where a command has its own.
    """
    environment = os.environ if environment is None else environment
    values = dict(_from_flags(defaults))
    path = _settings_file(flags, environment)
    if path is not None:
        values.update(_from_file(path))
    values.update(_from_environment(environment))
    values.update(_from_flags(flags))
    _require_secrecy(flags.get("store"))
    parsed = {name: _parse(table.TABLE[name], value) for name, value in values.items()}
    settings = Settings(settings_file=str(path or ""), **parsed)
    table.check(settings)
    listener_tls.check(settings)
    return settings


def _require_secrecy(store: str | None) -> None:
    """Everybody on the machine can read the command line of a process."""
    if store is not None and url.has_password(store):
        raise SettingsError(
            f"--store {url.shown(store)}: a password on the command line can be seen by everybody on this machine; "
            f"use PGPASSFILE or PGPASSWORD, or put the URL into {table.PREFIX}STORE or the settings file"
        )


def listen_addresses(environment: Mapping[str, str]) -> tuple[Address, ...]:
    """The addresses of `listen` in the environment or the settings file, for a command that adds its own to them."""
    path = _settings_file({}, environment)
    values = dict(_from_file(path)) if path is not None else {}
    values.update(_from_environment(environment))
    if "listen" not in values:
        return ()
    addresses: tuple[Address, ...] = _parse(table.TABLE["listen"], values["listen"])
    return addresses


def default_files(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """The settings files that are tried when none is named; the first that exists is read."""
    config_home = environment.get("XDG_CONFIG_HOME") or os.path.join(environment.get("HOME", "/"), ".config")
    return Path(config_home) / "geartrain" / FILE_NAME, Path("/etc/geartrain") / FILE_NAME


def _settings_file(flags: Mapping[str, Any], environment: Mapping[str, str]) -> Path | None:
    named = flags.get("config") or environment.get(CONFIG_VARIABLE)
    if named:
        return Path(named)
    return next((path for path in default_files(environment) if path.is_file()), None)


def read_file(path: Path) -> dict[str, Any]:
    """The TOML document in a settings file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read the settings file {path}: {error.strerror}") from None
    except ValueError as error:
        raise SettingsError(f"the settings file {path} is not valid TOML: {error}") from None


def _from_file(path: Path) -> Iterable[tuple[str, SettingValue]]:
    for key, value in read_file(path).items():
        if key == USERS_TABLE:
            continue
        if key not in table.TABLE:
            raise SettingsError(f"{path}: unknown setting {key!r}{_nearest(key)}")
        yield key, SettingValue(value, f"{path}: {key} = {_as_toml(value)}")


def _from_environment(environment: Mapping[str, str]) -> Iterable[tuple[str, SettingValue]]:
    """Read the variables of the table; an empty one counts as not set.

    Unknown variables with our prefix are no error: Kubernetes sets GEARTRAIN_PORT and others for such a service.
    """
    for setting in table.TABLE.values():
        value = environment.get(setting.variable)
        if value:
            yield setting.name, SettingValue(value, f"{setting.variable}={value}")


def _from_flags(flags: Mapping[str, Any]) -> Iterable[tuple[str, SettingValue]]:
    for name, value in flags.items():
        if name != "config" and value is not None:
            yield name, SettingValue(value, _as_flag(table.TABLE[name], value))


def _parse(setting: Setting, setting_value: SettingValue) -> Any:
    try:
        return setting.value_type.parse(setting_value.value)
    except AddressError as error:
        raise SettingsError(f"{setting_value.source}: {error}") from None
    except ValueError:
        raise SettingsError(f"{setting_value.source}: must be {setting.value_type.allowed}") from None


def _nearest(key: str) -> str:
    near = difflib.get_close_matches(key, table.TABLE, n=1)
    return f"; did you mean {near[0]!r}?" if near else "; `geartrain serve --help` lists all settings"


def _as_toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _as_flag(setting: Setting, value: Any) -> str:
    values = value if isinstance(value, (list, tuple)) else [value]
    return " ".join(f"{setting.flag} {single}" for single in values)
