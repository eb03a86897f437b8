"""The audit log: who did what, from where, and whether it was allowed.

An entry is one line of JSON. Payloads and tokens are never in it.

    {"time":"2026-11-16T20:00:00.123Z","verb":"cancel","who":"ops","protocol":"http","peer":"10.0.0.7:41234",
     "arguments":{"handle":"H:host:17"}}

This module has what every part of the server that records something needs; `server/audit_log.py` keeps the entries.
"""

import contextlib
import datetime
import os
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from geartrain.rights import Identity

# Outcomes.
OK: Final = "ok"
REFUSED: Final = "refused"  # for lack of a right, or because a token is unknown
FAILED: Final = "failed"  # allowed, but not carried out

# Verbs of what is no request of a peer.
LOGIN: Final = "login"
START: Final = "start"
STOP: Final = "stop"
RELOAD: Final = "reload"

ANONYMOUS: Final = "anonymous"  # a peer that proved no identity and needs none, because its address has all rights
SERVER: Final = "server"  # the server itself
COMMAND_LINE: Final = "command line"  # as the protocol of commands that change files themselves

MODE: Final = 0o600  # of a new file
_LONGEST_TEXT: Final = 256  # characters of one value
_MOST_VALUES: Final = 20  # of a list
_LATEST: Final = 1e11  # epoch seconds that a date can have


class AuditEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that was done, or refused. Defaults are left out of the file."""

    time: str  # ISO 8601, UTC
    verb: str  # of an operator or of a protocol; `login`, `start`, `stop`, `reload`
    outcome: str = OK  # `ok`, `refused` or `failed`
    who: str = ""  # name of the user
    protocol: str = ""
    peer: str = ""  # the address that it was asked from
    arguments: dict[str, Any] = {}  # without payloads and secrets
    why: str = ""  # it was refused, or failed
    left_out: int = 0  # how many entries of this outcome and peer were left out, because there were too many


class Origin(NamedTuple):
    """Where a request comes from."""

    protocol: str
    peer: str
    command: str = ""  # that is being carried out, if it has a name of its own


class Peer(Protocol):
    """A connection or a request, as the engine and the audit log know it."""

    def origin(self) -> Origin:
        """Where it comes from, and what it asks for."""


class AuditQuery(NamedTuple):
    """Which entries: those that match every field."""

    since: float = 0.0  # epoch seconds
    until: float = 0.0  # 0: now
    who: str = ""
    verb: str = ""
    refused: bool = False
    limit: int = 100
    after: int = 0  # position of the last entry of the previous page; 0: from the end


class AuditPage(NamedTuple):
    """Entries, the newest first. `after` is 0 if there are no more."""

    entries: list[AuditEntry]
    after: int


class Audit(Protocol):
    """What keeps entries; the server's `AuditLog`."""

    def record(
        self,
        verb: str,
        outcome: str = OK,
        *,
        identity: Identity | None = None,
        peer: Peer | None = None,
        arguments: Mapping[str, Any] | None = None,
        why: str = "",
    ) -> None:
        """Record something that was done, or refused. Logins and refusals are limited, per host and minute."""

    async def search(self, query: AuditQuery) -> AuditPage:
        """A page of entries; an OSError if they cannot be read."""


def who(identity: Identity | None, peer: Peer | None) -> str:
    """The name of whoever asks."""
    if identity is not None:
        return identity.name
    return ANONYMOUS if peer is not None else SERVER


def now() -> str:
    """The time of an entry that is made now."""
    return at(datetime.datetime.now(datetime.UTC).timestamp())


def at(seconds: float) -> str:
    """The time of an entry, of epoch seconds. Times compare as texts.

    >>> at(1763325000.12345)
    '2025-11-16T20:30:00.123Z'
    """
    moment = datetime.datetime.fromtimestamp(min(max(seconds, 0.0), _LATEST), datetime.UTC)
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def plain(value: Any) -> Any:
    """A value as an entry has it: of a type of JSON, valid UTF-8, and short.

    >>> plain(b"mail"), plain("x" * 1000)[-3:], plain([1, b"\\xff"]), plain(None)
    ('mail', '...', [1, '\\\\xff'], None)
    """
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value[:_MOST_VALUES]]
    if isinstance(value, bytes):
        text = value[: 4 * _LONGEST_TEXT].decode("utf-8", "backslashreplace")
    else:
        text = str(value)[: _LONGEST_TEXT + 1].encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 3] + "..."


def line(entry: AuditEntry) -> str:
    """An entry as it is in the file, without the end of the line."""
    return msgspec.json.encode(entry).decode()


def open_file(path: str, extra_flags: int = 0) -> int:
    """Open a file to append entries to it; a new one is for its owner only. A symbolic link is not followed."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | extra_flags
    try:
        return os.open(path, flags)
    except FileNotFoundError:
        return os.open(path, flags | os.O_CREAT, MODE)


def append(path: str, entry: AuditEntry) -> None:
    """Add an entry from another process than the server; an OSError if that fails.

    A line is one write to a file that is open for appending, so that lines of several processes do not mix. A new file
    belongs to the owner of its folder: root may run this before the server, which must be able to open it.
    """
    is_new = not os.path.lexists(path)
    descriptor = open_file(path)
    try:
        if is_new:
            folder = os.stat(os.path.dirname(os.path.abspath(path)))
            with contextlib.suppress(PermissionError):
                os.fchown(descriptor, folder.st_uid, folder.st_gid)
        os.write(descriptor, line(entry).encode() + b"\n")
    finally:
        os.close(descriptor)
