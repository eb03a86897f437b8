"""Who may do what: tokens with scopes, and the sessions of people who logged in with one.

A token is written `scope:secret`, with `+` between several scopes: `read:...`, `submit+work:...`. Only digests are
kept, so that neither a look into the memory nor the time of a comparison tells a secret.
"""

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from geartrain.errors import StartError

READ: Final = "read"
SUBMIT: Final = "submit"
WORK: Final = "work"
ADMIN: Final = "admin"
SCOPES: Final = (READ, SUBMIT, WORK, ADMIN)
EVERYTHING: Final = frozenset(SCOPES)

SHORTEST: Final = 16  # characters of a secret: shorter ones can be guessed
SESSION_SECONDS: Final = 12 * 3600.0
_SESSIONS_KEPT: Final = 1000

Scopes = frozenset[str]


def read(words: Iterable[str], file: str = "") -> dict[bytes, Scopes]:
    """The scopes of each token, by its digest; a StartError says which one makes no sense, but never quotes it."""
    tokens: dict[bytes, Scopes] = {}
    for number, word in enumerate(words, 1):
        _add(tokens, word, f"http_tokens, the token number {number}")
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
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise StartError(f"the tokens in {file} cannot be read: {why}") from None


def _add(tokens: dict[bytes, Scopes], word: str, place: str) -> None:
    names, colon, secret = word.partition(":")
    scopes = frozenset(names.split("+"))
    if not colon or not scopes <= EVERYTHING:
        raise StartError(f"{place}: must be SCOPE:TOKEN, and a scope is one of {', '.join(SCOPES)}, with + between")
    if len(secret) < SHORTEST or not secret.isascii() or not secret.isprintable() or " " in secret:
        raise StartError(f"{place}: a token is at least {SHORTEST} visible ASCII characters")
    tokens[_digest(secret)] = EVERYTHING if ADMIN in scopes else scopes


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


class Keyring:
    """What a secret opens. Without any token, everybody who gets as far as asking may do everything."""

    def __init__(self, tokens: Mapping[bytes, Scopes], clock: Callable[[], float]) -> None:
        self._tokens = tokens
        self._clock = clock
        self._sessions: OrderedDict[bytes, tuple[float, Scopes]] = OrderedDict()  # by digest: until when, and what

    @property
    def locked(self) -> bool:
        """Whether a token is needed at all."""
        return bool(self._tokens)

    def scopes_of_token(self, secret: str) -> Scopes | None:
        """What this token allows; None if there is no such token."""
        return self._tokens.get(_digest(secret))

    def scopes_of_session(self, secret: str) -> Scopes | None:
        """The same for what `log_in` gave out."""
        until, scopes = self._sessions.get(_digest(secret), (0.0, frozenset()))
        return scopes if self._clock() < until else None

    def log_in(self, scopes: Scopes) -> str:
        """A new session; when there are too many, the oldest ends."""
        secret = secrets.token_urlsafe(32)
        self._sessions[_digest(secret)] = (self._clock() + SESSION_SECONDS, scopes)
        while len(self._sessions) > _SESSIONS_KEPT:
            self._sessions.popitem(last=False)
        return secret

    def log_out(self, secret: str) -> None:
        """End a session."""
        self._sessions.pop(_digest(secret), None)
