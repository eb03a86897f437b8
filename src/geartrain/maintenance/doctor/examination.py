"""All checks in their order. None of them changes anything, or keeps a server from starting or committing."""

import functools
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from geartrain.errors import GeartrainError, StoreError
from geartrain.maintenance.doctor import contents, disk, machine
from geartrain.maintenance.doctor.finding import Finding, Findings, Level
from geartrain.server.config import load
from geartrain.server.config.settings import Settings
from geartrain.store import url
from geartrain.store.sqlite import SqliteStore


def examine(flags: Mapping[str, Any], thorough: bool) -> Iterator[Finding]:
    """One finding after the other; `flags` are those of `geartrain serve`."""
    try:
        settings = load.load(flags)
        store = url.create_store(settings.store, settings.result_limit)
    except GeartrainError as error:
        advice = "correct it; the store and the ports cannot be checked before"
        yield Findings("settings").problem(str(error), advice)
    else:
        path = store.path if isinstance(store, SqliteStore) else None
        yield _settings(flags, settings, Findings("settings"))
        yield from _store(path, thorough)
        yield from machine.ports(settings, path, Findings("ports"))
    yield machine.open_files(Findings("open files"))
    yield machine.versions(Findings("versions"))


def _settings(flags: Mapping[str, Any], settings: Settings, found: Findings) -> Finding:
    file = flags.get("config") or os.environ.get(load.CONFIG_VARIABLE)
    usual = (str(path) for path in load.default_files(os.environ) if path.is_file())
    source = file or next(usual, "")
    origin = f"read from {source}" if source else "there is no settings file"
    return found.ok(f"{origin}; the store is {settings.store or url.default_url(os.environ)}")


def _store(path: Path | None, thorough: bool) -> Iterator[Finding]:
    if path is None:
        yield Findings("store").ok("in memory: background jobs are forgotten when the server stops")
        return
    for name, check in _PLACE:
        yield _tried(check, path, Findings(name))
    if not os.path.exists(path) or not os.path.getsize(path):
        yield Findings("file").ok(f"{path} is not there yet; the server will make it")
        return
    sound = functools.partial(contents.soundness, thorough=thorough)
    for name, check in (("layout", contents.layout), ("soundness", sound), *contents.CHECKS):
        finding = _tried(check, path, Findings(name))
        yield finding
        if finding.level is Level.PROBLEM:  # the rest could not be trusted, or would say the same again
            return


_PLACE = (
    ("folder", disk.folder),
    ("file system", disk.file_system),
    ("space", disk.space),
    ("disk speed", disk.speed),
    ("lock", disk.lock),
    ("damaged files", contents.damaged_files),
)


def _tried(check: Callable[[Path, Findings], Finding], path: Path, found: Findings) -> Finding:
    """A check that cannot even look is a finding too."""
    try:
        return check(path, found)
    except StoreError as error:
        return contents.unreadable(error, found)
    except OSError as error:
        return found.problem(f"{error.filename or path}: {error.strerror}", "see whether this user may look there")
