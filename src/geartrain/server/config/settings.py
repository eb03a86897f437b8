"""The table of settings: flags, environment variables, settings file and documentation are made from it.

The name of a field is its TOML key; `max_packet` is also the flag `--max-packet` and the environment variable
`GEARTRAIN_MAX_PACKET`. `load.py` reads them.

>>> Settings().max_attempts
10
>>> TABLE["max_packet"].flag, TABLE["max_packet"].variable, TABLE["max_packet"].shown_default
('--max-packet', 'GEARTRAIN_MAX_PACKET', '64MiB')
"""

import dataclasses
import os
import typing
from typing import Any, Final, NamedTuple

from geartrain.errors import SettingsError
from geartrain.server.config import cluster_settings, door_settings, job_settings, process_settings, types
from geartrain.server.config.types import ValueType

PREFIX = "GEARTRAIN_"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(
    door_settings.DoorSettings,
    job_settings.StoreSettings,
    cluster_settings.ClusterSettings,
    job_settings.JobSettings,
    door_settings.PeriodicSettings,
    door_settings.HttpSettings,
    process_settings.ProcessSettings,
    job_settings.WorkerSettings,
    process_settings.LimitSettings,
    door_settings.SocketSettings,
    door_settings.AccessSettings,
    door_settings.TlsSettings,
    process_settings.LogSettings,
):
    """All settings with their defaults."""

    settings_file: str = dataclasses.field(default="", compare=False)  # that was read; no setting itself


# The settings by group, in the order in which `--help` and the documentation list them.
GROUPS: Final = {
    "Doors": door_settings.DoorSettings,
    "Store": job_settings.StoreSettings,
    "Cluster": cluster_settings.ClusterSettings,
    "Jobs": job_settings.JobSettings,
    "Periodic": door_settings.PeriodicSettings,
    "HTTP": door_settings.HttpSettings,
    "Process": process_settings.ProcessSettings,
    "Workers": job_settings.WorkerSettings,
    "Limits": process_settings.LimitSettings,
    "Sockets": door_settings.SocketSettings,
    "Access": door_settings.AccessSettings,
    "TLS": door_settings.TlsSettings,
    "Log": process_settings.LogSettings,
}


class Setting(NamedTuple):
    """A row of the table."""

    name: str
    default: Any
    group: str
    value_type: ValueType
    help: str
    empty_means: str

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()

    @property
    def shown_default(self) -> str:
        """The default for people: as they would write it, or what an empty one means."""
        return self.empty_means or self.value_type.show(self.default)


def _rows() -> dict[str, Setting]:
    return {
        name: Setting(name, getattr(group, name), title, *typing.get_args(annotation)[1])
        for title, group in GROUPS.items()
        for name, annotation in typing.get_type_hints(group, include_extras=True).items()
    }


TABLE = _rows()


def check(settings: Settings) -> None:
    """Refuse settings that contradict each other."""
    for address in settings.periodic_quiet:
        if settings.listen and str(address) not in map(str, settings.listen):
            raise SettingsError(f"periodic_quiet has {address}, which is not one of the listen addresses")


def handle_prefix(settings: Settings) -> bytes:
    """The prefix of handles, cut so that a whole handle fits into the buffers of Gearman's libraries."""
    prefix = settings.handle_prefix or f"H:{os.uname().nodename}"
    return prefix.encode()[: types.PREFIX_LIMIT]
