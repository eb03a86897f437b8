"""The users file: who may connect, how each user proves it, and what each may do.

    [mailer]
    may = ["submit:mail.*", "read:mail.*"]
    tokens = [{ digest = "sha256:9f86d0...", created = 2026-11-16T20:00:00Z }]   # `geartrain token create` writes these
    certificates = ["mailer.example"]      # a name in the client's certificate
    accounts = ["www-data"]                # of this machine, by socket files

Only digests of tokens are stored. A token is 32 random bytes, so a digest cannot be reversed by guessing.
"""

import datetime
import hashlib
import pwd
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from geartrain import rights
from geartrain.errors import SettingsError

ALGORITHM: Final = "sha256"
_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$"

UserName = Annotated[str, msgspec.Meta(pattern=_NAME)]
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


Users = dict[str, User]


def read(path: Path) -> Users:
    """The users in a file; a SettingsError says what is wrong with it."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read the users file {path}: {error.strerror}") from None
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
            for account in user.accounts:
                pwd.getpwnam(account)
        except SettingsError as error:
            raise SettingsError(f"{place}: user {name}: {error}") from None
        except KeyError:
            raise SettingsError(f"{place}: user {name}: this machine has no account {account!r}") from None
    return users


def digest(secret: str) -> str:
    """What is stored of a token."""
    return f"{ALGORITHM}:{hashlib.sha256(secret.encode('utf-8', 'surrogateescape')).hexdigest()}"
