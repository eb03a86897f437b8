"""Tokens with scopes, and the sessions of people who logged in with one.

A token is written `scope:secret`, with `+` between scopes: `read:...`, `submit+work:...`. Only digests of secrets are
kept, so that neither a memory dump nor the duration of a comparison reveals a secret.
"""

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from geartrain import rights
from geartrain.doors.access import Access
from geartrain.errors import StartError
from geartrain.rights import SCOPES, Identity

EVERYTHING: Final = frozenset(SCOPES)
NAME: Final = "http token"  # of the identities that the settings' own tokens stand for

SHORTEST: Final = 16  # characters of a secret: shorter ones can be guessed
SESSION_SECONDS: Final = 12 * 3600.0
_SESSIONS_KEPT: Final = 1000

Scopes = frozenset[str]
Tokens = Mapping[bytes, Identity]  # by digest


def read(words: Iterable[str], file: str = "") -> dict[bytes, Identity]:
    """What each token stands for, by its digest. A StartError says which token is invalid, but never quotes it."""
    tokens: dict[bytes, Identity] = {}
    for number, word in enumerate(words, 1):
        _add(tokens, word, f"http_tokens, token {number}")
    for number, line in enumerate(_lines(file), 1):
        word = line.strip()
        if word and not word.startswith("#"):
            _add(tokens, word, f"{file}, line {number}")
    return tokens


def _lines(file: str) -> list[str]:
    if not file:
        return []
    try:
        return Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise StartError(f"cannot read tokens from {file}: {why}") from None


def _add(tokens: dict[bytes, Identity], word: str, place: str) -> None:
    names, colon, secret = word.partition(":")
    scopes = frozenset(names.split("+"))
    if not colon or not scopes <= EVERYTHING:
        raise StartError(f"{place}: must be SCOPE:SECRET; the scopes are {', '.join(SCOPES)}, with + between several")
    if len(secret) < SHORTEST or not secret.isascii() or not secret.isprintable() or " " in secret:
        raise StartError(f"{place}: the secret must be at least {SHORTEST} visible ASCII characters")
    tokens[_digest(secret)] = Identity(NAME, rights.parse(sorted(scopes)))


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


def _unless_changed(old: Identity | None, new: Identity) -> Identity:
    return old if old is not None and str(old.rights) == str(new.rights) else new


class Keyring:
    """The identities of tokens and sessions."""

    def __init__(self, tokens: Tokens, clock: Callable[[], float]) -> None:
        self._tokens = tokens
        self._clock = clock
        self._sessions: OrderedDict[bytes, tuple[float, Identity | None]] = OrderedDict()  # expiry, by digest
        self.access = Access()  # which knows the tokens of users; the door sets it

    @property
    def locked(self) -> bool:
        """Whether the settings have tokens for this door."""
        return bool(self._tokens)

    def use(self, fresh: Tokens) -> frozenset[Identity]:
        """Replace the tokens; returns the identities of those that are no longer valid.

        A token that has the same scopes as before stands for the same identity, and its connections stay.
        """
        before = self._tokens
        self._tokens = {digest: _unless_changed(before.get(digest), new) for digest, new in fresh.items()}
        ended = frozenset(before.values()) - frozenset(self._tokens.values())
        for identity in ended:
            identity.revoked = True
        return ended

    def by_token(self, secret: str) -> Identity | None:
        """The identity that a token stands for; None if it is unknown."""
        return self._tokens.get(_digest(secret)) or self.access.by_token(secret)

    def by_session(self, secret: str) -> Identity | None:
        """The identity of a session; None if it is unknown, has expired, or its user was revoked."""
        until, identity = self._sessions.get(_digest(secret), (0.0, None))
        valid = identity is not None and not identity.revoked and self._clock() < until
        return identity if valid else None

    def log_in(self, identity: Identity | None) -> str:
        """Start a session and return its secret. If there are too many sessions, the oldest ends."""
        secret = secrets.token_urlsafe(32)
        self._sessions[_digest(secret)] = (self._clock() + SESSION_SECONDS, identity)
        while len(self._sessions) > _SESSIONS_KEPT:
            self._sessions.popitem(last=False)
        return secret

    def log_out(self, secret: str) -> None:
        """End a session."""
        self._sessions.pop(_digest(secret), None)
