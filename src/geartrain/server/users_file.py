"""Changes of the users file, as `geartrain token` makes them.

Comments, order and layout of the file stay as they are. A change replaces the whole file at once, so a server that
reads it meanwhile sees the old or the new one. Two changes at the same time are made one after the other.
"""

import contextlib
import datetime
import fcntl
import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import tomlkit
from tomlkit.items import AoT

from geartrain import rights
from geartrain.errors import SettingsError
from geartrain.server import users

_PREFIX: Final = "gt_"  # by which people and scanners recognize a token
_RANDOM_BYTES: Final = 32
_MODE: Final = 0o600
_FOLDER_MODE: Final = 0o700


class TokenCreation(NamedTuple):
    """A token that was created."""

    user: str
    secret: str
    id: str
    may: list[str]
    is_new_user: bool
    replaced: list[str] | None  # the rights that the user had before, if they were replaced

    def __repr__(self) -> str:
        return f"TokenCreation(user={self.user!r}, id={self.id!r})"  # without the secret


class TokenRemoval(NamedTuple):
    """A token that was revoked."""

    user: str
    id: str


def create_token(path: Path, name: str, may: Sequence[str] | None) -> TokenCreation:
    """Add a token to a user, who is created if there is none; `may` replaces the user's rights, None keeps them."""
    users.check_name(name)
    if may is not None:
        rights.parse(may)
    with _changed(path) as document:
        if name not in document and may is None:
            raise SettingsError(f"there is no user {name} yet; say what it may do, as in --may 'submit:mail.*,read'")
        is_new_user = name not in document
        if is_new_user:
            document[name] = tomlkit.table()
        user = document[name]
        if not isinstance(user, dict):
            raise SettingsError(f"{path}: {name} is not a table")
        before = _rights(user)
        if may is not None and list(may) != before:
            user["may"] = list(may)
        secret = _PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)
        digest = users.digest(secret)
        _append_token(user, digest)
        return TokenCreation(
            user=name,
            secret=secret,
            id=users.Token(digest).id,
            may=_rights(user),
            is_new_user=is_new_user,
            replaced=before if not is_new_user and _rights(user) != before else None,
        )


def revoke_tokens(path: Path, name_or_id: str) -> list[TokenRemoval]:
    """Remove all tokens of a user, or the one with this id."""
    if not path.is_file():
        raise SettingsError(f"there is no users file {path}")
    with _changed(path) as document:
        is_name = name_or_id in document
        removed: list[TokenRemoval] = []
        for name, user in document.items():
            if not is_name or name == name_or_id:
                removed += _remove_tokens(name, user, "" if is_name else name_or_id)
        if not removed:
            text = f"the user {name_or_id} has no token" if is_name else f"there is no user or token {name_or_id}"
            raise SettingsError(f"{text} in {path}; `geartrain token list` shows all")
        if len({removal.user for removal in removed}) > 1:
            raise SettingsError(f"several users have a token with the id {name_or_id}; revoke by the user's name")
        return removed


def _rights(user: Any) -> list[str]:
    return [str(word) for word in user.get("may", [])]


def _remove_tokens(name: str, user: Any, id: str) -> list[TokenRemoval]:
    """Remove the token with this id from a user, or all of them if it is empty."""
    tokens = user.get("tokens", [])
    ids = [users.Token(str(token["digest"])).id for token in tokens]
    removed = [index for index in range(len(ids)) if id in ("", ids[index])]
    for index in reversed(removed):
        del tokens[index]
    if removed and not tokens:
        del user["tokens"]
    return [TokenRemoval(name, ids[index]) for index in removed]


def _append_token(user: Any, digest: str) -> None:
    created = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    fields = {"digest": digest, "created": created}
    tokens = user.get("tokens")
    if tokens is None:
        user["tokens"] = tomlkit.array()
        tokens = user["tokens"]
    if isinstance(tokens, AoT):
        table = tomlkit.table()
        table.update(fields)
        tokens.append(table)
        return
    inline = tomlkit.inline_table()
    inline.update(fields)
    tokens.append(inline)
    if len(tokens) > 1:
        tokens.multiline(True)


@contextlib.contextmanager
def _changed(path: Path) -> Iterator[tomlkit.TOMLDocument]:
    """The document in the file; what the block makes of it is checked, and written."""
    path = path.resolve()  # the file that a symbolic link names is replaced, not the link
    try:
        path.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        with _locked(path.parent):
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            users.parse_text(text, path)
            document = tomlkit.parse(text)
            yield document
            text = tomlkit.dumps(document)
            users.parse_text(text, path)
            _write(path, text)
    except OSError as error:
        raise SettingsError(f"cannot change the users file {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"the users file {path} is not UTF-8") from None


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Wait for others who change a file in the folder. The file itself cannot be locked, since it is replaced."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write(path: Path, text: str) -> None:
    """Replace the file, with the same owner and mode, durably."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            if path.exists():
                status = path.stat()
                with contextlib.suppress(PermissionError):
                    os.fchown(descriptor, status.st_uid, status.st_gid)
                os.fchmod(descriptor, status.st_mode & 0o777)
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
