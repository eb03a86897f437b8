"""Store URLs: which store a URL names, and which one is used by default.

>>> default_url({"HOME": "/home/ada"})
'sqlite:///home/ada/.local/state/geartrain/jobs.db'
"""

import os
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from geartrain.errors import StoreError
from geartrain.store.contract import ResultLimits, Store
from geartrain.store.memory import MemoryStore
from geartrain.store.sqlite import SqliteStore

MEMORY: Final = "memory"
SQLITE: Final = "sqlite"
FILE_NAME: Final = "jobs.db"


def create_store(url: str, limits: ResultLimits) -> Store:
    """Make the store that a URL names, without opening it. An empty URL names the default store."""
    url = url or default_url(os.environ)
    if url == MEMORY:
        return MemoryStore(limits)
    parts = urllib.parse.urlsplit(url)
    path = urllib.parse.unquote(parts.path)
    if parts.scheme != SQLITE or parts.netloc or not path.strip("/"):
        raise StoreError(f"unsupported store {url!r}: use {MEMORY} or {SQLITE}:///path/to/{FILE_NAME}")
    return SqliteStore(path, limits)


def default_url(environment: Mapping[str, str]) -> str:
    """The default store: in systemd's state directory of the service, else in the user's state directory."""
    service = environment.get("STATE_DIRECTORY", "").partition(":")[0]
    if service:
        return f"{SQLITE}://{service}/{FILE_NAME}"
    state = environment.get("XDG_STATE_HOME") or os.path.join(environment.get("HOME", "/"), ".local/state")
    return f"{SQLITE}://{Path(state).absolute() / 'geartrain' / FILE_NAME}"
