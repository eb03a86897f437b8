"""Where settings come from: flags, then the environment, then a settings file, then defaults.

>>> load({"max_attempts": "3"}, {"GEARTRAIN_MAX_ATTEMPTS": "5", "GEARTRAIN_CONFIG": "/dev/null"}).max_attempts
3
"""

import difflib
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from geartrain.errors import AddressError, SettingsError
from geartrain.server.config import settings as table
from geartrain.server.config.settings import Setting, Settings

CONFIG_FLAG = "--config"
CONFIG_VARIABLE = table.PREFIX + "CONFIG"
FILE_NAME = "geartrain.toml"


class SettingValue(NamedTuple):
    """A value, and the place to name when it is wrong."""

    value: Any
    place: str  # as its author wrote it: `--backlog x`, `GEARTRAIN_BACKLOG=x`, `file.toml: backlog = "x"`


def load(flags: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Settings:
    """The settings that are in force; a SettingsError names the place of whatever is wrong.

    `flags` has what was given on the command line, by setting name; `config` among them names the file.
    """
    environment = os.environ if environment is None else environment
    given: dict[str, SettingValue] = {}
    path = _settings_file(flags, environment)
    if path is not None:
        given.update(_from_file(path))
    given.update(_from_environment(environment))
    given.update(_from_flags(flags))
    settings = Settings(**{name: _read(table.TABLE[name], value) for name, value in given.items()})
    table.check(settings)
    return settings


def default_files(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Where a settings file is looked for when none is named; the first that exists is read."""
    home = environment.get("XDG_CONFIG_HOME") or os.path.join(environment.get("HOME", "/"), ".config")
    return Path(home) / "geartrain" / FILE_NAME, Path("/etc/geartrain") / FILE_NAME


def _settings_file(flags: Mapping[str, Any], environment: Mapping[str, str]) -> Path | None:
    named = flags.get("config") or environment.get(CONFIG_VARIABLE)
    if named:
        return Path(named)
    return next((path for path in default_files(environment) if path.is_file()), None)


def _from_file(path: Path) -> Iterable[tuple[str, SettingValue]]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"the settings file {path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise SettingsError(f"the settings file {path} is not valid TOML: {error}") from None
    for key, value in document.items():
        if key not in table.TABLE:
            raise SettingsError(f"{path}: there is no setting {key!r}{_nearest(key)}")
        yield key, SettingValue(value, f"{path}: {key} = {_as_toml(value)}")


def _from_environment(environment: Mapping[str, str]) -> Iterable[tuple[str, SettingValue]]:
    """Only names of the table count: others that begin alike belong to somebody else.

    (Kubernetes invents GEARTRAIN_PORT and more for a service of that name.) An empty one counts as not set.
    """
    for setting in table.TABLE.values():
        value = environment.get(setting.variable)
        if value:
            yield setting.name, SettingValue(value, f"{setting.variable}={value}")


def _from_flags(flags: Mapping[str, Any]) -> Iterable[tuple[str, SettingValue]]:
    for name, value in flags.items():
        if name != "config" and value is not None:
            yield name, SettingValue(value, _as_flag(table.TABLE[name], value))


def _read(setting: Setting, given: SettingValue) -> Any:
    try:
        return setting.about.kind.read(given.value)
    except AddressError as error:
        raise SettingsError(f"{given.place}: {error}") from None
    except ValueError:
        raise SettingsError(f"{given.place}: must be {setting.about.kind.allowed}") from None


def _nearest(key: str) -> str:
    near = difflib.get_close_matches(key, table.TABLE, n=1)
    return f"; did you mean {near[0]!r}?" if near else "; `geartrain serve --help` lists them"


def _as_toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _as_flag(setting: Setting, value: Any) -> str:
    words = value if isinstance(value, (list, tuple)) else [value]
    return " ".join(f"{setting.flag} {word}" for word in words)
