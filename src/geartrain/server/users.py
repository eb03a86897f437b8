"""Users: who may connect, how each user proves it, and what each may do.

They are tables of the users file, and tables below `users` of the settings file; a name is in one of them only.

    [mailer]
    may = ["submit:mail.*", "read:mail.*"]
    tokens = [{ digest = "sha256:9f86d0...", created = 2026-11-16T20:00:00Z }]   # `geartrain token create` writes these
    certificates = ["mailer.example"]      # a name in the client's certificate
    accounts = ["www-data"]                # of this machine, by socket files
    max_connections = 10                   # quotas; without one there is no limit
    max_queued_jobs = 1000
    max_queued_bytes = "64MiB"

Only digests of tokens are stored. A token is 32 random bytes, so a digest cannot be reversed by guessing.
"""

import datetime
import hashlib
import os
import pwd
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from geartrain import rights, units
from geartrain.errors import SettingsError
from geartrain.server.config import load

FILE_NAME: Final = "users.toml"
ALGORITHM: Final = "sha256"
_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$"

UserName = Annotated[str, msgspec.Meta(pattern=_NAME)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Digest = Annotated[str, msgspec.Meta(pattern=rf"^{ALGORITHM}:[0-9a-f]{{64}}$")]


class Token(msgspec.Struct, forbid_unknown_fields=True):
    """A token of a user."""

    digest: Digest
    created: datetime.datetime | None = None

    @property
    def id(self) -> str:
        """A short name for people: the first digits of the digest."""
        return self.digest.partition(":")[2][:8]


class User(msgspec.Struct, forbid_unknown_fields=True):
    """A user."""

    may: list[str] = []
    tokens: list[Token] = []
    certificates: list[str] = []
    accounts: list[str] = []
    max_connections: Count = 0  # 0: no limit
    max_queued_jobs: Count = 0
    max_queued_bytes: Count | str = 0  # a number, or a size such as "64MiB"

    @property
    def most_bytes(self) -> int:
        """`max_queued_bytes` as a number; a ValueError if it is no size."""
        size = self.max_queued_bytes
        return units.parse_size(size) if isinstance(size, str) else size


Users = dict[str, User]


class UserSources:
    """Where a server's users are: the users file, and the settings file."""

    def __init__(
        self, users_file: str = "", settings_file: str = "", environment: Mapping[str, str] = os.environ
    ) -> None:
        self._named = Path(users_file) if users_file else None
        self._settings_file = Path(settings_file) if settings_file else None
        self._defaults = tuple(path.with_name(FILE_NAME) for path in load.default_files(environment))

    @property
    def file(self) -> Path:
        """The users file: the one that is named, else the first default that exists, else the first default."""
        if self._named is not None:
            return self._named
        return next((path for path in self._defaults if path.is_file()), self._defaults[0])

    def read(self) -> Users:
        """All users; a SettingsError says what is wrong with them. A default file may be missing."""
        in_settings = self.in_settings()
        path = self.file
        if self._named is None and not path.is_file():
            return in_settings
        in_file = read(path)
        for name in in_file.keys() & in_settings.keys():
            raise SettingsError(f"the user {name} is in {path} and in {self._settings_file}; remove one of the two")
        return {**in_settings, **in_file}

    def in_settings(self) -> Users:
        """The users in the settings file."""
        if self._settings_file is None:
            return {}
        tables = load.read_file(self._settings_file).get(load.USERS_TABLE, {})
        return parse(tables, f"{self._settings_file}: {load.USERS_TABLE}")

    def refuse_settings_user(self, name: str) -> None:
        """Raise a SettingsError for a user of the settings file, which only its author changes."""
        if name in self.in_settings():
            raise SettingsError(
                f"the user {name} is in the settings file {self._settings_file}; change it there, or move it to "
                f"the users file {self.file}"
            )


def read(path: Path) -> Users:
    """The users in a file; a SettingsError says what is wrong with it."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"cannot read the users file {path}: {error.strerror}") from None
    except ValueError:
        raise SettingsError(f"the users file {path} is not UTF-8") from None
    return parse_text(text, path)


def parse_text(text: str, path: Path) -> Users:
    """The users in the text of a file."""
    try:
        document = tomllib.loads(text)
    except ValueError as error:
        raise SettingsError(f"the users file {path} is not valid TOML: {error}") from None
    return parse(document, str(path))


def parse(document: Mapping[str, Any], place: str) -> Users:
    """The users in a TOML document."""
    try:
        users = msgspec.convert(document, dict[UserName, User])
    except msgspec.ValidationError as error:
        raise SettingsError(f"{place}: {error}") from None
    for name, user in users.items():
        try:
            rights.parse(user.may)
            _check_quota(user)
            for account in user.accounts:
                pwd.getpwnam(account)
        except SettingsError as error:
            raise SettingsError(f"{place}: user {name}: {error}") from None
        except KeyError:
            raise SettingsError(f"{place}: user {name}: this machine has no account {account!r}") from None
    return users


def check_name(name: str) -> None:
    """Raise a SettingsError if this cannot be a user's name."""
    if not re.match(_NAME, name):
        raise SettingsError(
            f"{name!r} is no name of a user: it has up to 64 letters, digits, and . _ @ - after the first"
        )


def digest(secret: str) -> str:
    """What is stored of a token."""
    return f"{ALGORITHM}:{hashlib.sha256(secret.encode('utf-8', 'surrogateescape')).hexdigest()}"


def _check_quota(user: User) -> None:
    try:
        if user.most_bytes >= 0:
            return
    except ValueError:
        pass
    raise SettingsError(f"max_queued_bytes is {user.max_queued_bytes!r}, not a size such as 64MiB")
