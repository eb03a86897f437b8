"""Store URLs: which store a URL names, and which one is used by default.

>>> default_url({"HOME": "/home/ada"})
'sqlite:///home/ada/.local/state/geartrain/jobs.db'
"""

import os
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from geartrain.errors import StoreError
from geartrain.store.contract import ResultLimits, Store
from geartrain.store.memory import MemoryStore
from geartrain.store.shared import Member
from geartrain.store.sqlite import SqliteStore

MEMORY: Final = "memory"
SQLITE: Final = "sqlite"
POSTGRESQL: Final = "postgresql"
FILE_NAME: Final = "jobs.db"
_SECRETS: Final = frozenset({"password", "sslpassword"})
_PASSWORD_WORD: Final = re.compile(r"(password\s*=\s*)('[^']*'|\S+)", re.IGNORECASE)


def create_store(url: str, limits: ResultLimits, member: Member | None = None) -> Store:
    """Make the store that a URL names, without opening it. An empty URL names the default store.

    `member` is what a server says of itself to the others on a store that several of them share.
    """
    url = url or default_url(os.environ)
    if url == MEMORY:
        return MemoryStore(limits)
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == POSTGRESQL:
        return _postgresql(url, limits, member or Member())
    path = urllib.parse.unquote(parts.path)
    if parts.scheme != SQLITE or parts.netloc or not path.strip("/"):
        raise StoreError(
            f"unsupported store {shown(url)!r}: use {MEMORY}, {SQLITE}:///path/to/{FILE_NAME} or {POSTGRESQL}://host/database"
        )
    return SqliteStore(path, limits)


def _postgresql(url: str, limits: ResultLimits, member: Member) -> Store:
    try:
        from geartrain.store.postgresql import PostgresqlStore
    except ImportError as error:
        raise StoreError(
            f"a store on PostgreSQL needs psycopg, which is not installed ({error}); run: "
            "pip install 'geartrain[postgresql]'"
        ) from None
    return PostgresqlStore(url, limits, member)


def shown(url: str) -> str:
    """The URL of a store without passwords, for logs and people; also where it is not quite a URL.

    >>> shown("postgresql://ada:secret@db/jobs?password=secret"), shown("postgresql://?service=jobs")
    ('postgresql://ada@db/jobs', 'postgresql://?service=jobs')
    >>> shown("postgres://ada:not/escaped@db/jobs"), shown("host=db password=secret")
    ('postgres://ada@db/jobs', 'host=db password=...')
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        return _PASSWORD_WORD.sub(r"\1...", url)
    if scheme == SQLITE:
        return url
    head, mark, query = rest.partition("?")
    if "@" not in head and ":" in head and "@" in query and "=" not in query.partition("@")[0]:
        head, mark, query = rest, "", ""  # the question mark is part of the password
    account, at, place = head.rpartition("@")
    kept = [pair for pair in query.split("&") if urllib.parse.unquote(pair.partition("=")[0]) not in _SECRETS]
    return f"{scheme}://{account.partition(':')[0]}{at}{place}{mark if kept else ''}{'&'.join(kept)}"


def postgresql_url(authority: str, path: str, query: Sequence[tuple[str, str]]) -> str:
    """Put a URL together. Unlike `urlunsplit`, it leaves the slashes where the query alone says which database.

    >>> postgresql_url("", "", [("service", "jobs")])
    'postgresql://?service=jobs'
    """
    words = urllib.parse.urlencode(query, safe="/:,")
    return f"{POSTGRESQL}://{authority}{path}{'?' if words else ''}{words}"


def has_password(url: str) -> bool:
    """Whether the URL of a store has a password in it.

    >>> has_password("postgresql://ada:secret@db/jobs"), has_password("postgresql://ada@db/jobs?sslmode=require")
    (True, False)
    """
    return shown(url) != url


def default_url(environment: Mapping[str, str]) -> str:
    """The default store: in systemd's state directory of the service, else in the user's state directory."""
    service = environment.get("STATE_DIRECTORY", "").partition(":")[0]
    if service:
        return f"{SQLITE}://{service}/{FILE_NAME}"
    state = environment.get("XDG_STATE_HOME") or os.path.join(environment.get("HOME", "/"), ".local/state")
    return f"{SQLITE}://{Path(state).absolute() / 'geartrain' / FILE_NAME}"
