"""Rights: what a peer may do, and with which functions.

A right is a scope, and a pattern for the names of functions: `submit:mail.*`, `work:resize`, or `read` for all
functions. `*` stands for any characters. `admin` includes the other scopes for the same functions.

>>> rights = parse(["submit:mail.*", "work"])
>>> rights.allow(SUBMIT, b"mail.send"), rights.allow(SUBMIT, b"resize"), rights.allow(WORK, b"resize")
(True, False, True)
>>> str(rights)
'submit:mail.* work'
"""

import re
from collections.abc import Iterable
from typing import Final

from geartrain.errors import ForbiddenError, SettingsError
from geartrain.usage import UserUsage

READ: Final = "read"
SUBMIT: Final = "submit"
WORK: Final = "work"
ADMIN: Final = "admin"
SCOPES: Final = (READ, SUBMIT, WORK, ADMIN)

_ANY: Final = "*"
# How many functions' rights are remembered: a peer may ask for as many names as it can invent.
_REMEMBERED: Final = 4096


class Rights:
    """The rights of one identity."""

    __slots__ = ("_everywhere", "_patterns", "_remembered", "_words")

    def __init__(self, words: Iterable[str]) -> None:
        self._words = tuple(words)
        self._patterns: dict[str, list[str]] = {scope: [] for scope in SCOPES}
        for word in self._words:
            scope, pattern = _split(word)
            for included in SCOPES if scope == ADMIN else (scope,):
                self._patterns[included].append(pattern)
        self._everywhere = frozenset(scope for scope in SCOPES if _ANY in self._patterns[scope])
        self._remembered: dict[bytes, frozenset[str]] = {}

    def __str__(self) -> str:
        return " ".join(self._words)

    @property
    def words(self) -> tuple[str, ...]:
        """The rights, as `parse` reads them."""
        return self._words

    def allow(self, scope: str, function: bytes) -> bool:
        """Whether this scope is granted for this function."""
        if scope in self._everywhere:
            return True
        scopes = self._remembered.get(function)
        if scopes is None:
            scopes = self._scopes_for(function)
            if len(self._remembered) >= _REMEMBERED:
                self._remembered.clear()
            self._remembered[function] = scopes
        return scope in scopes

    def everywhere(self, scope: str) -> bool:
        """Whether this scope is granted for all functions, and so for what concerns no single function."""
        return scope in self._everywhere

    def somewhere(self, scope: str) -> bool:
        """Whether this scope is granted for at least one function."""
        return bool(self._patterns[scope])

    def _scopes_for(self, function: bytes) -> frozenset[str]:
        name = function.decode("utf-8", "surrogateescape")
        return frozenset(scope for scope in SCOPES if any(_matches(pattern, name) for pattern in self._patterns[scope]))


class Identity:
    """Who a peer is, and what it may do. The peers of one user share one; a peer without one may do everything."""

    __slots__ = ("control", "name", "revoked", "rights", "usage")

    def __init__(self, name: str, rights: Rights, control: bool = True) -> None:
        self.name = name
        self.rights = rights
        self.revoked = False  # the user was removed or changed; nothing is accepted from it any more
        self.usage: UserUsage | None = None  # of the user that it stands for; None: it is no user's
        self.control = control  # may submit jobs of the control function, whose verbs ask for their own scopes

    def may_one_of(self, scopes: Iterable[str]) -> bool:
        """Whether one of these scopes is granted for some function."""
        return any(self.rights.somewhere(scope) for scope in scopes)

    def require(self, scope: str, function: bytes) -> None:
        """Raise ForbiddenError unless the scope is granted for this function."""
        if not self.rights.allow(scope, function):
            shown = function.decode("utf-8", "backslashreplace")
            raise ForbiddenError(f"{self.name} has no right {scope} for the function {shown!r}")

    def require_everywhere(self, scope: str) -> None:
        """Raise ForbiddenError unless the scope is granted for all functions."""
        if not self.rights.everywhere(scope):
            raise ForbiddenError(f"{self.name} has no right {scope} for all functions")

    def require_somewhere(self, scope: str) -> None:
        """Raise ForbiddenError unless the scope is granted for some function."""
        if not self.rights.somewhere(scope):
            raise ForbiddenError(f"{self.name} has no right {scope}")


def parse(words: Iterable[str]) -> Rights:
    """Rights from words such as `submit:mail.*`; a SettingsError says which is wrong."""
    return Rights(words)


def split(text: str) -> list[str]:
    """The words of a list of rights in one text, separated by commas, plus signs or spaces."""
    return [word for word in re.split(r"[\s,+]+", text) if word]


def _split(word: str) -> tuple[str, str]:
    scope, colon, pattern = word.partition(":")
    if scope not in SCOPES or (colon and not pattern):
        raise SettingsError(f"{word!r} is not a right: write a scope ({', '.join(SCOPES)}), or as in submit:mail.*")
    return scope, pattern or _ANY


def _matches(pattern: str, name: str) -> bool:
    """Whether the whole name matches. The pieces between stars are searched from left to right, each once."""
    first, *pieces = pattern.split(_ANY)
    if not pieces:
        return name == pattern
    last = pieces.pop()
    if not name.startswith(first) or len(name) < len(first) + len(last) or not name.endswith(last):
        return False
    at, end = len(first), len(name) - len(last)
    for piece in pieces:
        at = name.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return True
